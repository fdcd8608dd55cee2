"""What a training step of spacenet-experts costs: `python -m benchmarks.expert_steps`, on an idle GPU.

A step of the preset `experts` in the first and in the last task of each cut of iCIFAR-100, beside a step of the dense
WRN-28-10, which has as many numbers as all experts may keep together. The expert learns each image in four
orientations. The dense network is measured both ways: with the four orientations as well, which is the same work, and
with upright images only, which is a quarter of it.
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks.command import measured, read_options
from benchmarks.stepping import Stepper, Timing, after_tasks, alternate, dense_stepper
from benchmarks.workload import random_samples, stream_of, with_model
from spacenet.config.model import NetConfig
from spacenet.config.presets import preset_config
from spacenet.config.run import RunConfig
from spacenet.methods.shared.rotations import ORIENTATIONS
from spacenet.methods.spacenet_experts import SpaceNetExperts
from spacenet.report.tables import Table
from spacenet.training.hardware import find_hardware

EXPERT, SAME_WORK, UPRIGHT = "expert", "dense, four orientations", "dense, upright"
CLASSES = 100
Figures = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What to measure."""

    classes_per_task: tuple[int, ...] = (20, 10, 5)
    """The cuts: classes of each task."""
    seconds_per_cell: float = 1.0
    """Time given to each cell of the table."""
    json: Path | None = None
    """Also write the raw figures to this file."""
    tiny: bool = False
    """Tiny sizes, on whatever device there is: shows whether the measuring works, nothing else."""


def measure(options: Options, console: Console) -> Figures:
    """Measure and print; returns the raw figures. Random images: neither accuracy nor a data set is needed here."""
    figures: Figures = {"date": date.today().isoformat(), "torch": torch.__version__, "steps": []}
    with tempfile.TemporaryDirectory() as scratch:
        each = 2 if options.tiny else 120  # a task of five classes fills the largest batch
        data = random_samples(Path(scratch) / "random.npz", CLASSES * each, CLASSES, (3, 32, 32), CLASSES)
        for per_task in options.classes_per_task:
            config = _config({"data": data, "classes_per_task": per_task}, options)
            figures["hardware"] = find_hardware(config.model.training).describe()
            for last in (False, True):
                timings = compare_steps(config, options.seconds_per_cell, last=last)
                found = {form: vars(timing) for form, timing in timings.items()}
                figures["steps"].append({"tasks": CLASSES // per_task, "last": last, "ms": found})
    console.print(f"{figures['hardware']}, torch {figures['torch']}", highlight=False)
    console.print(table(figures["steps"]))
    return figures


def compare_steps(config: RunConfig, seconds: float, *, last: bool) -> dict[str, Timing]:
    """Milliseconds per step in the first task or in the last one."""
    stream, hardware = stream_of(config), find_hardware(config.model.training)
    *earlier, task = list(stream)[: len(stream) if last else 1]
    learned = after_tasks(config, stream, earlier, hardware, kind=SpaceNetExperts)
    steppers = {EXPERT: Stepper(learned, task, config, hardware)}
    for form, factor in ((SAME_WORK, ORIENTATIONS), (UPRIGHT, 1)):
        steppers[form] = dense_stepper(_dense(config, factor), stream, [*earlier, task], hardware)
    return alternate(steppers, seconds)


def table(figures: Sequence[Figures]) -> Table:
    """Milliseconds and ratios, one row for the first and one for the last task of each cut."""
    rows = []
    for f in figures:
        ms = {form: timing["ms"] for form, timing in f["ms"].items()}
        ratios = (f"{ms[form] / ms[EXPERT]:.1f}" for form in (SAME_WORK, UPRIGHT))
        times = (f"{ms[form]:.2f}" for form in (EXPERT, SAME_WORK, UPRIGHT))
        rows.append([str(f["tasks"]), "last" if f["last"] else "first", *times, *ratios])
    forms = ["expert ms", "four orientations ms", "upright ms", "four orientations / expert", "upright / expert"]
    return Table("A training step beside the dense WRN-28-10", ["tasks", "task", *forms], rows)


def _config(stream: Figures, options: Options) -> RunConfig:
    over: Figures = {"stream": stream}
    if options.tiny:
        over |= {"training": {"precision": "32", "device": "cpu", "batch_size": 4}, "method": {"max_weights": 20_000}}
    return preset_config("icifar-100", "spacenet-experts", over, preset="experts")


def _dense(config: RunConfig, factor: int) -> RunConfig:
    """The plain network, with so many times the samples in a batch."""
    net = "wrn-10-1" if config.model.training.device == "cpu" else "wrn-28-10"
    training = replace(config.model.training, batch_size=factor * config.model.training.batch_size)
    return with_model(config, net=NetConfig(net), training=training)


def main(arguments: list[str] | None = None) -> int:
    options = read_options(Options, "expert_steps", arguments)
    if not options.tiny and not torch.cuda.is_available():
        print("expert_steps: there is no GPU here that torch can use; --tiny shows how it works", file=sys.stderr)
        return 2
    return measured("expert_steps", options, measure)


if __name__ == "__main__":
    sys.exit(main())
