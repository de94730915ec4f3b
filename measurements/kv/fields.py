"""Read a value out of somebody else's JSON: the right kind of value, or one sentence."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from measurements.kv.arithmetic import KvError

_MOST = 10_000_000  # no model has a size beyond; a list of so many layers would fill the memory


class ConfigError(KvError):
    """A config that cannot be read as a model; the message is for the person."""


@dataclass(frozen=True)
class Fields:
    """The values of a config, null taken as absent, with the class defaults of its model type."""

    values: Mapping[str, Any]
    defaults: Mapping[str, int | str | bool]

    def get(self, *names: str) -> Any:
        """Return the first of these that is there, then the first class default.

        An explicit null is an answer of its own: it keeps the class default out.
        """
        return self._found(names)[1]

    def whole(self, *names: str) -> int | None:
        """Return a whole number above 0, or None where none of these names is there."""
        name, value = self._found(names)
        return None if value is None else checked_whole(name, value)

    def _found(self, names: tuple[str, ...]) -> tuple[str, Any]:
        for name in names:
            if self.values.get(name) is not None:
                return name, self.values[name]
        left_out = (name for name in names if name not in self.values)
        known = (name for name in left_out if name in self.defaults)
        return next(((name, self.defaults[name]) for name in known), (names[0], None))

    def needed(self, *names: str) -> int:
        """Return a whole number above 0; it is an error if none of these names is there."""
        value = self.whole(*names)
        if value is None:
            raise ConfigError(f"The config does not say {names[0]}, which its cache depends on.")
        return value

    def count(self, name: str) -> int:
        """Return a whole number from 0 on; absent is 0."""
        value = self.get(name)
        is_zero = value is None or (value == 0 and not isinstance(value, bool))
        return 0 if is_zero else checked_whole(name, value)

    def flag(self, name: str) -> bool:
        """Return true or false; absent is false."""
        value = self.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise ConfigError(f"The config's {name} must be true or false, not {shown(value)}.")

    def part(self, name: str) -> Mapping[str, Any]:
        """Return a nested object; absent is empty."""
        value = self.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ConfigError(f"The config's {name} must be an object, not {shown(value)}.")
        return value

    def items(self, name: str, length: int | None = None) -> list[Any] | None:
        """Return a list of at least so many items; None where it is absent."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise ConfigError(f"The config's {name} must be a list, not {shown(value)}.")
        if length is not None and len(value) < length:
            raise ConfigError(f"The config's {name} has {len(value)} items for {length} layers.")
        return value if length is None else value[:length]

    def any_of(self, names: Iterable[str]) -> str | None:
        """Return the first of these names that the config itself has."""
        found = (name for name in names if self.values.get(name) is not None)
        return next((name for name in found if self.values[name] is not False), None)


def checked_whole(name: str, value: object) -> int:
    """Return `value` if it is a whole number that a model can have."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"The config's {name} must be a whole number, not {shown(value)}.")
    if not 0 < value <= _MOST:
        raise ConfigError(
            f"The config's {name} must lie between 1 and {_MOST:,}, not {shown(value)}."
        )
    return value


def shown(value: object) -> str:
    """Return a short form of a value that a sentence can hold."""
    if isinstance(value, int) and abs(value) > _MOST**2:
        return "a number of many digits"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value)[:40]
