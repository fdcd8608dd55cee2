"""`spacenet evaluate`: measure a model on labeled data."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import arg

from spacenet import api
from spacenet.cli.forms import ModelArgument, UnknownOption, parse
from spacenet.cli.output import output_file, print_tables
from spacenet.config.stream import TableConfig
from spacenet.errors import SettingsError
from spacenet.utils.text import format_bytes

DATA = (
    "Samples with labels: .npz (its x_test and y_test if it has them, else x and y), .csv or .parquet with --label, "
    ".npy with --label FILE, or folders of images with one sub-folder per class; several are taken together."
)


@dataclass(frozen=True)
class EvaluateOptions(TableConfig):
    """Measure a model on labeled data: accuracy on each task, precision and recall of each class, old against new
    classes, confusion and calibration. Samples with labels that the model does not know are counted and left out;
    with --unknown they are those that should be called unknown.
    """

    model: ModelArgument
    data: Annotated[tyro.conf.Positional[tuple[Path, ...]], arg(metavar="DATA …", help=DATA, help_behavior_hint="")]
    resize: bool = False
    """Resize images to the model's size (stretched, if their proportions differ)."""
    unknown: UnknownOption = None
    json: bool = False
    """Print everything as JSON instead of tables."""
    out: Path | None = None
    """Write an HTML page with all plots to this file too."""
    quiet: bool = False
    """Show no progress."""


def evaluate(arguments: list[str]) -> int:
    options = parse(EvaluateOptions, arguments, "evaluate")
    if not options.data:
        raise SettingsError("give labeled data: spacenet evaluate MODEL DATA")
    out = options.out and output_file(options.out, inputs=[options.model, *options.data])
    reading = {field.name: getattr(options, field.name) for field in fields(TableConfig)}
    reading |= {"resize": options.resize, "unknown": options.unknown, "progress": not options.quiet}
    found = api.evaluate(options.model, options.data, **reading)
    if options.json:
        print(json.dumps(found.to_plain(), indent=1))
    else:
        print_tables(found.tables())
    if out:
        found.report(out)
        if not options.json:
            print(f"Wrote {out} ({format_bytes(out.stat().st_size)}); open it in a browser")
    return 0
