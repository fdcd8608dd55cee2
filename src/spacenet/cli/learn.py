"""`spacenet learn`: add a task to a saved model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge

from spacenet.cli.forms import LabeledArgument, ModelArgument, parse
from spacenet.cli.learning import Learning, print_summary
from spacenet.cli.output import output_file
from spacenet.config.stream import DataConfig
from spacenet.data.sources import LabeledData, read_labeled
from spacenet.errors import DataError
from spacenet.model.file import load_model, save_model
from spacenet.model.journal import replace_model
from spacenet.model.model import Model
from spacenet.model.predictions import accuracy
from spacenet.utils.files import real_path
from spacenet.utils.lock import lock


@dataclass(frozen=True)
class LearnOptions(DataConfig):
    """Add the classes in a file or folder to a saved model, as one task. What it learned before stays as it is.

    Samples of classes that the model knows already update what is kept of these classes, which takes no space.
    """

    model: ModelArgument
    data: LabeledArgument
    out: Path | None = None
    """Write the new model here (default: replace the old one, in one move when it is complete; the version before is
    kept as MODEL.undo, for spacenet edit MODEL undo)."""
    epochs: Annotated[int, Ge(1)] | None = None
    """Passes over the data, for this task only (default: what the model was made with)."""
    expand: str | None = None
    """Add units for this task: auto where it does not fit (default: what the model was made with)."""
    resize: bool = False
    """Resize images to the model's size (stretched, if their proportions differ)."""
    include_encoder: bool = False
    """Keep the encoder's weights in the model's file, so that it can be used where they are not installed."""
    json: bool = False
    """Print the summary as JSON."""
    quiet: bool = False
    """Show no progress."""


def learn(arguments: list[str]) -> int:
    options = parse(LearnOptions, arguments, "learn")
    out = real_path(output_file(options.out or options.model, inputs=[options.data]))
    with lock(out):  # from reading to writing: what another process learns meanwhile would be lost
        summary = _learn(options, out)
    print_summary(summary, options.json)
    return 0


def _learn(options: LearnOptions, out: Path) -> dict[str, Any]:
    model = load_model(options.model)
    labeled = _read(options, model)
    config = model.config
    given = {"epochs": options.epochs, "expand": options.expand}
    learning = Learning(model, options.quiet)
    changed = config.replace(**{name: value for name, value in given.items() if value is not None})
    learning.learn(labeled.x, labeled.y, changed)
    model.config = config
    has_test = labeled.x_test is not None
    tested = accuracy(model, *labeled.for_evaluation()) if has_test else None
    summary = learning.summary(tested, out)
    if options.include_encoder:
        model.include_encoder()
    save = replace_model if out == real_path(options.model) else save_model
    save(out, model)
    return summary


def _read(options: LearnOptions, model: Model) -> LabeledData:
    """What there is for a model to learn, and to evaluate it with; checked before it is learned."""
    target = model.target(options.resize)
    labeled = read_labeled([options.data], options, target=target, progress=not options.quiet)
    try:
        model.check_task(labeled.x[:], labeled.y)
        if labeled.x_test is not None and labeled.y_test is not None:
            model.check_task(labeled.x_test[:], labeled.y_test)
    except DataError as error:
        raise DataError(f"{options.data}: {error}") from error
    return labeled
