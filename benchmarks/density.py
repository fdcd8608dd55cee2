"""What summaries of classes cost: `python -m benchmarks.density`, from the repository's root.

`spacenet-density` against `spacenet` on Split MNIST, in turns: all tasks learned, and raw images to labels. Both train
the same network with the same settings, so the difference is what the summaries take.
"""

import sys
import time
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.command import console, keep, read_options
from benchmarks.prediction import samples_like, to_labels
from benchmarks.stepping import alternate, new_method
from benchmarks.workload import WorkloadOptions, workload
from spacenet.deploy.model import Model, Recipe
from spacenet.experiments.config import RunConfig
from spacenet.methods import method_named
from spacenet.methods.architectural.spacenet_density import DensitySettings
from spacenet.methods.shared.sparse import AdaptiveSettings, SparseMethod
from spacenet.report.tables import table
from spacenet.streams import make_stream
from spacenet.training.loop import learn_task

Figures = dict[str, Any]
PLAIN, WITH = "spacenet", "spacenet-density"
BATCHES = (1, 1_000)
MOST_TRAINING, MOST_PREDICTING = 1.5, 3.0
"""How many times as long learning and predicting may take."""


@dataclass(frozen=True)
class Options(WorkloadOptions):
    """What summaries of classes cost."""

    repeats: int = 5
    """How often both learn all tasks."""
    seconds_per_cell: float = 3.0
    """Time given to predictions of each method at each batch size."""


def measure(options: Options, console: Console) -> Figures:
    """Measure and print; returns the raw figures."""
    torch.set_num_threads(options.threads)
    figures: Figures = options.conditions()
    with workload(options.threads, options.data_dir, tiny=options.tiny) as work:
        configs = {PLAIN: work.config, WITH: with_summaries(work.config)}
        seconds: dict[str, list[float]] = {name: [] for name in configs}
        models: dict[str, Model] = {}
        for _ in range(options.repeats):
            for name, config in configs.items():
                models[name], spent = learned(config)
                seconds[name].append(spent)
        figures |= {"data": work.data, "training_seconds": seconds, "predicting_ms": {}}
    for batch in BATCHES:
        calls = {name: to_labels(model, samples_like(batch, model)) for name, model in models.items()}
        times = alternate(calls, options.seconds_per_cell)
        figures["predicting_ms"][str(batch)] = {name: each.ms for name, each in times.items()}
    kept = models[WITH].method.kept_of_classes(models[WITH].recipe.input_shape)
    figures["floats_per_class"] = kept.floats if kept else 0
    console.print(cost_table(figures))
    console.print(verdict(figures), highlight=False)
    return figures


def with_summaries(config: RunConfig) -> RunConfig:
    """The same run by spacenet-density."""
    assert isinstance(config.options, AdaptiveSettings)
    return replace(config, method=WITH, options=DensitySettings(**asdict(config.options)))


def learned(config: RunConfig) -> tuple[Model, float]:
    """A model that has learned all tasks, and the seconds it took, evaluation not counted."""
    stream = make_stream(config.stream, config.data)
    method = new_method(method_named(config.method), config, stream)
    assert isinstance(method, SparseMethod)
    tasks = list(stream)
    for task in tasks:
        assert len(task.train)  # read and normalised before the clock starts
    began = time.perf_counter()
    for task in tasks:
        learn_task(
            method,
            task,
            config.training,
            on_batch=lambda done, total: None,
            on_epoch=lambda epoch, optimizer: None,
        )
    spent = time.perf_counter() - began
    recipe = Recipe(config.method, config.seed, config.net, config.training, method.settings, stream.input_shape)
    labels = [tuple(task.labels) for task in stream]
    return Model.of(recipe, method, stream.normalisation, labels, {}), spent


def ratios(figures: Figures) -> dict[str, float]:
    """How many times as long everything takes with summaries."""
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
    title = f"What summaries cost ({figures['data']}), both in turns, median"
    return table(title, ["", f"{PLAIN} ms", f"{WITH} ms", "ratio"], rows)


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
    options = read_options(Options, "density", arguments)
    figures = measure(options, console())
    keep(figures, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
