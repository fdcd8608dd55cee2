"""`spacenet fit`: make a first model from data of one's own."""

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge
from tyro.conf import arg

from spacenet.cli.forms import LabeledArgument, describe, fill, form_type
from spacenet.cli.learning import Learning, print_summary
from spacenet.cli.output import output_file
from spacenet.config.settings import check
from spacenet.config.stream import DataConfig, StreamConfig
from spacenet.data.memory import take_rows
from spacenet.data.sources import LabeledData, read_labeled
from spacenet.data.task import TaskLabels, rows_of, split_own_classes
from spacenet.encoders.loading import load_encoder
from spacenet.errors import SettingsError
from spacenet.model.estimator import SpaceNetClassifier
from spacenet.model.file import save_model
from spacenet.model.model import Model
from spacenet.model.parameters import METHODS as WITH_PARAMETERS
from spacenet.model.parameters import parameters_of
from spacenet.model.predictions import accuracy
from spacenet.registry import METHODS
from spacenet.utils.files import real_path
from spacenet.utils.lock import lock

METHOD_HELP = f"How to learn: {', '.join(METHODS)}. joint learns one task and no more."


@dataclass(frozen=True)
class FitOptions(DataConfig):
    """Make a model from data of your own: all classes at once, or task by task. `spacenet learn` adds more classes to
    it, `spacenet predict` uses it. It is the model of SpaceNetClassifier with the same settings.
    """

    data: LabeledArgument
    out: Path
    """Write the model to this file."""
    method: Annotated[str, arg(metavar="NAME", help=METHOD_HELP)] = SpaceNetClassifier().method
    net: str = "auto"
    """The network: mlp, small-cnn, resnet-18, wrn-DEPTH-WIDTH, or a registered name; auto takes the small CNN for
    images with channels, else the MLP."""
    classes_per_task: Annotated[int, Ge(1)] | None = None
    """Learn so many classes at a time, one task after the other (default: all classes in one task)."""
    first_classes: Annotated[int, Ge(1)] | None = None
    """Classes of the first task, if it has more or fewer than the others."""
    tasks: str | None = None
    """The classes of each task, e.g. 0,1/2,3,4/5; classes that are not listed are left out."""
    image_size: tuple[int, ...] | None = None
    """Resize images to this height and width in pixels, or one number for both."""
    seed: Annotated[int, Ge(0)] = 0
    """Everything random follows from it."""
    include_encoder: bool = False
    """Keep the encoder's weights in the model's file, so that it can be used where they are not installed."""
    json: bool = False
    """Print the summary as JSON."""
    quiet: bool = False
    """Show no progress."""


def fit(arguments: list[str]) -> int:
    options, settings = _parse(arguments)
    inputs = [options.data, *([options.test] if options.test is not None else [])]
    out = real_path(output_file(options.out, inputs=inputs))
    if out.exists():
        raise SettingsError(f"{options.out} is there already; choose another file, or remove it", setting="out")
    classifier = SpaceNetClassifier(method=options.method, net=options.net, random_state=options.seed, **settings)
    encoder = load_encoder(settings["encoder"]) if settings["encoder"] else None
    if options.include_encoder and encoder is None:
        raise SettingsError("goes with --encoder", setting="include_encoder")
    reading: dict[str, Any] = {"image_size": options.image_size, "encoder": encoder, "progress": not options.quiet}
    labeled = read_labeled([options.data], options, **reading)
    tasks = _split(options, labeled)
    with lock(out):
        model, learning = None, None
        for labels in tasks:
            rows = rows_of(labeled.y, labels)
            x, y = labeled.x[rows], labeled.y[rows]
            if model is None or learning is None:
                model = classifier.new_model(x)
                learning = Learning(model, options.quiet)
            learning.learn(x, y)
        assert model is not None
        assert learning is not None
        summary = learning.summary(_test(model, labeled, tasks), out)
        if options.include_encoder:
            model.include_encoder()
        save_model(out, model)
    print_summary(summary, options.json)
    return 0


def _parse(arguments: Sequence[str]) -> tuple[FitOptions, dict[str, Any]]:
    """The options of the command, and the settings that its method has."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--method", default=FitOptions.method)
    method = parser.parse_known_args(list(arguments))[0].method
    own = parameters_of(method)
    kind = make_dataclass("Settings", [(name, each.hint, field(default=each.default)) for name, each in own.items()])
    docs = {name: each.doc for name, each in own.items()}
    form = make_dataclass(
        "Form", [("main", form_type(FitOptions, doc="")), ("settings", form_type(kind, (), "", docs))]
    )
    filled = fill(form, arguments, "fit", describe(FitOptions))
    options = FitOptions(**vars(filled.main))
    check(options)
    settings = vars(filled.settings)
    if method not in WITH_PARAMETERS:
        settings["method_settings"] = {name: settings.pop(name) for name, each in own.items() if each.methods}
    return options, settings


def _split(options: FitOptions, labeled: LabeledData) -> TaskLabels:
    """The labels of each task."""
    cut = StreamConfig(
        classes_per_task=options.classes_per_task, first_classes=options.first_classes, tasks=options.tasks
    )
    return split_own_classes(np.unique(labeled.y).tolist(), cut)


def _test(model: Model, labeled: LabeledData, tasks: TaskLabels) -> float | None:
    """The accuracy on the test samples of the classes that were learned."""
    if labeled.x_test is None or labeled.y_test is None:
        return None
    rows = rows_of(labeled.y_test, [label for task in tasks for label in task])
    return accuracy(model, take_rows(labeled.x_test, rows), labeled.y_test[rows])
