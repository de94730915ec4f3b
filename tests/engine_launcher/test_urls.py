import pytest

from engine_launcher import urls


@pytest.mark.parametrize(
    "typed",
    [
        "http://h:8000",
        "http://h:8000/",
        "http://h:8000/v1",
        "http://h:8000/v1/",
        "http://h:8000/v1/chat/completions",
        "http://h:8000/v1/completions",
        "http://h:8000/health",
        "  http://h:8000/v1 \n",
        "h:8000",
        "HTTP://H:8000/v1?x=1#y",
    ],
)
def test_every_way_to_type_a_url_has_one_normal_form(typed: str) -> None:
    assert urls.normal_form(typed) == "http://h:8000/v1"


def test_a_prefix_before_v1_is_kept() -> None:
    assert urls.normal_form("https://h/serve/llm/v1/models") == "https://h/serve/llm/v1"


def test_an_address_of_version_6_is_kept() -> None:
    assert urls.normal_form("http://[::1]:8000") == "http://[::1]:8000/v1"


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("", "Type the URL"),
        ("   ", "Type the URL"),
        ("http://", "no URL"),
        ("http://h:port", "no URL"),
        ("http://h:99999", "no URL"),
        ("http://my host", "no URL"),
        ("ftp://h", "http or https"),
        ("http://me:secret@h", "password"),
    ],
)
def test_what_is_no_url_gets_a_sentence(typed: str, word: str) -> None:
    with pytest.raises(ValueError, match=word) as refused:
        urls.normal_form(typed)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000/v1"),
        ("0.0.0.0", "http://127.0.0.1:8000/v1"),
        ("::", "http://[::1]:8000/v1"),
        ("box", "http://box:8000/v1"),
    ],
)
def test_a_server_is_reached_where_this_machine_can_reach_it(host: str, url: str) -> None:
    assert urls.of(host, 8000) == url


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://localhost:1/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://box/v1", False),
    ],
)
def test_only_this_machine_is_reached_without_a_proxy(url: str, loopback: bool) -> None:
    assert urls.is_loopback(url) is loopback
