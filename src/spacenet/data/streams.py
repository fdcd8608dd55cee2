"""The streams by name: data sets and the task sequences made from them."""

from spacenet.data.npz import load_npz
from spacenet.data.readers import load_dataset
from spacenet.data.stream import Samples, Stream, StreamConfig, Task, cut_classes
from spacenet.errors import SettingsError

__all__ = ["NPZ", "STREAMS", "Samples", "Stream", "StreamConfig", "Task", "build_stream"]

STREAMS = {
    "split-digits": ("digits", 2),
    "split-mnist": ("mnist", 2),
    "split-fashion-mnist": ("fashion-mnist", 2),
    "split-cifar-10": ("cifar-10", 2),
    "icifar-100": ("cifar-100", 20),
    # All of CIFAR-10 first, then the classes 0 to 49 of CIFAR-100 in tasks of ten.
    "cifar-10-100": ("cifar-10-100", 10),
}
"""For each stream its data set and how many classes a task has unless the settings say otherwise."""
NPZ = "npz"
"""The name of a stream made from the user's own file."""


def build_stream(name: str, settings: StreamConfig | None = None) -> Stream:
    """The stream of this name, cut as the settings say."""
    settings = settings or StreamConfig()
    if settings.npz is not None:
        name, dataset, size = NPZ, load_npz(settings.npz), 2
    elif name in STREAMS:
        dataset, size = load_dataset(STREAMS[name][0], settings.data_dir), STREAMS[name][1]
    else:
        raise SettingsError(f"stream: there is no {name!r}; there are {', '.join(STREAMS)}, or --npz FILE")
    if settings.validation:
        dataset = dataset.held_out(settings.validation)
    return Stream(name, dataset, cut_classes(dataset, settings, size), settings.centering)
