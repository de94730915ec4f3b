import argparse

import pytest

from app.arguments import BadInputError, Parser, levels, one_of, real, whole


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1,8", (1, 8)), ("8", (8,)), (" 1 , 256 ", (1, 256)), ("4,4", (4, 4)), ("08", (8,))],
)
def test_levels_are_read_in_their_order(text: str, expected: object) -> None:
    assert levels(text) == expected


@pytest.mark.parametrize(
    "text", ["", "0,x", "0", "257", "1,", "-1", "1.5", "1_0", "1;8", "\u0661", "9" * 5000]
)
def test_levels_that_make_no_sense_are_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        levels(text)
    assert str(refused.value) == (
        f"--concurrency takes whole numbers from 1 to 256, such as 1,8; got '{text}'."
    )


def test_whole_numbers_keep_to_their_limits() -> None:
    convert = whole("--port", 1, 65535)
    assert (convert("1"), convert("65535")) == (1, 65535)
    for text in ("0", "65536", "8000.0", "1e3", "port", "", "-1"):
        with pytest.raises(argparse.ArgumentTypeError, match=r"--port takes a whole number from 1"):
            convert(text)


def test_real_numbers_keep_to_their_limits_and_nan_is_none() -> None:
    convert = real("--temperature", 0, 2)
    assert (convert("0"), convert("0.2"), convert("2")) == (0, 0.2, 2)
    for text in ("nan", "inf", "-0.1", "2.01", "warm", ""):
        with pytest.raises(argparse.ArgumentTypeError, match=r"--temperature takes a number from"):
            convert(text)


def test_a_name_that_is_not_on_the_list_is_told_the_list() -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        one_of("--engine", "vllm", "transformers")("vlm")
    assert str(refused.value) == "--engine takes vllm or transformers; got 'vlm'."


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--n", "x"], "--n takes a whole number from 1 to 9; got 'x'."),
        (["--n"], "--n: expected one argument; see 'lab --help'."),
        (["--m", "1"], "unrecognized arguments: --m 1; see 'lab --help'."),
    ],
)
def test_what_argparse_finds_is_said_in_one_sentence(
    words: tuple[object, ...], sentence: str
) -> None:
    parser = Parser(prog="lab", allow_abbrev=False)
    parser.add_argument("--n", type=whole("--n", 1, 9))
    with pytest.raises(BadInputError) as refused:
        parser.parse_args(words)
    assert str(refused.value) == sentence
