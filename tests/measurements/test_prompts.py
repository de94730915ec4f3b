"""Prompt sets, and what is said of files that hold none."""

from itertools import islice
from pathlib import Path

import pytest

from measurements import plan
from measurements.prompt_sets import SETS
from measurements.prompts import Prompt, PromptError, endless, load


@pytest.mark.parametrize("name", sorted(SETS))
def test_a_built_in_set_has_a_dozen_different_prompts_each_with_an_id(name: str) -> None:
    prompts = load(name)
    assert len(prompts) >= 12
    assert len({prompt.content for prompt in prompts}) == len(prompts)
    assert len({prompt.prompt_id for prompt in prompts}) == len(prompts)


def test_long_prompts_have_more_than_500_words_and_are_the_same_each_time() -> None:
    assert min(len(prompt.content.split()) for prompt in load("long")) > 500
    assert load("long") == load("long")


def test_the_mixed_set_has_short_and_long_ones() -> None:
    lengths = [len(prompt.content.split()) for prompt in load("mixed")]
    assert min(lengths) < 20
    assert max(lengths) > 500


def test_a_text_file_has_a_prompt_a_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes("\ufeffone\r\n\r\n two\u2028still two \n".encode())
    assert load(str(path)) == [Prompt("mine-1", "one"), Prompt("mine-3", "two\u2028still two")]


def test_a_jsonl_file_has_prompts_or_messages(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        '{"prompt": "one"}\n{"messages": [{"role": "system", "content": "s"}, '
        '{"role": "user", "content": "u"}]}\n'
    )
    one, two = load(str(path))
    assert one.messages() == [{"role": "user", "content": "one"}]
    assert [message["role"] for message in two.messages()] == ["system", "user"]
    assert two.text() == "s\nu"


def test_a_sharegpt_file_gives_the_first_turn_of_each_talk_by_a_person(tmp_path: Path) -> None:
    path = tmp_path / "sharegpt.json"
    path.write_text(
        '[{"id": "a", "conversations": [{"from": "human", "value": "one"},'
        ' {"from": "gpt", "value": "1"}, {"from": "human", "value": "again"}]},'
        ' {"id": "b", "conversations": []},'
        ' {"id": "c", "conversations": [{"from": "gpt", "value": "hello"},'
        ' {"from": "user", "value": "two"}]},'
        ' {"id": "d", "conversations": [{"from": "system", "value": "three"}]}]'
    )
    assert load(str(path)) == [
        Prompt("sharegpt-1", "one"),
        Prompt("sharegpt-3", "two"),
        Prompt("sharegpt-4", "three"),
    ]


def test_a_line_of_jsonl_may_be_a_talk_of_sharegpt_too(tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl"
    path.write_text('{"conversations": [{"from": "human", "value": "one"}]}\n')
    assert load(str(path)) == [Prompt("talks-1", "one")]


def test_the_shared_set_has_one_beginning_and_ends_that_differ() -> None:
    beginnings, ends = zip(*(p.content.split("\n\n") for p in load("shared")), strict=True)
    assert len(set(beginnings)) == 1
    assert len(beginnings[0].split()) > 500
    assert len(set(ends)) == len(ends) == 12


def test_a_csv_file_has_a_column_named_prompt_or_its_first_one(tmp_path: Path) -> None:
    named = tmp_path / "named.csv"
    named.write_text('n,Prompt\n1,"one, with a comma"\n2,two\n')
    assert [prompt.content for prompt in load(str(named))] == ["one, with a comma", "two"]
    plain = tmp_path / "plain.csv"
    plain.write_text("one\ntwo\n")
    assert [prompt.content for prompt in load(str(plain))] == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.txt", b"", "holds no prompt"),
        ("blank.txt", b"\n \n", "holds no prompt"),
        ("binary.txt", b"\x89PNG\xff", "not a text in UTF-8"),
        ("zeros.txt", b"a\0b", "zero bytes"),
        ("bad.jsonl", b"{", "line 1 is not JSON"),
        ("other.jsonl", b'{"text": "a"}', 'has no "prompt"'),
        ("null.jsonl", b'{"prompt": null}', 'has no "prompt"'),
        ("talk.json", b'[{"conversations": [{"from": "human"}]}]', 'entry 1 has no "prompt"'),
        ("one.json", b'{"prompt": "a"}', "is not a list of prompts"),
        ("none.json", b"[]", "holds no prompt"),
        ("cut.json", b"[{", "is not JSON"),
        ("empty.csv", b"", "holds no prompt"),
        ("header.csv", b"prompt\n", "holds no prompt"),
        ("prompts.docx", b"PK", "neither a built-in prompt set"),
    ],
)
def test_a_file_without_prompts_gets_one_sentence(
    tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(PromptError, match=sentence):
        load(str(path))


def test_a_missing_file_and_a_folder_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="cannot be read"):
        load(str(tmp_path / "none.txt"))
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(PromptError, match="cannot be read"):
        load(str(tmp_path / "folder.txt"))


def order(seed: int, *, unique: bool = False) -> list[str]:
    settings = plan.Prompts(seed=seed, unique_prefix=unique)
    return [prompt.content for prompt in islice(endless(load("short"), settings), 40)]


def test_the_seed_decides_the_order_and_each_round_has_every_prompt() -> None:
    assert order(1) == order(1)
    assert order(1) != order(2)
    assert set(order(1)[:16]) == set(order(1)[16:32]) == {p.content for p in load("short")}


def test_a_unique_prefix_stands_before_everything_and_differs_between_requests_and_runs() -> None:
    first, second = order(1, unique=True), order(1, unique=True)
    heads = [content[:20] for content in first + second]
    assert len(set(heads)) == len(heads)
    assert [content.split(") ", 1)[1] for content in first] == order(1)


def test_a_message_in_parts_gets_its_unique_prefix_as_a_part() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    talk = Prompt("a", "", ({"role": "user", "content": [image]}, {"role": "assistant"}))
    first, second = talk.marked("(1) ").messages()
    assert first["content"] == [{"type": "text", "text": "(1) "}, image]
    assert second == {"role": "assistant"}


def test_a_conversation_gets_its_unique_prefix_in_its_first_message() -> None:
    talk = Prompt("a", "", ({"role": "system", "content": "s"}, {"role": "user", "content": "u"}))
    assert talk.marked("(1) ").messages() == [
        {"role": "system", "content": "(1) s"},
        {"role": "user", "content": "u"},
    ]
