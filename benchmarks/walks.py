"""Through how many files one training step goes: `python -m benchmarks.walks`, from the repository's root.

A reader who follows a step opens these files; fewer are better.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import spacenet
from spacenet.config.model import NetConfig
from spacenet.config.training import TrainingConfig
from spacenet.data.task import Samples, Task
from spacenet.methods import get_method
from spacenet.nets import build_net
from spacenet.training.hardware import Hardware
from spacenet.training.loop import make_optimizer, make_step

ROOT = Path(spacenet.__file__).parent
IMAGES, CLASSES, SHAPE = 64, 4, (3, 32, 32)


def trace_files(call: Callable[[], object]) -> list[str]:
    """The files of the package whose functions a call calls, in order; a file to which calls come back appears again."""
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


def main() -> int:
    """Print what was found."""
    walk = trace_cnn_step()
    files = list(dict.fromkeys(walk))
    print(f"One step of spacenet on small-cnn: {len(files)} files, entered {len(walk)} times")
    for file in files:
        print(f"  {file} ({walk.count(file)})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
