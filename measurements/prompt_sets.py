"""The texts of the built-in prompt sets: the same ones on every machine."""

import random
from collections.abc import Callable, Sequence

_REPORT_WORDS = 520
_EVERY = 3  # questions before a long text in the mixed set

_QUESTIONS = (
    "What does a key-value cache hold while a language model answers?",
    "Why is the first token of a reply slower than the next ones?",
    "Name three reasons why a web server may answer late.",
    "Explain batching to somebody who bakes bread.",
    "What is the difference between latency and throughput?",
    "Write one honest sentence about the weather in April.",
    "How many minutes are there in a leap year?",
    "Give me a short definition of memory bandwidth.",
    "Describe a lighthouse in two sentences.",
    "Why do queues grow when a machine is nearly busy?",
    "What happens when a cup of tea cools down?",
    "List four rivers and the seas that they reach.",
    "Translate into French: the train leaves at noon.",
    "What would you ask a pilot before a flight?",
    "Explain in one paragraph how a zip works.",
    "Suggest a name for a small red boat, and say why.",
)

_SENTENCES = (
    "The harbour office keeps a book in which every arrival is written down with its hour.",
    "On most mornings the first boats come in before the lamps along the pier are put out.",
    "A clerk compares the hour in the book with the hour that the captain wrote on board.",
    "When the two do not agree, the clerk asks who looked at which clock, and when.",
    "Some captains write the hour at which they saw the harbour, not the hour of mooring.",
    "In a storm several boats wait outside, and then they all come in within a few minutes.",
    "The book then shows one busy line, although each crew had waited for a different time.",
    "An old rule says that the bell rings once for each boat, and never twice for the same.",
    "Visitors believe that the bell keeps the time, but it only says that something happened.",
    "The carpenter on the quay measures planks with a rule that he made himself.",
    "He checks it against the brass rule in the office once a year, on the first of March.",
    "If his rule has become shorter, he does not change the planks but the rule.",
    "Every crate that leaves the store is weighed, and the weight is chalked on its lid.",
    "Fish that waits in the sun loses weight, so the scale stands in the shade of the wall.",
    "The store has eight doors, and with all of them open the carts still stand in a queue.",
    "A ninth door was built last year, yet the queue is as long, because the road is narrow.",
    "The teacher brings her class here to show them how waiting grows when nobody is idle.",
    "She lets the children count carts for an hour and write down each one's waiting time.",
    "The longest wait of the day is always remembered, and the usual one is always forgotten.",
    "At noon the tide turns, the boats lean the other way, and the clerk closes the book.",
)

_TASKS = (
    "Summarise the report above in three sentences.",
    "Which clocks does the report mention, and how can they disagree?",
    "What would you measure first in this harbour, and with what?",
    "Write a letter to the clerk that asks for two changes.",
    "List the people in the report and what each of them does.",
    "Explain why the ninth door did not help.",
    "Give the report a title and a one-line abstract.",
    "Which sentence of the report is the most surprising one? Say why.",
    "Turn the report into a short dialogue between the clerk and the teacher.",
    "What does the report say about waiting, in your own words?",
    "Find two claims in the report that a visitor could test.",
    "Write five questions that the teacher could ask her class.",
)


def _short() -> Sequence[str]:
    return _QUESTIONS


def _long() -> Sequence[str]:
    """Return a dozen texts of 520 words and more, each a report of its own with a task."""
    return [f"{_report(number)}\n\n{task}" for number, task in enumerate(_TASKS, 1)]


def _shared() -> Sequence[str]:
    """Return a dozen texts that begin with the same report and end with a task of their own."""
    report = _report(0)
    return [f"{report}\n\n{task}" for task in _TASKS]


def _mixed() -> Sequence[str]:
    """Return short questions with one long text after every third."""
    long = iter(_long())
    texts: list[str] = []
    for number, question in enumerate(_QUESTIONS, 1):
        texts.append(question)
        if number % _EVERY == 0:
            texts.append(next(long))
    return texts


def _report(number: int) -> str:
    order = random.Random(number)  # noqa: S311 - a repeatable order of sentences, no secret
    sentences: list[str] = []
    while sum(len(sentence.split()) for sentence in sentences) < _REPORT_WORDS:
        sentences += order.sample(_SENTENCES, len(_SENTENCES))
    return " ".join(sentences)


SHARED = "shared"  # the set that shares its prefix on purpose: it is sent without a unique one
SETS: dict[str, Callable[[], Sequence[str]]] = {
    "short": _short,
    "mixed": _mixed,
    "long": _long,
    SHARED: _shared,
}
