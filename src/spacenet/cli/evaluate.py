"""`spacenet evaluate`: measure a model on labeled data."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import arg

from spacenet.cli.forms import ModelArgument, parse
from spacenet.cli.output import output_file, print_tables, warn_of_scale
from spacenet.config.stream import DataConfig, TableConfig
from spacenet.data.arrays import samples_per_chunk
from spacenet.data.sources import Target, read_labeled
from spacenet.errors import SettingsError
from spacenet.model.evaluation import Evaluation, evaluate_model
from spacenet.model.file import load_model
from spacenet.report.evaluation_tables import evaluation_tables
from spacenet.utils.text import format_bytes

DATA = (
    "Samples with labels: .npz (its x_test and y_test if it has them, else x and y), .csv or .parquet with --label, "
    ".npy with --label FILE, or folders of images with one sub-folder per class; several are taken together."
)


@dataclass(frozen=True)
class EvaluateOptions(TableConfig):
    """Measure a model on labeled data: accuracy on each task, precision and recall of each class, old against new
    classes, confusion and calibration. Samples with labels that the model does not know are counted and left out.
    """

    model: ModelArgument
    data: Annotated[tyro.conf.Positional[tuple[Path, ...]], arg(metavar="DATA …", help=DATA, help_behavior_hint="")]
    resize: bool = False
    """Resize images to the model's size (stretched, if their proportions differ)."""
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
    found = _evaluate(options)
    if options.json:
        print(json.dumps(found.to_plain(), indent=1))
    else:
        print_tables(evaluation_tables(found))
    if out:
        _write_page(found, options, out)
    return 0


def _evaluate(options: EvaluateOptions) -> Evaluation:
    model = load_model(options.model)
    target = Target(model.input_shape, model.fitted_normalization.scale, options.resize)
    reading = DataConfig(**{field.name: getattr(options, field.name) for field in fields(TableConfig)})
    x, y = read_labeled(options.data, reading, target=target, progress=not options.quiet).for_evaluation()
    warn_of_scale(x[: samples_per_chunk(model.input_shape)], target.scale)
    return evaluate_model(model, x, y)


def _write_page(found: Evaluation, options: EvaluateOptions, path: Path) -> None:
    from spacenet.report.page.build import save_page
    from spacenet.report.page.evaluation import evaluation_page

    data = ", ".join(source.name for source in options.data)
    save_page(evaluation_page(found, options.model.name, data), path)
    if not options.json:
        print(f"Wrote {path} ({format_bytes(path.stat().st_size)}); open it in a browser")
