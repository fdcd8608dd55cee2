"""`tune_encoder`: an encoder of images that is trained further on the classes of a first task."""

import time
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from spacenet.api.results import Shown
from spacenet.api.settings import STREAM_SETTINGS, is_path, settings_layers
from spacenet.config.settings import from_plain
from spacenet.config.stream import CUSTOM, StreamConfig
from spacenet.config.training import TrainingConfig
from spacenet.data.memory import take_rows
from spacenet.data.preprocessing import Array
from spacenet.data.sources import read_labeled
from spacenet.data.stream import Stream
from spacenet.data.streams import build_stream
from spacenet.data.task import rows_of, split_own_classes
from spacenet.data.user_data import arrays_from_memory
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput
from spacenet.encoders.loading import encoder_name, load_encoder
from spacenet.encoders.tuned import find_network, write_tuned
from spacenet.errors import SettingsError
from spacenet.experiments.callbacks import Callback, default_callbacks
from spacenet.registry import unknown
from spacenet.report.tables import Table, tuned_table
from spacenet.training.tuning import tune
from spacenet.utils.files import real_path, save_bytes
from spacenet.utils.threads import use_threads

SUFFIX = ".pt2"
MIN_SIZE = 8


@dataclass(frozen=True, repr=False, eq=False)
class TunedEncoder(Shown):
    """An encoder that was tuned.

    Attributes
    ----------
    path : Path
        Its file, which `encoder=` takes.
    encoder : str
        What it was before.
    size : int
        The side of the images that it takes.
    features : int
        How many numbers it gives for an image.
    labels : tuple
        The classes that it was tuned on.
    images : int
        How many images of them there were.
    epochs : int
        Passes over them.
    training_accuracy : float
        How many of them, slightly changed, were told apart in the last epoch, in percent.
    seconds : float
        What it took.
    bytes : int
        The size of the file.
    """

    path: Path
    encoder: str
    size: int
    features: int
    labels: tuple[object, ...]
    images: int
    epochs: int
    training_accuracy: float
    seconds: float
    bytes: int

    def tables(self) -> list[Table]:
        return [tuned_table(vars(self))]


def tune_encoder(
    data: Any,
    encoder: "str | Encoder | Any",
    out: str | Path,
    *,
    size: int | None = None,
    mirror: bool = False,
    epochs: int | None = None,
    learning_rate: float = 0.03,
    batch_size: int = 128,
    seed: int = 0,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    precision: Literal["32", "bf16"] = "32",
    threads: int = 1,
    progress: bool = True,
    **settings: Any,
) -> TunedEncoder:
    """Train an encoder of images on the classes of a first task, and write it to a file that is an encoder.

    All of its layers are trained, with a linear layer behind them that is not kept. Tuned once, before anything is
    learned, it stays as it is: features of later tasks' classes come from the same network, and no old data is needed.

    Parameters
    ----------
    data : Stream, str, path or data
        What to tune on: the training images of the first task of a stream, or of what `Stream.from_data` takes (a
        folder of images, arrays, …). In data of one's own this task has all classes, unless `classes_per_task`,
        `first_classes` or `tasks` say otherwise.
    encoder : str, module or Encoder
        An encoder of images whose network is a torch module: "efficientnet-lite0", "timm:NAME", …
    out : str or path
        The file to write, .pt2. Pass it as `encoder=` from then on.
    size : int, optional
        The side of the images that the network gets. A smaller one is faster. By default that of the encoder.
    mirror : bool, default False
        Whether the encoder averages its features over an image and its mirror image: more accurate, and twice as slow.
    epochs : int, optional
        Passes over the images; by default enough for about 600 steps, 4 to 100.
    learning_rate, batch_size : float, int
        Of SGD with momentum 0.9. The rate rises in the first fifth of the epochs, and then goes down to 0.
    seed : int
        Everything random follows from it.
    device, precision, threads
        Where and how to compute, as for `run`. On a CPU this takes hours for thousands of images.
    progress : bool
        Show how far it is.
    **settings
        How data is read and cut into tasks, as for `run`.

    Returns
    -------
    TunedEncoder

    Examples
    --------
    Two classes of tiny images, and a network that is made here; one that was trained on photos is better.

    >>> import tempfile
    >>> import numpy as np
    >>> import spacenet
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> images = np.random.default_rng(0).integers(0, 256, (20, 3, 16, 16), dtype=np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tuned = spacenet.tune_encoder(
    ...         (images, [0, 1] * 10), network, f"{folder}/tuned.pt2", size=16, epochs=2, progress=False
    ...     )
    ...     classifier = spacenet.SpaceNetClassifier(encoder=str(tuned.path), epochs=2).fit(images, [0, 1] * 10)
    >>> tuned.images, tuned.features, classifier.tasks_
    (20, 8, [(0, 1)])
    """
    began, path = time.perf_counter(), real_path(Path(out).expanduser())
    check_out(path)
    name = encoder_name(encoder)
    if name is None:
        raise SettingsError("name an encoder of images", setting="encoder")
    found = load_encoder(name)
    find_network(found)
    assert found.images is not None
    images = found.images
    size = images.size if size is None else size
    if size < MIN_SIZE:
        raise SettingsError(f"{size} is out of range ({MIN_SIZE} or more)", setting="size")
    training = TrainingConfig(
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, schedule="one-cycle", momentum=0.9,
        nesterov=True, weight_decay=1e-4, augment="crop-flip", bn_recalibration_epochs=0, device=device,
        precision=precision, threads=threads,
    )  # fmt: skip
    x, y, labels = first_task(data, settings, replace(images, size=size), progress)
    (callback,) = default_callbacks(progress) or [Callback()]
    with closing(callback), use_threads(threads):
        calls: Any = {"on_batch": partial(callback.on_batch_end, 0), "on_epoch": callback.on_epoch_end}
        tuned = tune(found, x, y, size=size, training=training, seed=seed, **calls)
    content = write_tuned(tuned.network, images, size, mirror)
    save_bytes(path, content)
    return TunedEncoder(
        path, found.name, size, load_encoder(str(path)).features, labels, len(x), tuned.last.epochs,
        tuned.last.accuracy, time.perf_counter() - began, len(content),
    )  # fmt: skip


def check_out(path: Path) -> None:
    """Raise `SettingsError` for a file that is no place for an encoder."""
    if path.suffix != SUFFIX:
        raise SettingsError(f"{path.name} does not end in {SUFFIX}, as encoders in files do", setting="out")
    if path.exists():
        raise SettingsError(f"{path} is there already; choose another file, or remove it", setting="out")


def first_task(
    data: Any, settings: dict[str, Any], images: ImageInput, progress: bool
) -> tuple[Array, Array, tuple[object, ...]]:
    """The training images of the first task as they were read, the number of the class of each, and the labels."""
    for name in settings:
        if name not in STREAM_SETTINGS:
            raise unknown("setting", name, STREAM_SETTINGS)
    source = str(data) if isinstance(data, Path) else data
    plain = settings_layers(source if isinstance(source, Stream | str) else CUSTOM, "naive", settings)["stream"]
    stream = source if isinstance(source, Stream) else None
    if isinstance(source, str) and not is_path(source):
        stream = build_stream(from_plain(StreamConfig, plain | {"name": source}))
    if stream is not None:
        x, y, labels = stream.dataset.x_train, np.asarray(stream.dataset.y_train), stream.task_labels[0]
    else:
        config = from_plain(StreamConfig, plain)
        if config.data is not None:
            found = read_labeled([config.data], config, images=images, progress=progress)
            x, y = found.x, found.y
        else:
            x, y = arrays_from_memory("data", source, config)
        labels = split_own_classes(np.unique(y).tolist(), config)[0]
    rows, numbers = rows_of(y, labels), {label: number for number, label in enumerate(labels)}
    return np.asarray(take_rows(x, rows)[:]), np.array([numbers[label] for label in y[rows].tolist()]), labels
