"""What is measured: Split MNIST with its preset, at any hidden width and in each of the forms that are compared."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.command import load
from spacenet.config.model import NetConfig
from spacenet.config.presets import preset_config
from spacenet.config.run import RunConfig
from spacenet.data.datasets import MNIST
from spacenet.data.fetch import DATA_VARIABLE
from spacenet.data.stream import Stream
from spacenet.data.streams import build_stream
from spacenet.methods.shared.sparse_settings import AdaptiveSettings

STREAM = "split-mnist"


@dataclass(frozen=True)
class WorkloadOptions:
    """What every command that measures on it can be asked for."""

    threads: int = 1
    """Processor threads of torch."""
    json: Path | None = None
    """Also write the raw figures to this file."""
    data_dir: Path | None = None
    """Where MNIST is (default: as for spacenet run); without it random numbers do."""
    tiny: bool = False
    """Tiny sizes and random data: shows whether the measuring works, nothing else."""

    def conditions(self) -> dict[str, Any]:
        """Under what figures are taken, to be kept with them."""
        return {"torch": torch.__version__, "threads": self.threads, "load_at_the_start": load()}


@dataclass(frozen=True)
class Workload:
    """The run to measure, in its compact form, and the hidden widths at which its steps are measured."""

    config: RunConfig
    data: str
    """What it learns from, in words."""
    step_widths: tuple[int, ...] = (400, 4_000)
    """Where the compact form is compared with dense ones."""
    widths: tuple[int, ...] = (400, 4_000, 40_000)
    """Where the compact form is measured alone; the first is what the others are compared with."""

    def at(self, width: int) -> RunConfig:
        """The run with two hidden layers of this width; all that a task may use stays as it is."""
        return with_model(self.config, net=NetConfig(hidden=(width, width)))


def with_model(config: RunConfig, **changes: Any) -> RunConfig:
    """The same run with other parts of its model configuration."""
    return replace(config, model=replace(config.model, **changes))


def stream_of(config: RunConfig) -> Stream:
    """What the run learns, with its preprocessing."""
    return build_stream(config.stream).with_preprocessing(config.model.preprocessing)


def masked_dense(config: RunConfig) -> RunConfig:
    """The same run in masked dense form."""
    return replace(config, model=config.model.replace(masked_dense=True))


@contextmanager
def workload(threads: int, data_dir: Path | None, *, tiny: bool) -> Iterator[Workload]:
    """The full workload, or one so tiny that it only shows whether the measuring works.

    If MNIST is nowhere on this machine, random numbers of the same shape take its place: no download enters a figure.
    """
    known = MNIST
    named = data_dir or os.environ.get(DATA_VARIABLE)
    folder = Path(named).expanduser().resolve() if named else None
    data: dict[str, object] = {"data_dir": folder}
    with tempfile.TemporaryDirectory() as scratch:
        if tiny or known.find(folder).where is None:
            sizes = (600, 200) if tiny else (known.train, known.test)
            data["data"] = random_samples(Path(scratch) / "random.npz", *sizes, known.shape)
        config = preset_config(STREAM, "spacenet", {"stream": data, "training": {"threads": threads}})
        words = f"random numbers in the shape of MNIST ({sizes[0]:,} samples)" if "data" in data else "MNIST"
        yield _tiny(Workload(config, words)) if tiny else Workload(config, words)


def _tiny(full: Workload) -> Workload:
    settings = full.config.model.method_settings
    assert isinstance(settings, AdaptiveSettings)
    settings = replace(settings, selected=(10,), reserved=(5,), connections=(200, 40, 8))
    training = replace(full.config.model.training, epochs=2, batch_size=32)
    net = NetConfig(hidden=(50, 50))
    config = with_model(full.config, net=net, method_settings=settings, training=training)
    return replace(full, config=config, step_widths=(50, 100), widths=(50, 100, 200))


def random_samples(path: Path, train: int, test: int, shape: tuple[int, ...], classes: int = 10) -> Path:
    """A file of random images in the form that `spacenet run` takes."""
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {}
    for part, count in (("train", train), ("test", test)):
        arrays[f"x_{part}"] = rng.integers(0, 256, (count, *shape), dtype=np.uint8)
        arrays[f"y_{part}"] = np.arange(count) % classes
    # The keyword parameters of savez are arrays by any name, which its stub tells from allow_pickle only by value.
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path
