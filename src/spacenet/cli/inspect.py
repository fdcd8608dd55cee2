"""`spacenet inspect`: what a model holds, and how much space is left."""

import dataclasses
import json
from dataclasses import dataclass

from spacenet.cli.forms import ModelArgument, parse
from spacenet.cli.output import print_tables
from spacenet.model.file import load_model
from spacenet.model.inspection import inspect_model
from spacenet.report.tables import inspection_tables


@dataclass(frozen=True)
class InspectOptions:
    """Show what a model holds: its space, its tasks and classes, its sizes, and what was measured."""

    model: ModelArgument
    json: bool = False
    """Print everything as JSON."""


def inspect(arguments: list[str]) -> int:
    options = parse(InspectOptions, arguments, "inspect")
    model = load_model(options.model)
    found = inspect_model(model, options.model.expanduser().stat().st_size)
    if options.json:
        print(json.dumps(dataclasses.asdict(found), indent=1))
    else:
        print_tables(inspection_tables(found))
    return 0
