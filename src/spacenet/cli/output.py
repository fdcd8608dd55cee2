"""What the commands share in printing results."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from spacenet.errors import SpacenetError
from spacenet.report.tables import Table

log = logging.getLogger("spacenet")
PAGE = "report.html"


def print_tables(tables: Sequence[Table]) -> None:
    """Print tables as wide as the terminal allows."""
    console = Console()
    for table in tables:
        console.print(table)


def write_report(result: Any, folder: Path, *, silent: bool) -> None:
    """Write the HTML report of runs that have ended. They are saved by then: a failure here is a message, no error."""
    try:
        line = f"The report is in {result.report(folder / PAGE)}"
    except SpacenetError as error:
        line = f"No report was written: {error.for_cli()}"
    except Exception as error:  # a bug in the report must not look as if the run had failed
        log.debug("report", exc_info=True)
        line = f"No report was written: {type(error).__name__}: {error} (an unexpected error)"
    if not silent:
        print(line)
