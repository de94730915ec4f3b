"""The tools by the names under which a person asks for them."""

from collections.abc import Callable

from measurements.other_tools import aiperf, guidellm, vllm_bench
from measurements.other_tools.raw import RawRun, raw_run
from measurements.other_tools.reported import ToolReport
from measurements.run_folder.errors import RunFolderError
from measurements.run_folder.reader import Run

TOOLS: dict[str, Callable[[RawRun], ToolReport]] = {
    "vllm": vllm_bench.report,
    "guidellm": guidellm.report,
    "aiperf": aiperf.report,
}


def report(run: Run, tool: str) -> ToolReport:
    """Return what `tool`, a key of `TOOLS`, would report of a run."""
    if not (run.folder / "events.csv").is_file():
        raise RunFolderError(
            f"{run.folder} has no events.csv, without which other tools' rules cannot be applied."
        )
    return TOOLS[tool](raw_run(run))
