"""The command line: what it knows, and how a refusal or a failure is said. No Qt."""

from collections.abc import Sequence
from importlib.metadata import version

from app import command_kv, command_measure, command_runs
from app.arguments import BadInputError, Parser
from app.terminal import complain, settle_stdout, tolerate_any_encoding
from engine_launcher.problems import Refusal
from measurements.kv.arithmetic import KvError
from measurements.kv.fields import ConfigError
from measurements.run_folder.errors import RunFolderError

_BAD_INPUT = 2
_LONGEST_NAME = 80  # characters of a path in a sentence
_SAID_IN_A_SENTENCE = (BadInputError, Refusal, RunFolderError, KvError, ConfigError)


def run(words: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    tolerate_any_encoding()
    try:
        arguments = _parser().parse_args(words)
        return int(arguments.run(arguments))
    except _SAID_IN_A_SENTENCE as error:
        complain(str(error))
        return _BAD_INPUT
    except OSError as error:
        what = f"{str(error.filename)[:_LONGEST_NAME]}: " if error.filename else ""
        complain(f"{what}{error.strerror or error}.")
        return _BAD_INPUT
    finally:
        settle_stdout()


def _parser() -> Parser:
    parser = Parser(
        prog="latency-lab",
        description="See where tokens become latency. Without a command: the window.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=version("latency-lab"))
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (command_measure, command_kv, command_runs):
        command.add_to(commands)
    return parser
