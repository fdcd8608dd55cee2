"""`spacenet inspect`: what a model holds, and how much space is left."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from tyro.conf import arg

from spacenet.cli.options import MARKERS
from spacenet.model.file import load_model
from spacenet.model.inspection import inspect_model
from spacenet.option_types import Flag
from spacenet.report.model import inspection_report

DESCRIPTION = "Show what a model holds: its space, its tasks and classes, its sizes, and what was measured."


@dataclass(frozen=True)
class InspectOptions:
    """Which model."""

    model: Annotated[tyro.conf.Positional[Path], arg(metavar="MODEL", help="A model file.")]
    json: Flag = False
    """Print everything as JSON."""


def inspect(arguments: list[str]) -> int:
    """Carry out `spacenet inspect …`."""
    options = tyro.cli(InspectOptions, prog="spacenet inspect", description=DESCRIPTION, args=arguments, config=MARKERS)
    model = load_model(options.model)
    found = inspect_model(model, options.model.expanduser().stat().st_size)
    if options.json:
        print(json.dumps(dataclasses.asdict(found), indent=1))
    else:
        Console().print(inspection_report(found))
    return 0
