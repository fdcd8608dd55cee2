"""Through how many files a training step and a `partial_fit` go: `python -m benchmarks.walks`.

A reader who follows one of them opens these files; fewer are better. It also counts how often a run builds its stream,
reads TOML and builds methods.
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

import spacenet
from spacenet.cli.main import main as command
from spacenet.config.model import NetConfig
from spacenet.config.run import read_toml
from spacenet.config.training import TrainingConfig
from spacenet.data.streams import build_stream
from spacenet.data.task import Samples, Task
from spacenet.methods import get_method
from spacenet.methods.base import Method
from spacenet.nets import build_net
from spacenet.training.hardware import Hardware
from spacenet.training.loop import make_optimizer, make_step

ROOT = Path(spacenet.__file__).parent
IMAGES, CLASSES, SHAPE = 64, 4, (3, 32, 32)


def trace_files(call: Callable[[], object]) -> list[str]:
    """The files of the package that a call calls into, in order; a file appears again when it is called again."""
    walk: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and ROOT in file.parents and (name := str(file.relative_to(ROOT))) != (walk or [""])[-1]:
            walk.append(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return walk


def count_calls(function: Callable[..., object], call: Callable[[], object]) -> int:
    """How often a function of Python is called during a call, e.g. how often a run reads TOML."""
    found = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal found
        found += event == "call" and frame.f_code is function.__code__

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


class RandomImages:
    """Random images of a task's classes."""

    def samples(self, task: Task, *, train: bool) -> Samples:
        rng = torch.Generator().manual_seed(task.index)
        return Samples(torch.randn(IMAGES, *SHAPE, generator=rng), torch.arange(IMAGES) % CLASSES)


def trace_cnn_step() -> list[str]:
    """The files that the second training step of spacenet on small-cnn passes through."""
    method_type = get_method("spacenet")
    method = method_type(build_net(NetConfig("small-cnn"), SHAPE), method_type.Settings())
    task = Task(0, tuple(range(CLASSES)), range(CLASSES), RandomImages())
    training = TrainingConfig(batch_size=IMAGES // 2, momentum=0.9)
    method.begin_task(task, task.train)
    step = make_step(method, task.train, make_optimizer(method, training), Hardware())
    first, second = torch.arange(IMAGES).split(IMAGES // 2)
    step(first)
    return trace_files(lambda: step(second))


def count_run() -> dict[str, int]:
    """How often `spacenet run` builds its stream, reads TOML and builds a method."""
    counted: dict[str, Callable[..., object]] = {
        "stream built": build_stream,
        "TOML read": read_toml,
        "methods built": Method.__init__,
    }
    return {name: count_calls(function, _short_run) for name, function in counted.items()}


def _short_run() -> None:
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        options = ["--epochs", "1", "--tasks", "0,1/2,3", "--quiet", "--json", "--no-report"]
        command(["run", "split-digits", *options, "--out", f"{folder}/run"])


def trace_partial_fit() -> tuple[list[str], int]:
    """The files of a second `partial_fit`, and how many methods it builds."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 8)), np.arange(40) % 2
    classifier = spacenet.SpaceNetClassifier(epochs=1).partial_fit(x, y)
    walk = trace_files(lambda: classifier.partial_fit(x, y + 2))
    return walk, count_calls(Method.__init__, lambda: classifier.partial_fit(x, y + 4))


def _show(title: str, walk: list[str]) -> None:
    files = list(dict.fromkeys(walk))
    print(f"{title}: {len(files)} files, entered {len(walk)} times")
    for file in files:
        print(f"  {file} ({walk.count(file)})")


def main() -> int:
    """Print what was found."""
    _show("One step of spacenet on small-cnn", trace_cnn_step())
    walk, built = trace_partial_fit()
    _show("A second partial_fit", walk)
    print(f"Methods built by it: {built}")
    for name, count in count_run().items():
        print(f"spacenet run, {name}: {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
