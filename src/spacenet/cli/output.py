"""What the commands share in printing results."""

import logging
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from spacenet.errors import SettingsError, SpacenetError
from spacenet.report.tables import Table
from spacenet.utils.files import real_path

log = logging.getLogger("spacenet")
PAGE = "report.html"


def print_tables(tables: Sequence[Table]) -> None:
    """Print tables as wide as the terminal allows."""
    console = Console()
    for table in tables:
        console.print(table)


def output_file(path: Path, inputs: Iterable[str | Path] = ()) -> Path:
    """Where a command writes. That it cannot should not show only after hours of work, or by the loss of an input."""
    path = path.expanduser()
    place = real_path(path)
    if place.is_dir():
        raise SettingsError(f"{path} is a folder", setting="out")
    for given in map(Path, inputs):
        if real_path(given) == place:
            raise SettingsError(f"{path} is what is read, it would be lost; choose another file", setting="out")
    if not os.access(place.parent, os.W_OK):
        raise SettingsError(f"{path.parent} is not a folder that can be written to", setting="out")
    return path


def end_command(result: Any, folder: Path, *, report: bool, silent: bool) -> int:
    """Write the HTML report of runs that have ended and say which failed; the exit code is 1 if any did."""
    if report:
        _write_report(result, folder, silent)
    failures = getattr(result, "failures", ())
    for failure in failures:
        print(f"spacenet: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _write_report(result: Any, folder: Path, silent: bool) -> None:
    """The runs are saved by then: a failure here is a message, no error."""
    try:
        line = f"The report is in {result.report(folder / PAGE)}"
    except SpacenetError as error:
        line = f"No report was written: {error.for_cli()}"
    except Exception as error:  # a bug in the report must not look as if the run had failed
        log.debug("report", exc_info=True)
        line = f"No report was written: {type(error).__name__}: {error} (an unexpected error)"
    if not silent:
        print(line)
