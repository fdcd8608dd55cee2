"""The streams that are known by name, and how to add more."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from spacenet.config.stream import CUSTOM, DEFAULT_CLASSES, StreamConfig
from spacenet.data.dataset import Dataset
from spacenet.data.datasets import load_dataset
from spacenet.data.sources import read_dataset
from spacenet.data.stream import Stream, Tasks
from spacenet.data.stream_specs import StreamSpec
from spacenet.data.task import format_tasks, split_classes
from spacenet.encoders.loading import load_encoder
from spacenet.registry import DATASETS, STREAMS, unknown


def stream(
    name: str,
    *,
    classes_per_task: int | None = None,
    first_classes: int | None = None,
    tasks: Tasks = None,
    shuffle_classes: int | None = None,
    validation: float = 0.0,
    data_dir: str | Path | None = None,
) -> Stream:
    """A stream by name; its data set is downloaded if it is not on this machine.

    Parameters
    ----------
    name : str
        split-digits, split-mnist, split-fashion-mnist, split-cifar-10, icifar-100, cifar-10-100, or a registered one.
    classes_per_task : int, optional
        Classes of each task; the last task may get fewer. By default 2, in icifar-100 20 and in cifar-10-100 10.
    first_classes : int, optional
        Classes of the first task, if it has more or fewer than the others.
    tasks : str or sequence of sequences, optional
        The labels of each task, as "0,1/2,3" or ((0, 1), (2, 3)). Classes that are not listed are left out.
    shuffle_classes : int, optional
        Shuffle the order of the classes with this seed, by ``numpy.random.RandomState(seed).permutation``. 1993 gives
        the order that many papers have for CIFAR-100.
    validation : float, default 0
        Test on this fraction of the training data, held out, instead of on the test set (to choose settings).
    data_dir : str or Path, optional
        Look for data sets here first (default: the environment variable SPACENET_DATA).

    Returns
    -------
    Stream

    Examples
    --------
    >>> import spacenet
    >>> spacenet.stream("split-digits")
    Stream('split-digits': 5 tasks, 10 classes, 1,442 training and 355 test samples of shape 8×8)
    >>> [task.labels for task in spacenet.stream("split-digits", tasks="0,9/5")]
    [(0, 9), (5,)]
    >>> [task.labels for task in spacenet.stream("split-digits", first_classes=4, shuffle_classes=1993)]
    [(4, 2, 7, 6), (0, 3), (5, 8), (9, 1)]
    """
    config = StreamConfig(
        name=name,
        classes_per_task=classes_per_task,
        first_classes=first_classes,
        tasks=tasks if tasks is None or isinstance(tasks, str) else format_tasks(tasks),
        shuffle_classes=shuffle_classes,
        validation=validation,
        data_dir=None if data_dir is None else Path(data_dir),
    )
    return build_stream(config)


def build_stream(config: StreamConfig, progress: bool = False, encoder: str | None = None) -> Stream:
    """The stream that a configuration describes; `progress` is shown while the user's own data is read. With an
    encoder, images of the user's may have any size, and samples are their features."""
    if config.data is not None:
        config = dataclasses.replace(config, name=CUSTOM if config.name in STREAMS else config.name)
        dataset, size = read_dataset(config, progress, load_encoder(encoder) if encoder else None), DEFAULT_CLASSES
    elif config.name in STREAMS:
        spec: StreamSpec = STREAMS[config.name]
        dataset, size = load_dataset(spec.dataset, config.data_dir), spec.classes_per_task
    else:
        raise unknown("stream", config.name, STREAMS)
    if config.validation:
        dataset = dataset.hold_out(config.validation)
    return Stream(config.name, dataset, split_classes(dataset.labels, config, size), config=config)


def register_stream(name: str, dataset: str, classes_per_task: int = 2) -> None:
    """Make a stream known by name in this process.

    Parameters
    ----------
    name : str
        The name of the stream.
    dataset : str
        The name of a data set; see `register_dataset`.
    classes_per_task : int, default 2
        Classes of each task unless the configuration says otherwise.

    Examples
    --------
    >>> import spacenet
    >>> from spacenet.data.streams import register_stream
    >>> register_stream("digits-in-halves", "digits", classes_per_task=5)
    >>> len(spacenet.stream("digits-in-halves"))
    2
    """
    if dataset not in DATASETS:
        raise unknown("data set", dataset, DATASETS)
    StreamConfig(classes_per_task=classes_per_task)  # checks it
    known = STREAMS[name] if name in STREAMS else None  # noqa: SIM401
    if isinstance(known, StreamSpec) and known.dataset == dataset:
        STREAMS.unregister(name)  # a notebook cell that was run again
    STREAMS.register(name, StreamSpec(dataset, classes_per_task))


def register_dataset(name: str, load: Callable[[Path | None], Dataset]) -> None:
    """Make a data set known by name in this process.

    Parameters
    ----------
    name : str
        The name of the data set.
    load : function
        Takes the user's data folder (or None) and returns a `spacenet.data.dataset.Dataset`.

    Examples
    --------
    >>> import numpy as np, spacenet
    >>> from spacenet.data.dataset import Dataset
    >>> from spacenet.data.streams import register_dataset, register_stream
    >>> def load_noise(data_dir):
    ...     x, y = np.random.default_rng(0).normal(size=(60, 8)), np.arange(60) % 6
    ...     return Dataset("noise", x, y, x, y)
    >>> register_dataset("noise", load_noise)
    >>> register_stream("split-noise", "noise")
    >>> spacenet.stream("split-noise")
    Stream('split-noise': 3 tasks, 6 classes, 60 training and 60 test samples of shape 8)
    """
    DATASETS.register(name, load)
