"""What a GPU makes of it: `python -m benchmarks.gpu`, on an idle one.

Training steps of a wide residual network, task by task: compact against the same network masked and dense. Then a whole
run of the small CNN, with the share of time in which the GPU was busy.
"""

import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from rich.console import Console

from benchmarks.command import measured, read_options
from benchmarks.stepping import Stepper, after_tasks, alternate, dense_stepper, new_method
from benchmarks.workload import masked_dense, random_samples, stream_of, with_model
from spacenet.config.model import NetConfig
from spacenet.config.presets import preset_config
from spacenet.config.run import RunConfig
from spacenet.data.stream import Stream
from spacenet.experiments.run import Run
from spacenet.methods.spacenet import SpaceNet
from spacenet.report.tables import Table
from spacenet.training.hardware import Hardware, find_hardware

COMPACT, MASKED, DENSE = "compact", "masked", "dense"
CLASSES = 100
FEW, ALL = 50, 500
"""Images of a class: enough to take steps with, and as many as CIFAR-100 has."""
BUSY_EVERY = 0.2
Figures = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What to measure."""

    precisions: tuple[str, ...] = ("bf16", "32")
    """Precisions in which the residual network's steps are measured."""
    seconds_per_cell: float = 1.0
    """Time given to each cell of the table of steps."""
    epochs: int = 20
    """Epochs per task of the small CNN's run."""
    json: Path | None = None
    """Also write the raw figures to this file."""
    tiny: bool = False
    """Tiny sizes, on whatever device there is: shows whether the measuring works, nothing else."""


def measure(options: Options, console: Console) -> Figures:
    """Measure and print; returns the raw figures. Random images: neither accuracy nor a data set is needed here."""
    with _random_stream(options.tiny, FEW) as data:
        figures: Figures = {"device": find_hardware(_wide(data, options, "32").model.training).describe(), "steps": {}}
        figures["torch"] = torch.__version__
        console.print(f"{figures['device']}, torch {figures['torch']}", highlight=False)
        for precision in options.precisions:
            figures["steps"][precision] = compare_tasks(_wide(data, options, precision), options.seconds_per_cell)
            console.print(steps_table(precision, figures["steps"][precision]))
    with _random_stream(options.tiny, ALL) as data:
        figures["run"] = measure_run(_small(data, options))
        console.print(run_table(figures["run"]))
    return figures


def compare_tasks(config: RunConfig, seconds: float) -> list[Figures]:
    """Milliseconds per step of each form, in every task."""
    stream, hardware = stream_of(config), find_hardware(config.model.training)
    return [_compare_task(config, stream, number, hardware, seconds) for number in range(len(stream))]


def _compare_task(config: RunConfig, stream: Stream, number: int, hardware: Hardware, seconds: float) -> Figures:
    *earlier, task = list(stream)[: number + 1]
    learned = after_tasks(config, stream, earlier, hardware)
    steppers = {}
    for form, its_config in ((COMPACT, config), (MASKED, masked_dense(config))):
        method = new_method(SpaceNet, its_config, stream, hardware.device)
        method.load_state(learned.state())
        steppers[form] = Stepper(method, task, its_config, hardware)
    steppers[DENSE] = dense_stepper(config, stream, [*earlier, task], hardware)
    timings = alternate(steppers, seconds)
    compact = steppers[COMPACT].method
    assert isinstance(compact, SpaceNet)
    live = {name: len(units) for name, units in compact.active_workspace().units.items()}
    size = config.model.training.batch_size
    return {
        "task": number,
        "steps": {form: vars(timing) for form, timing in timings.items()},
        "samples_per_second": {form: 1000 * size / timing.ms for form, timing in timings.items()},
        "live_units": live,
    }


def steps_table(precision: str, figures: list[Figures]) -> Table:
    """Milliseconds, images per second and ratios, one row per task."""
    rows = []
    for f in figures:
        ms = {form: timing["ms"] for form, timing in f["steps"].items()}
        rows.append(
            [
                str(f["task"] + 1),
                *(f"{ms[form]:.2f}" for form in (COMPACT, MASKED, DENSE)),
                f"{f['samples_per_second'][COMPACT]:,.0f}",
                f"{ms[MASKED] / ms[COMPACT]:.2f}",
                f"{ms[DENSE] / ms[COMPACT]:.2f}",
            ]
        )
    columns = ["task", "compact ms", "masked ms", "dense ms", "compact images/s", "masked / compact", "dense / compact"]
    return Table(f"A training step of WRN-28-10, precision {precision}", columns, rows)


def measure_run(config: RunConfig) -> Figures:
    """A whole run, and how busy the GPU was meanwhile."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Run(config, folder=Path(scratch) / "run")
        with _busy() as samples:
            began = time.perf_counter()
            metrics = run.execute().metrics
            seconds = time.perf_counter() - began
    steps = sum(len(task["epochs"]) for task in metrics["tasks"]) * -(
        -_task_size(config) // config.model.training.batch_size
    )
    return {
        "seconds": seconds,
        "steps": steps,
        "busy_percent": mean(samples) if samples else None,
        "busy_samples": len(samples),
    }


def _task_size(config: RunConfig) -> int:
    return len(stream_of(config)[0].train)


@contextlib.contextmanager
def _busy() -> Iterator[list[float]]:
    """While inside, collects the driver's figure for the share of time in which any kernel ran."""
    samples: list[float] = []
    ended = threading.Event()

    def callback() -> None:
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not ended.wait(BUSY_EVERY):
            with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
                found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
                samples.append(float(found.stdout.splitlines()[0]))

    thread = threading.Thread(target=callback, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()


def run_table(figures: Figures) -> Table:
    busy = "unknown" if figures["busy_percent"] is None else f"{figures['busy_percent']:.0f} %"
    rows = [
        ["whole run", f"{figures['seconds']:.1f} s"],
        ["training steps", f"{figures['steps']:,}"],
        ["GPU busy (driver's figure)", busy],
    ]
    return Table("The small CNN, five tasks", (), rows)


def _wide(data: Figures, options: Options, precision: str) -> RunConfig:
    over = {"stream": data, "training": {"precision": precision}}
    config = preset_config("icifar-100", "spacenet", over, preset="wrn-28-10")
    return _tiny(config, "wrn-10-1") if options.tiny else config


def _small(data: Figures, options: Options) -> RunConfig:
    config = preset_config("icifar-100", "spacenet", {"stream": data, "training": {"epochs": options.epochs}})
    return _tiny(config, "small-cnn") if options.tiny else config


def _tiny(config: RunConfig, net: str) -> RunConfig:
    training = replace(config.model.training, device="cpu", epochs=1, batch_size=4)
    settings = config.model.method_settings
    settings = replace(settings, selected=(0,), reserved=(0,), connections=(0.1,))  # type: ignore[call-arg]
    return with_model(config, net=NetConfig(net), training=training, method_settings=settings)


@contextlib.contextmanager
def _random_stream(tiny: bool, each: int) -> Iterator[Figures]:
    """Random images in five tasks, as settings of a stream."""
    classes, each = (10, 1) if tiny else (CLASSES, each)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "random.npz"
        random_samples(path, classes * each, classes, (3, 32, 32), classes)
        yield {"data": path, "classes_per_task": classes // 5}


def main(arguments: list[str] | None = None) -> int:
    options = read_options(Options, "gpu", arguments)
    if not options.tiny and not torch.cuda.is_available():
        print("benchmarks.gpu: there is no GPU here that torch can use; --tiny shows how it works", file=sys.stderr)
        return 2
    return measured("gpu", options, measure)


if __name__ == "__main__":
    sys.exit(main())
