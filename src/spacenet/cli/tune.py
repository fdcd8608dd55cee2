"""`spacenet tune`: train an encoder on the classes of a first task, before anything is learned on its features."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from annotated_types import Ge, Gt, Le
from tyro.conf import arg

from spacenet.api.tuning import MIN_SIZE, tune_encoder
from spacenet.cli.forms import parse
from spacenet.cli.output import output_file, print_tables
from spacenet.registry import STREAMS

DATA_HELP = (
    f"Images of the classes to tune on: the first task of {', '.join(STREAMS)}, or all classes of images of your own: "
    "a folder with one sub-folder per class, .npz (x_train and y_train, or x and y), or .npy with --label FILE."
)
NAME_HELP = "The encoder to begin with: efficientnet-lite0 or -lite2, timm:NAME, torchvision:NAME."


@dataclass(frozen=True)
class TuneOptions:
    """Train a pretrained encoder of images further, on the classes of a first task, and write it to a file.

    Pass the file as --encoder to `spacenet fit`, `run` or `compare`. Tune before anything is learned: a model that has
    learned on an encoder's features needs this very encoder. It takes minutes on a GPU, and hours on a CPU for
    thousands of images.
    """

    data: Annotated[tyro.conf.Positional[str], arg(metavar="DATA", help=DATA_HELP)]
    encoder: Annotated[str, arg(metavar="NAME", help=NAME_HELP)]
    out: Path
    """The file to write, .pt2."""
    size: Annotated[int, Ge(MIN_SIZE)] | None = None
    """The side of the images that the network gets, in pixels; a smaller one is faster (default: the encoder's)."""
    mirror: bool = False
    """Average features over an image and its mirror image: more accurate, and twice as slow."""
    epochs: Annotated[int, Ge(1)] | None = None
    """Passes over the images (default: enough for about 600 steps, 4 to 100)."""
    learning_rate: Annotated[float, Gt(0), Le(1000)] = 0.03
    """Learning rate of SGD with momentum 0.9; it rises at first, and then goes down to 0."""
    batch_size: Annotated[int, Ge(1)] = 128
    """Images per step."""
    seed: Annotated[int, Ge(0)] = 0
    """Everything random follows from it."""
    classes_per_task: Annotated[int, Ge(1)] | None = None
    """Tune on the first so many classes only: those of the first task of `spacenet fit` with the same option."""
    first_classes: Annotated[int, Ge(1)] | None = None
    """Likewise, where the first task has more or fewer classes than the others."""
    tasks: str | None = None
    """The classes of each task, e.g. 0,1/2,3,4/5; the encoder is tuned on those of the first."""
    shuffle_classes: Annotated[int, Ge(0)] | None = None
    """Shuffle the order of the classes with this seed, as `spacenet run` does."""
    label: str | None = None
    """For images in an .npy file, a second one with the labels."""
    damaged: Literal["refuse", "skip"] | None = None
    """Image files that cannot be read: refuse the data (default), or skip and report them."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device; auto uses a GPU if there is one."""
    precision: Literal["32", "bf16"] = "32"
    """Precision of training; weights are always 32-bit."""
    threads: Annotated[int, Ge(1), Le(1024)] = 1
    """CPU threads."""
    json: bool = False
    """Print what was done as JSON instead of a table."""
    quiet: bool = False
    """Show no progress."""


def tune(arguments: list[str]) -> int:
    options = parse(TuneOptions, arguments, "tune")
    out = output_file(options.out, inputs=[options.data])
    own = ("data", "encoder", "out", "json", "quiet")
    given = {each.name: getattr(options, each.name) for each in fields(options) if each.name not in own}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    found = tune_encoder(options.data, options.encoder, out, progress=not options.quiet, **settings)
    if options.json:
        print(json.dumps(asdict(found) | {"path": str(found.path)}))
    else:
        print_tables(found.tables())
    return 0
