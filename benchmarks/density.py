"""What class statistics cost: `python -m benchmarks.density`, from the repository's root.

`spacenet-density` against `spacenet`, in turns: all tasks learned, and raw images to labels. On Split MNIST both train
the same network with the same settings, so the difference is what the class statistics take. On another stream
(`--stream icifar-100 --preset wrn-28-10`) each has its own preset, and tasks are learned on the GPU if there is one.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

import torch
from rich.console import Console

from benchmarks.command import measured, read_options
from benchmarks.prediction import as_model, samples_like, to_labels
from benchmarks.stepping import alternate, new_method
from benchmarks.workload import WorkloadOptions, stream_of, with_model, workload
from spacenet.config.presets import preset_config
from spacenet.config.run import RunConfig
from spacenet.methods import get_method
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.methods.shared.sparse_settings import AdaptiveSettings
from spacenet.methods.spacenet_density import DensitySettings
from spacenet.model.model import Model
from spacenet.report.tables import Table
from spacenet.training.hardware import find_hardware
from spacenet.training.loop import learn_task

Figures = dict[str, Any]
PLAIN, WITH = "spacenet", "spacenet-density"
MOST_TRAINING, MOST_PREDICTING = 1.5, 3.0
"""How many times as long learning and predicting may take."""


@dataclass(frozen=True)
class Options(WorkloadOptions):
    """What class statistics cost."""

    stream: str | None = None
    """Another stream than Split MNIST, with the presets of both methods."""
    preset: str | None = None
    """Which of the stream's presets."""
    batches: tuple[int, ...] = (1, 1_000)
    """How many samples are predicted at a time."""
    repeats: int = 5
    """How often both learn all tasks."""
    seconds_per_cell: float = 3.0
    """Time given to predictions of each method at each batch size."""


def measure(options: Options, console: Console) -> Figures:
    """Measure and print; returns the raw figures."""
    torch.set_num_threads(options.threads)
    figures: Figures = options.conditions()
    with what_is_learned(options) as (figures["data"], configs):
        seconds: dict[str, list[float]] = {name: [] for name in configs}
        models: dict[str, Model] = {}
        learned(configs[PLAIN], warm_up=True)
        for _ in range(options.repeats):
            for name, config in configs.items():
                models[name], spent = learned(config)
                seconds[name].append(spent)
        figures |= {"training_seconds": seconds, "predicting_ms": {}}
    for batch in options.batches:
        calls = {name: to_labels(model, samples_like(batch, model)) for name, model in models.items()}
        times = alternate(calls, options.seconds_per_cell)
        figures["predicting_ms"][str(batch)] = {name: each.ms for name, each in times.items()}
    kept = models[WITH].method.class_memory(models[WITH].input_shape)
    figures["floats_per_class"] = kept.floats if kept else 0
    console.print(cost_table(figures))
    console.print(verdict(figures), highlight=False)
    return figures


@contextmanager
def what_is_learned(options: Options) -> Iterator[tuple[str, dict[str, RunConfig]]]:
    """The data in words, and the run of each method."""
    if options.stream is None:
        with workload(options.threads, options.data_dir, tiny=options.tiny) as work:
            plain = with_model(work.config, training=replace(work.config.model.training, device="cpu"))
            yield work.data, {PLAIN: plain, WITH: with_statistics(plain)}
        return
    over: Figures = {"training": {"threads": options.threads}}
    if options.data_dir is not None:
        over["stream"] = {"data_dir": options.data_dir}
    runs = {name: preset_config(options.stream, name, over, preset=options.preset) for name in (PLAIN, WITH)}
    yield f"{options.stream}, {runs[PLAIN].model.net.name}, on {device_name(runs[PLAIN])}", runs


def device_name(config: RunConfig) -> str:
    device = find_hardware(config.model.training).device
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "the processor"


def with_statistics(config: RunConfig) -> RunConfig:
    """The same run by spacenet-density."""
    settings = config.model.method_settings
    assert isinstance(settings, AdaptiveSettings)
    return with_model(config, method=WITH, method_settings=DensitySettings(**asdict(settings)))


def learned(config: RunConfig, *, warm_up: bool = False) -> tuple[Model, float]:
    """A model that has learned all tasks, and the seconds it took, evaluation not counted. To warm up, one epoch of one
    task does: what a process does for the first time takes longer."""
    stream, hardware = stream_of(config), find_hardware(config.model.training)
    method = new_method(get_method(config.model.method), config, stream, hardware.device)
    assert isinstance(method, SparseMethod)
    tasks = list(stream)[: 1 if warm_up else None]
    training = config.model.training
    training = replace(training, epochs=1, first_epochs=None) if warm_up else training
    for task in tasks:
        assert len(task.train)  # read and normalized before the clock starts
    began = time.perf_counter()
    for task in tasks:
        learn_task(
            method,
            task,
            training,
            hardware=hardware,
            on_batch=lambda done, total: None,
            on_epoch=lambda epoch, optimizer: None,
        )
    spent = time.perf_counter() - began
    return as_model(config, stream, method, [tuple(task.labels) for task in tasks]), spent


def ratios(figures: Figures) -> dict[str, float]:
    """How many times as long everything takes with class statistics."""
    training = {name: median(each) for name, each in figures["training_seconds"].items()}
    found = {"learning all tasks": training[WITH] / training[PLAIN]}
    for batch, times in figures["predicting_ms"].items():
        found[f"{int(batch):,} raw image{'s' if batch != '1' else ''} to labels"] = times[WITH] / times[PLAIN]
    return found


def cost_table(figures: Figures) -> Table:
    """Milliseconds of both, and the ratio."""
    each = [{name: 1000 * median(found) for name, found in figures["training_seconds"].items()}]
    each += figures["predicting_ms"].values()
    rows = [
        [what, *(f"{times[name]:,.2f}" for name in (PLAIN, WITH)), f"{ratio:.2f}"]
        for (what, ratio), times in zip(ratios(figures).items(), each, strict=True)
    ]
    title = f"What class statistics cost ({figures['data']}), both in turns, median"
    return Table(title, ["", f"{PLAIN} ms", f"{WITH} ms", "ratio"], rows)


def verdict(figures: Figures) -> str:
    """The claims, and whether they hold."""
    training, *predicting = ratios(figures).values()
    lines = [
        f"{what} takes {ratio:.2f} times as long; {'as' if ratio <= most else 'NOT as'} claimed ({most:g} or less)."
        for what, ratio, most in (
            ("Learning", training, MOST_TRAINING),
            ("Predicting", max(predicting), MOST_PREDICTING),
        )
    ]
    return "\n".join([*lines, f"Each class keeps {figures['floats_per_class']:,} numbers."])


def main(arguments: list[str] | None = None) -> int:
    return measured("density", read_options(Options, "density", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
