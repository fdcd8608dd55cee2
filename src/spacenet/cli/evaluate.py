"""`spacenet evaluate`: measure a model on labeled data."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import arg

from spacenet.cli.forms import ModelArgument, parse
from spacenet.cli.output import output_file, print_tables
from spacenet.data.arrays import read_arrays
from spacenet.data.checks import looks_scaled
from spacenet.errors import SettingsError
from spacenet.model.evaluation import Evaluation, evaluate_model
from spacenet.model.file import load_model
from spacenet.report.evaluation_tables import evaluation_tables
from spacenet.utils.text import format_bytes

log = logging.getLogger("spacenet")
DATA = "Labeled data: .npz with x_test and y_test, or with x and y."


@dataclass(frozen=True)
class EvaluateOptions:
    """Measure a model on labeled data: accuracy on each task, precision and recall of each class, old against new
    classes, confusion and calibration. Samples with labels that the model does not know are counted and left out.
    """

    model: ModelArgument
    data: Annotated[tyro.conf.Positional[tuple[Path, ...]], arg(metavar="DATA …", help=DATA, help_behavior_hint="")]
    json: bool = False
    """Print everything as JSON instead of tables."""
    out: Path | None = None
    """Write an HTML page with all plots to this file too."""


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
    x, y = read_arrays(options.data[0].expanduser(), ("x_test", "y_test"), ("x", "y")).values()
    if looks_scaled(x, model.fitted_normalization.scale):
        log.warning(
            "spacenet: warning: the model learned from bytes (0 to 255), and these values lie between 0 and 1; "
            "multiply them by 255"
        )
    return evaluate_model(model, x, y)


def _write_page(found: Evaluation, options: EvaluateOptions, path: Path) -> None:
    from spacenet.report.page.build import save_page
    from spacenet.report.page.evaluation import evaluation_page

    data = ", ".join(source.name for source in options.data)
    save_page(evaluation_page(found, options.model.name, data), path)
    if not options.json:
        print(f"Wrote {path} ({format_bytes(path.stat().st_size)}); open it in a browser")
