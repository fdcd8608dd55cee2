"""`spacenet inspect`: what a model holds, and how much space is left."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from spacenet.cli.forms import ModelArgument, parse
from spacenet.cli.output import output_file, print_tables
from spacenet.errors import SettingsError
from spacenet.model.file import load_model
from spacenet.model.inspection import inspect_model
from spacenet.model.watching import load_watch
from spacenet.report.card import model_card
from spacenet.report.evaluation_tables import watch_table
from spacenet.report.tables import inspection_tables
from spacenet.utils.files import save_text
from spacenet.utils.text import printable


@dataclass(frozen=True)
class InspectOptions:
    """Show what a model holds: its space, its tasks and classes, its sizes, and what was measured; and what was counted
    of its predictions, where a service keeps that beside it."""

    model: ModelArgument
    json: bool = False
    """Print everything as JSON."""
    card: bool = False
    """Print a model card instead, as Markdown: data, accuracy, memory, license of the encoder, intended use, limits."""
    out: Path | None = None
    """Write it to this file instead of the standard output."""


def inspect(arguments: list[str]) -> int:
    options = parse(InspectOptions, arguments, "inspect")
    if options.out is not None and not options.card:
        raise SettingsError("goes with --card", setting="out")
    if options.card and options.json:
        raise SettingsError("prints tables as JSON; a card is Markdown", setting="json")
    out = options.out and output_file(options.out, inputs=[options.model])
    model = load_model(options.model)
    found = inspect_model(model, options.model.expanduser().stat().st_size)
    watch = load_watch(options.model.expanduser())
    if options.json:
        seen = {} if watch is None else {"watch": watch.summary().to_plain()}
        print(json.dumps(dataclasses.asdict(found) | seen, indent=1))
    elif out:
        save_text(out, model_card(found, options.model.stem))
        print(f"Wrote {printable(out)}")
    elif options.card:
        print(model_card(found, options.model.stem), end="")
    else:
        print_tables(inspection_tables(found) + ([] if watch is None else [watch_table(watch.summary())]))
    return 0
