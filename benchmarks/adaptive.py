"""docs/adaptive.md: what moving the connections gains over leaving them in place, by learning rate and epochs.

python -m benchmarks.adaptive [--stream …] [--learning-rate …] [--epochs …] [--seeds 3] [--test-seeds 10]
python -m benchmarks.adaptive --page-only

`spacenet` and `static-sparse` learn each stream with every learning rate and every number of epochs; all other settings
are the presets'. They are scored on held-out training data. The best cell of each method is then measured on the test
set. Every cell that is finished is kept in benchmarks/results/, so the same command continues where it stopped.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from statistics import mean
from typing import Annotated, Any

from annotated_types import Ge, Gt, Lt
from rich.console import Console

import spacenet
from benchmarks.adaptive_page import METHODS, load, page, path
from benchmarks.command import console, read_options, reported
from benchmarks.methods import TITLES
from benchmarks.results import HERE, Figures, figures_of_seed, hardware, over_seeds
from spacenet.utils.files import make_folder, save_text


@dataclass(frozen=True)
class Options:
    """Which cells are measured."""

    stream: tuple[str, ...] = tuple(TITLES)
    learning_rate: tuple[float, ...] = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16)
    epochs: tuple[int, ...] = (1, 2, 4, 8, 16)
    """Epochs per task."""
    seeds: Annotated[int, Ge(1)] = 3
    """Of each cell, on held-out training data."""
    test_seeds: Annotated[int, Ge(1)] = 10
    """Of the best cell of each method, on the test set."""
    validation: Annotated[float, Gt(0), Lt(1)] = 0.1
    """The fraction of the training data that is held out."""
    workers: Annotated[int, Ge(1)] = 1
    """Runs at the same time."""
    page_only: bool = False
    """Only make the page from what is kept."""


@dataclass(frozen=True)
class Cell:
    """One method with one learning rate and number of epochs."""

    method: str
    learning_rate: float
    epochs: int


def cells(options: Options) -> Iterator[Cell]:
    """All of them, the short ones first."""
    for epochs in options.epochs:
        for learning_rate in options.learning_rate:
            for method in METHODS:
                yield Cell(method, learning_rate, epochs)


def learn(stream: str, cell: Cell, seeds: int, options: Options, **settings: Any) -> list[Figures]:
    """The figures of each seed."""
    given = {"learning_rate": cell.learning_rate, "epochs": cell.epochs, **settings}
    runs = spacenet.run(stream, cell.method, seeds=seeds, workers=options.workers, progress=False, **given)
    return [figures_of_seed(run.metrics) for run in runs]


def measure_cell(stream: str, cell: Cell, options: Options) -> Figures:
    """A cell's figures on held-out training data."""
    seeds = learn(stream, cell, options.seeds, options, validation=options.validation)
    short = [{key: each[key] for key in ("seed", "acc", "bwt", "task_il_acc", "seconds")} for each in seeds]
    return {**asdict(cell), "seeds": short}


def measure_stream(stream: str, options: Options, shown: Console) -> None:
    """Measure what is not kept yet: the cells, then the best one of each method on the test set."""
    facts = load(stream) or {"stream": stream, "validation": options.validation, "cells": [], "test": {}}
    kept = {_cell_of(each): each for each in facts["cells"]}
    for cell in cells(options):
        if len(kept.get(cell, {"seeds": ()})["seeds"]) < options.seeds:
            kept[cell] = measure_cell(stream, cell, options)
            save(stream, facts | {"cells": list(kept.values())})
            acc = over_seeds([seed["acc"] for seed in kept[cell]["seeds"]])
            shown.print(f"{stream} {cell}: held-out {acc}", highlight=False)
    facts["cells"] = list(kept.values())
    for method in METHODS:
        best, before = best_cell(facts, method), facts["test"].get(method)
        if before and _cell_of(before) == best and len(before["seeds"]) >= options.test_seeds:
            continue
        facts["test"][method] = {**asdict(best), "seeds": learn(stream, best, options.test_seeds, options)}
        save(stream, facts)
        acc = over_seeds([seed["acc"] for seed in facts["test"][method]["seeds"]])
        shown.print(f"{stream} {best}: test {acc}", highlight=False)


def _cell_of(figures: Figures) -> Cell:
    return Cell(figures["method"], figures["learning_rate"], figures["epochs"])


def best_cell(facts: Figures, method: str) -> Cell:
    """The cell of a method with the highest mean accuracy on held-out training data."""
    own = [each for each in facts["cells"] if each["method"] == method]
    return _cell_of(max(own, key=lambda each: mean(seed["acc"] for seed in each["seeds"])))


def save(stream: str, facts: Figures) -> None:
    make_folder(HERE)
    measured = {"date": date.today().isoformat(), "hardware": hardware()}
    save_text(path(stream), json.dumps(facts | measured, indent=1) + "\n")


def run(options: Options) -> int:
    shown = console()
    for stream in () if options.page_only else options.stream:
        measure_stream(stream, options, shown)
    page()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    options = read_options(Options, "adaptive", None if arguments is None else list(arguments))
    return reported("adaptive", lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
