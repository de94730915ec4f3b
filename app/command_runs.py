"""`latency-lab runs`, `show` and `export`: past runs, as a list, as figures and as CSV."""

import argparse
import json
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path

from app import report, tool_words
from app.arguments import BadInputError, add_as, one_of
from app.places import find_places, typed_path
from app.terminal import emit
from measurements.run_folder.export import ExportDialect, export
from measurements.run_folder.reader import RunEntry, list_runs, read
from measurements.summary import as_json, summarize


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands to the lab's own."""
    _add_runs(commands)
    _add_show(commands)
    _add_export(commands)


def _add_runs(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("runs", help="list the runs, newest first", allow_abbrev=False)
    _add_folder(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.set_defaults(run=list_)


def _add_show(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("show", help="print the figures of a run", allow_abbrev=False)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="its name or folder")
    _add_folder(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    add_as(parser)
    parser.set_defaults(run=show)


def _add_export(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "export",
        help="write one run, or several joined, as CSV",
        description="Write runs as one CSV file; an existing file is never written over.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("runs", nargs="+", metavar="RUN", help="its name or folder")
    _add_folder(parser)
    what = ("requests", "tokens", "summary")
    add("--what", type=one_of("--what", *what), default="requests", metavar="|".join(what))
    add("--to", type=Path, required=True, metavar="FILE")
    add("--semicolon", action="store_true", help="semicolons, and commas in decimal numbers")
    add("--bom", action="store_true", help="a byte-order mark, by which spreadsheets know UTF-8")
    parser.set_defaults(run=export_)


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the run folders lie")


def list_(arguments: argparse.Namespace) -> int:
    """Print the runs; an empty list is no error."""
    folder = _runs_dir(arguments)
    entries = list_runs(folder)
    if arguments.json:
        emit(json.dumps([_entry_json(entry) for entry in entries], indent=2, ensure_ascii=False))
    elif entries:
        emit(report.aligned([["run", "state", "started (UTC)"], *map(_line, entries)], left=3))
    else:
        emit(f"There are no runs in {folder}.")
    return 0


def _entry_json(entry: RunEntry) -> dict[str, object]:
    return asdict(entry) | {"folder": str(entry.folder)}


def _line(entry: RunEntry) -> list[str]:
    return [entry.name, entry.state or report.NOTHING, entry.started_utc or report.NOTHING]


def show(arguments: argparse.Namespace) -> int:
    """Print the figures of one run, or of several side by side."""
    runs = [read(folder) for folder in _folders(arguments)]
    summaries = {run.folder.name: summarize(run) for run in runs}
    reports = tool_words.read_reports([run.folder for run in runs], arguments.tool)
    if arguments.json:
        document = {
            name: as_json(summary) | report.as_key(said)
            for (name, summary), said in zip_longest(summaries.items(), reports)
        }
        emit(json.dumps(document, indent=2, ensure_ascii=False))
        return 0
    heads = [report.head(s, s.concurrency) for s in summaries.values()]
    columns = [level for summary in summaries.values() for level in report.by_level(summary)]
    table = report.figures_table([report.head(c, c.concurrency) for c in columns], columns)
    emit("\n".join([table, "", *report.legend(table)]).rstrip())
    if reports:
        emit(f"\n{tool_words.beside(heads, list(summaries.values()), reports)}")
    emit("\n".join(["", *(f"{h}: {r.folder}" for h, r in zip(heads, runs, strict=True))]))
    emit("\n".join(f"{run.folder.name}: {warning}" for run in runs for warning in run.warnings))
    return 0


def export_(arguments: argparse.Namespace) -> int:
    """Write the CSV and say what was written."""
    dialect = ExportDialect(
        delimiter=";" if arguments.semicolon else ",",
        decimal="," if arguments.semicolon else ".",
        bom=arguments.bom,
    )
    destination = typed_path(str(arguments.to)).absolute()
    rows = export(_folders(arguments), arguments.what, destination, dialect)
    emit(f"{rows} rows written to {destination}.")
    return 0


def _folders(arguments: argparse.Namespace) -> list[Path]:
    return [_folder(word, _runs_dir(arguments)) for word in arguments.runs]


def _folder(word: str, runs_dir: Path) -> Path:
    """Return a run by its path or by its name in the lab's own folder."""
    for folder in (typed_path(word), runs_dir / word):
        if folder.is_dir():
            return folder.absolute()
    raise BadInputError(f"There is no run '{word}'; 'latency-lab runs' lists those in {runs_dir}.")


def _runs_dir(arguments: argparse.Namespace) -> Path:
    folder: Path = arguments.out or find_places().runs
    return typed_path(str(folder)).absolute()
