"""What each part of spacenet-experts contributes: `python -m benchmarks.experts`, on a GPU.

Learns a stream with the preset `experts` without a tenth of the training data, and measures on that tenth what the
scores for upright images, the mean over four orientations and the class statistics give alone, and what they give
together for several weights of the statistics. The preset's weight was chosen here. With `--own-statistics` also those
on each expert's own features, and which weights one would choose that sees, after each task, held-out data of this task
alone. With `--held-out 0` all training data are learned and the test set is measured, with the configured weights only.
"""

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console
from torch import Tensor

from benchmarks.command import measured, progress, read_options
from benchmarks.results import HERE, add
from benchmarks.workload import random_samples
from spacenet.config.presets import PRESETS, preset_config
from spacenet.experiments.metrics import accuracies
from spacenet.experiments.run import Run
from spacenet.methods.base import map_batches
from spacenet.methods.density.densities import scores
from spacenet.methods.shared.score_weights import OWN_WEIGHT, STATISTICS_WEIGHT, CandidateWeights, ScoreWeights
from spacenet.methods.spacenet_experts import SpaceNetExperts
from spacenet.report.tables import Table
from spacenet.utils.files import save_text

CANDIDATES = CandidateWeights()
WEIGHTS, OWN_WEIGHTS = CANDIDATES.statistics[1:], CANDIDATES.own[1:]
"""Those that add statistics: the first candidates are 0."""
UPRIGHT, FOUR, STATISTICS = "scores, upright", "scores, mean over four orientations", "class statistics"
OWN = "class statistics of own features"
Figures = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What to measure."""

    stream: str = "icifar-100"
    """A stream; without a preset for experts, they have the stream's usual training."""
    classes_per_task: int | None = None
    """Classes of each task; default: the stream's."""
    first_classes: int | None = None
    """Classes of the first task, if it has more or fewer."""
    shuffle_classes: int | None = None
    """Shuffle the order of the classes with this seed; 1993 gives the order that many papers have."""
    max_weights: int | None = None
    """Weights of all experts together; default: the preset's."""
    reads: Literal["own", "all"] = "own"
    """Units that an expert's connections come from: its own, or those of earlier experts, too."""
    own_statistics: bool = False
    """Keep statistics of each expert's own features too, and measure them."""
    seed: int = 0
    """Seed of the run."""
    epochs: int | None = None
    """Epochs per task; default: the preset's."""
    held_out: float = 0.1
    """Part of the training data that is measured on; 0 for the test set."""
    json: Path | None = None
    """Also write the raw figures to this file."""
    keep: str | None = None
    """Add the figures of the parts to those of this row of docs/experts.md."""
    keep_run: str | None = None
    """Add the metrics of the run to those of this row."""
    shared: bool = False
    """Other work shares the GPU: the page does not show the time of the run."""
    tiny: bool = False
    """Random images and a tiny network: shows whether the measuring works, nothing else."""


def measure(options: Options, console: Console) -> Figures:
    """Learn, measure and print; returns the accuracies in percent."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        settings = _settings(options, Path(scratch))
        preset = "experts" if "experts" in PRESETS[options.stream] else None
        run = Run(preset_config(options.stream, "spacenet-experts", settings, preset=preset), callbacks=[progress()])
        metrics = run.execute().metrics
    seconds = time.perf_counter() - began
    figures = {name: _accuracies(run, score) for name, score in _parts(run, options).items()}
    title = f"{options.stream}, {len(run.stream)} tasks, seed {options.seed}, {metrics['evaluated_on']}"
    rows = [[name, *(f"{value:.2f}" for value in found.values())] for name, found in figures.items()]
    console.print(Table(title, ["", "ACC", "task-IL"], rows))
    console.print(f"{seconds:.0f} s, {run.hardware.describe()}", highlight=False)
    facts: Figures = {"date": date.today().isoformat(), "hardware": run.hardware.describe()}
    facts |= {"seconds": seconds, "shared": options.shared}
    found = {**facts, "parts": figures, "metrics": metrics}
    if options.keep:
        keep(options.keep, found)
    if options.keep_run:
        add(options.keep_run, [metrics])
    return found


def keep(row: str, found: Figures) -> None:
    """Add what `measure` found with one seed to what is kept of a row."""
    path = HERE / f"{row}.json"
    kept: Figures = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    before = kept.pop("seeds", [])
    new = {"seed": found["metrics"]["seed"], "seconds": round(found["seconds"], 1), "shared": found["shared"]}
    new |= {"parts": found["parts"]}
    seeds = sorted([new, *(each for each in before if each["seed"] != new["seed"])], key=lambda each: int(each["seed"]))
    facts = {**kept, "date": found["date"], "hardware": found["hardware"], "seeds": seeds}
    save_text(path, json.dumps(facts, indent=1) + "\n")


def _parts(run: Run, options: Options) -> dict[str, Tensor]:
    """The scores of all samples that are measured on, by each part alone and by several together."""
    method, x = run.method, run.test_x
    assert isinstance(method, SpaceNetExperts)
    given = method.weights
    four, own, features = method.score_parts(x)
    statistics = scores(method.densities.compute_params(), features)
    parts = {UPRIGHT: map_batches(method.pack, x, method.device), FOUR: four, STATISTICS: statistics}
    weights = WEIGHTS if options.held_out else (given.statistics,)
    parts |= {f"both, weight {each:g}": four + each * statistics for each in weights}
    if not own:
        return parts
    typical = method.score_own(method.own_params(), own)
    own_weights = OWN_WEIGHTS if options.held_out else (given.own,)
    parts |= {OWN: typical} | {f"{OWN} and scores, weight {each:g}": four + each * typical for each in own_weights}
    pairs = [ScoreWeights(*pair) for pair in product(CANDIDATES.statistics, CANDIDATES.own)]
    every = {pair: pair.add_up(four, typical, statistics) for pair in (pairs if options.held_out else [given])}
    chosen = {"all": max(every, key=lambda pair: _accuracies(run, every[pair])["acc"])}
    if options.held_out:
        chosen["all, as chosen after each task"] = _choose(run, four, typical, statistics)
    named = {f"{name}, weights {pair.statistics:g} and {pair.own:g}": every[pair] for name, pair in chosen.items()}
    return parts | named


def _choose(run: Run, four: Tensor, typical: Tensor, statistics: Tensor) -> ScoreWeights:
    """The weights that are best on each task's samples when it is the last one, as the method chooses them."""
    y = torch.cat([test.y.cpu() for test in run.tests])
    sums, start = torch.zeros(len(CANDIDATES.statistics), len(CANDIDATES.own)), len(run.tests[0])
    for test, own in zip(run.tests[1:], run.classes[1:], strict=True):
        rows, columns = slice(start, start := start + len(test)), slice(own.stop)
        score, of_own, of_first = (each[rows, columns] for each in (four, typical, statistics))
        sums = sums + CANDIDATES.measure(score, of_own, of_first, y[rows])
    return CANDIDATES.choose(sums)


def _settings(options: Options, scratch: Path) -> Figures:
    stream: Figures = {"validation": options.held_out}
    chosen = {
        "classes_per_task": options.classes_per_task,
        "first_classes": options.first_classes,
        "shuffle_classes": options.shuffle_classes,
    }
    stream |= {name: value for name, value in chosen.items() if value is not None}
    training: Figures = {"epochs": options.epochs} if options.epochs else {}
    if options.held_out:  # to choose a weight, the accuracies in between are not needed
        training["evaluate_every"] = 100
    method: Figures = {"reads": options.reads}
    if "experts" not in PRESETS[options.stream]:
        method["statistics_weight"] = STATISTICS_WEIGHT
    if options.own_statistics:
        method["own_statistics_weight"] = OWN_WEIGHT
    if options.max_weights:
        method["max_weights"] = options.max_weights
    if not options.tiny:
        return {"stream": stream, "training": training, "method": method, "seed": options.seed}
    stream["data"] = random_samples(scratch / "random.npz", 400, 100, (3, 8, 8), 20)
    return {
        "stream": stream,
        "training": training | {"epochs": 1, "precision": "32", "device": "cpu"},
        "method": method | {"max_weights": 20_000},
        "seed": options.seed,
    }


def _accuracies(run: Run, score: Tensor) -> dict[str, float]:
    found: Sequence[Any] = accuracies(score, run.tests, run.classes)
    return {name: sum(each) / len(each) for name, each in zip(("acc", "task_il_acc"), found, strict=True)}


def main(arguments: list[str] | None = None) -> int:
    return measured("experts", read_options(Options, "experts", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
