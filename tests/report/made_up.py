"""Runs and comparisons with made-up numbers: as large as a test wants them, and there in a moment."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch

from spacenet.config.presets import preset_config
from spacenet.experiments.analysis import Analysis, Truncated
from spacenet.experiments.comparison import ComparisonData, Failure, Row, compare_runs
from spacenet.experiments.run import MODEL, RunData
from spacenet.methods.density.densities import ClassMemory
from spacenet.model.evaluation import Evaluation, TaskScores
from spacenet.model.model import Model
from spacenet.model.scores import Calibration, Mistake, Mistakes, class_scores, old_against_new
from spacenet.report.plots.plot import Plot
from spacenet.space.blueprint import Blueprint, Layer, Link
from spacenet.space.ledger import Connections, Ledger
from spacenet.utils.text import MeanStd

MATRIX = [[99.0, 0.0, 0.0], [90.0, 80.0, 0.0], [70.0, 75.0, 95.0]]
HIDDEN, SELECTED, RESERVED = 30, 10, 5
LAYER_SIZES = {"input": 16, "hidden1": HIDDEN, "hidden2": HIDDEN, "output": 6}


def metrics(matrix: list[list[float]] = MATRIX, classes: int = 2, **over: Any) -> dict[str, Any]:
    """The content of metrics.json."""
    last, learned = matrix[-1], len(matrix)
    lost = [last[i] - matrix[i][i] for i in range(learned - 1)]
    labels = [[str(classes * i + j) for j in range(classes)] for i in range(learned)]
    sizes = {"hidden1": HIDDEN, "hidden2": HIDDEN}
    layers = [
        {"name": name, "units": units, "used": 28, "reserved": 15, "unused": 2, "connections": 120}
        for name, units in sizes.items()
    ]
    epochs = [{"loss": 1.0 / (epoch + 1), "accuracy": 90.0, "moved": 0.2 * (epoch + 1)} for epoch in range(3)]
    return {
        "stream": "split-mnist",
        "method": "spacenet",
        "seed": 0,
        "evaluated_on": "test set",
        "tasks_learned": learned,
        "stopped": None,
        "warnings": [],
        "acc": sum(last[:learned]) / learned,
        "last_acc": sum(last[:learned]) / learned,
        "aia": sum(sum(row[: i + 1]) / (i + 1) for i, row in enumerate(matrix)) / learned,
        "bwt": sum(lost) / len(lost) if lost else 0.0,
        "forgetting": -sum(lost) / len(lost) if lost else 0.0,
        "fwt": 0.0,
        "task_il_acc": 99.0,
        "matrix": matrix,
        "layers": layers,
        "tasks": [{"index": i, "labels": each, "epochs": epochs, "layers": layers} for i, each in enumerate(labels)],
        "connections": 288,
        "bytes_kept": 2048,
        "parameters": 300,
        "extra_bytes": 0,
        "images_kept": 0,
        "units_added": 0,
        "seconds": 2.5,
        "hardware": "cpu",
        "versions": {"spacenet": "0.1.0", "torch": "2.5"},
    } | over


def run_data(
    found: dict[str, Any] | None = None,
    confusion: list[list[int]] | None = None,
    model: Model | None = None,
    folder: Path | None = None,
    **analysis: Any,
) -> RunData:
    """A finished run with these metrics."""
    found = metrics() if found is None else found
    counts = None if confusion is None else torch.tensor(confusion, dtype=torch.int32)
    method = found.get("method", "spacenet")
    config = preset_config("split-mnist", method if method in CONFIGURED else "spacenet").with_seed(found["seed"])
    return RunData(config, found, Analysis(counts, **analysis), model, folder)


CONFIGURED = ("spacenet", "static-sparse", "spacenet-density", "naive", "er", "packnet", "joint")
"""Methods that get their own settings; others are only names here."""


def random_matrix(tasks: int, seed: int = 0) -> list[list[float]]:
    """Tasks that fade while later ones are learned."""
    source = np.random.default_rng(seed)
    best, loss = source.uniform(70, 100, tasks), source.uniform(0, 0.9, tasks)
    return [
        [float(best[i] * (1 - loss[i] * (j - i) / tasks)) if i <= j else 0.0 for i in range(tasks)]
        for j in range(tasks)
    ]


def comparison_data(*runs: dict[str, Any], failures: tuple[Failure, ...] = ()) -> ComparisonData:
    """A comparison of the runs with these metrics."""
    return compare_runs(map(run_data, runs), failures)


def row(method: str = "naive", **over: Any) -> Row:
    """A row of a comparison."""
    usual = Row(
        strategy="Bound",
        method=method,
        seeds=1,
        acc=MeanStd(50.0),
        last_acc=MeanStd(50.0),
        aia=MeanStd(60.0),
        bwt=MeanStd(-9.0),
        forgetting=MeanStd(10.0),
        task_il_acc=MeanStd(90.0),
        parameters=1,
        extra_bytes=0,
        images=0,
        units_added=0,
        seconds=2.0,
        relative_time=1.0,
    )
    return replace(usual, **over)


def made_up_model(tasks_left: int = 2, *, image: bool = True) -> Model:
    """Three tasks with five reserved units each in both hidden layers, and made-up connections.

    Only what the plots look at is real: the ledger, the labels, and how connections were laid at first.
    """
    names = list(LAYER_SIZES)
    layers = tuple(Layer(name, size) for name, size in LAYER_SIZES.items())
    links = tuple(Link(f"{a}-{b}", a, b) for a, b in pairwise(names))
    blueprint = Blueprint(layers, links, lambda values, x, hook=None: x)
    ledger, rng = Ledger(blueprint), np.random.default_rng(0)
    for task in range(3):
        for link in links:
            ledger.connections[link.name] = Connections.concat(
                ledger.connections[link.name], made_up_connections(link, task, rng)
            )
        for name in ("hidden1", "hidden2"):
            ledger.reserve(name, torch.arange(task * RESERVED, (task + 1) * RESERVED), task)

    def build(blueprint: Blueprint | None = None) -> Any:
        return SimpleNamespace(ledger=None, plan=SimpleNamespace(carry_out=lambda ledger, task: None), allocate=lay)

    def lay(task: Any) -> Any:
        again = np.random.default_rng(7)
        selection = {name: torch.arange(size) for name, size in LAYER_SIZES.items()}
        return selection, {link.name: made_up_connections(link, task.index, again) for link in links}

    method = SimpleNamespace(ledger=ledger, blueprint=blueprint, needs_old_data=False, divides_network=True)
    return cast(
        Model,
        SimpleNamespace(
            method=method,
            build=build,
            input_shape=(4, 4) if image else (16,),
            tasks=[("0", "1"), ("2", "3"), ("4", "5")],
            space_left=lambda: tasks_left,
        ),
    )


def made_up_connections(link: Link, task: int, rng: np.random.Generator) -> Connections:
    """Connections of a task at random positions that only it has."""
    sources, targets = LAYER_SIZES[link.source], LAYER_SIZES[link.target]
    counts = {"input-hidden1": 40, "hidden1-hidden2": 40, "hidden2-output": 16}
    places = rng.choice(sources * targets // 3, counts[link.name], replace=False) * 3 + task
    source, target = torch.from_numpy(places % sources), torch.from_numpy(places // sources)
    owner = torch.full((len(places),), task, dtype=torch.int16)
    return Connections(source.int(), target.int(), owner, torch.ones(len(places)))


def complete_run(folder: Path, method: str = "spacenet", seed: int = 0, **over: Any) -> RunData:
    """A run with a model and everything else that plots can show, but for class statistics.

    The folder gets what stands for the file of the model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MODEL).write_bytes(bytes(1536))
    source = np.random.default_rng(seed)
    confusion = (source.integers(0, 3, (6, 6)) + 40 * np.eye(6, dtype=int)).tolist()
    values = torch.rand(40, HIDDEN, generator=torch.manual_seed(seed)).sub(0.5).clamp(min=0)
    labels = ("0",) * 20 + ("1",) * 20
    kept: dict[str, Any] = {"activations": {"hidden1": values, "hidden2": values.flip(1)}, "labels": labels}
    kept["calibration"] = Calibration.of(source.uniform(0.3, 1.0, 300), source.random(300) < 0.8)
    kept["mistakes"] = made_up_mistakes((4, 4))
    return run_data(metrics(method=method, seed=seed, **over), confusion, made_up_model(), folder, **kept)


def made_up_mistakes(shape: tuple[int, ...], count: int = 12) -> Mistakes:
    """Wrong predictions of images, or of samples with other values."""
    inputs = np.random.default_rng(0).integers(0, 255, (count, *shape), dtype=np.uint8)
    found = (Mistake(f"test sample {row}", f"{row % 5}", f"{row % 5 + 1}", 99.0 - row) for row in range(count))
    return Mistakes(tuple(found), inputs if len(shape) > 1 else inputs / 7)


def evaluation(tasks: int = 3, classes: int = 2) -> Evaluation:
    """An evaluation of a model that has learned tasks of some classes each; one label was not known."""
    count = tasks * classes
    counts = np.ones((count, count), np.int64) + 20 * np.eye(count, dtype=np.int64)
    labels = [[str(classes * task + each) for each in range(classes)] for task in range(tasks)]
    scores = [
        TaskScores(task + 1, tuple(own), classes * (20 + count), 80.0 + task, 95.0) for task, own in enumerate(labels)
    ]
    source = np.random.default_rng(0)
    return Evaluation(
        accuracy=100 * 21 / (20 + count),
        samples=int(counts.sum()),
        unknown={"<b>cat": 7},
        tasks=tuple(scores),
        classes=tuple(class_scores(counts, labels)),
        old_new=old_against_new(counts, classes),
        calibration=Calibration.of(source.uniform(0.2, 1.0, 200), source.random(200) < 0.6),
        confusion=counts,
        mistakes=made_up_mistakes((8,)),
    )


def density_run() -> RunData:
    """A run whose method keeps class statistics."""
    found = metrics(method="spacenet-density")
    memory = ClassMemory("inputs", dimensions=8, gaussians=2, directions=3, floats=74, bytes=2000)
    curve = tuple(Truncated(r, 18 + 19 * r, 70.0 + 3 * r) for r in range(4))
    return run_data(found, [[9, 1, 0, 0, 0, 0]] * 6, class_memory=memory, truncated=curve)


def words_in(plot: Plot) -> str:
    """Everything that is written in the plot."""
    return "\n".join("".join(each.itertext()) for each in ET.fromstring(plot.svg()).iter() if "text" in each.tag)
