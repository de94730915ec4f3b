"""What a run says of the machine."""

import re

from measurements import machine


def test_the_machine_is_described_with_what_is_known() -> None:
    found = machine.describe()
    assert set(found) == {"cpu", "cores", "memory_bytes", "system", "gpu", "python"}
    assert found["memory_bytes"] > 2**28
    assert found["cores"] >= 1


def test_the_packages_that_matter_have_versions() -> None:
    found = machine.packages()
    assert {"openai", "httptools", "msgspec"} <= set(found)
    assert re.match(r"3\.", found["openai"])


def test_a_command_that_is_missing_or_fails_gives_nothing() -> None:
    assert machine._output("no-such-command-anywhere") is None
    assert machine._output("git", "no-such-subcommand") is None
