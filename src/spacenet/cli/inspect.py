"""`spacenet inspect`: what a model holds, and how much space is left."""

import dataclasses
import json
from dataclasses import dataclass

from spacenet.cli.forms import ModelArgument, parse
from spacenet.cli.output import print_tables
from spacenet.model.file import load_model
from spacenet.model.inspection import inspect_model
from spacenet.model.watching import load_watch
from spacenet.report.evaluation_tables import watch_table
from spacenet.report.tables import inspection_tables


@dataclass(frozen=True)
class InspectOptions:
    """Show what a model holds: its space, its tasks and classes, its sizes, and what was measured; and what was counted
    of its predictions, where a service keeps that beside it."""

    model: ModelArgument
    json: bool = False
    """Print everything as JSON."""


def inspect(arguments: list[str]) -> int:
    options = parse(InspectOptions, arguments, "inspect")
    model = load_model(options.model)
    found = inspect_model(model, options.model.expanduser().stat().st_size)
    watch = load_watch(options.model.expanduser())
    if options.json:
        seen = {} if watch is None else {"watch": watch.summary().to_plain()}
        print(json.dumps(dataclasses.asdict(found) | seen, indent=1))
    else:
        print_tables(inspection_tables(found) + ([] if watch is None else [watch_table(watch.summary())]))
    return 0
