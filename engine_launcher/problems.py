"""What keeps an engine from running: a sentence, and what the lab itself can do about it."""

from dataclasses import dataclass
from typing import Literal

Value = int | float | str | bool
# set: put `value` into `setting`. start_with: the same, and start. install: build the lab's own
# engine environment. stop_engine: stop the engine that `value` (an engine id) names.
# attach: attach to the URL in `value`.
OfferKind = Literal["set", "start_with", "install", "stop_engine", "attach"]


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One thing that the lab can do by itself, worded as a button."""

    label: str
    kind: OfferKind = "set"
    setting: str = ""  # field of `EngineSettings`, for the kinds set and start_with
    value: Value | None = None


@dataclass(frozen=True)
class Problem:
    """One thing that fails or would fail: the setting it is about, a sentence, and offers."""

    field: str
    sentence: str
    offers: tuple[Offer, ...] = ()


class Refusal(ValueError):  # noqa: N818 - an answer to the person, by the name the other rooms use
    """Nothing was started: `problems` says why."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__(" ".join(problem.sentence for problem in problems))


def use(setting: str, value: Value | None, label: str = "") -> tuple[Offer, ...]:
    """Return the offer to set one setting; () where there is no value to offer."""
    if value is None:
        return ()
    return (Offer(label=label or f"Use {value}", setting=setting, value=value),)


INSTALL = Offer(label="Install the engine", kind="install")
