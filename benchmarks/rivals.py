"""docs/rivals.md: every method with every loss that it offers, each searched with the same number of trials.

python -m benchmarks.rivals [--stream …] [--method …] [--loss …] [--trials 8] [--seeds 3] [--folder DIR]
python -m benchmarks.rivals --page-only

A cell is a stream, a method and a loss. Its search draws `trials` settings at random over the ranges that the method
declares and scores them on held-out training data; the best one then learns with `seeds` seeds and is measured on the
test set. Searches and runs are in the folder, so the same command continues where it stopped; what is finished is in
benchmarks/results/rivals/, and a cell that has as many trials and seeds there as asked for is not repeated.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

from annotated_types import Ge

import spacenet
from benchmarks.command import console, read_options, reported
from benchmarks.methods import TITLES
from benchmarks.results import HERE, Figures, figures_of_seed, hardware, over_seeds
from spacenet.experiments.run import load_metrics
from spacenet.experiments.sweep import Trial
from spacenet.methods.shared.dense import LossSettings, PhantomSettings
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.methods.shared.sparse_settings import SparseSettings
from spacenet.registry import METHODS
from spacenet.report.tables import Table
from spacenet.utils.files import make_folder, save_text
from spacenet.utils.text import format_bytes

LOGS = HERE / "rivals"
PAGE = HERE.parent.parent / "docs" / "rivals.md"
PHANTOMS = 8
"""With the two classes of a task, as many as the stream has."""
LOSSES: dict[str, dict[str, Any]] = {
    "all": {"loss_over": "all"},
    "own": {"loss_over": "own"},
    "own-phantom": {"loss_over": "own", "phantom_classes": PHANTOMS},
}
FIXED = "fixed"
"""The loss of methods that offer no choice: they train nothing, or only the first task."""
NOT_HERE = {"joint", "er", "icarl", "dgr", "spacenet-rehearsal", "ncm"}
"""These keep or generate old data; the last one has nothing to search."""
INTRODUCTION = f"""\
# Rivals with equal budgets

What a method without old data reaches depends on the outputs that its loss is computed over: those of *all* classes
seen so far, those of the task's *own* classes, or its own and {PHANTOMS} *phantom* classes, whose score is always 0.
A method with one model per task has no other outputs, and the sparse methods connect no others, so these are always
over their own. "fixed" is a method without such a choice: it trains nothing, or only the first task.

Every cell is a search of its own, with the same number of random trials for every method, over the ranges that the
method declares (`search_space`), scored on held-out training data with one seed. The best settings are then measured
on the test set; mean ± standard deviation over seeds. "s/trial" is the mean time of a trial on one core, which was
shared with other work. All trials are in `benchmarks/results/rivals/`, and the command of each search is in its file.
A trial whose training diverges is not counted. This page is made by `python -m benchmarks.rivals --page-only`; a cell
that is not in it has not been searched yet.

What it says: the loss matters more than the method. Over all classes, `naive`, `ewc`, `si`, `mas` and `lwf` stay at
20 to 27 % on both streams. Over their own classes the same methods reach 62 to 67 % on Split MNIST, and with phantom
classes even `naive`, which does nothing against forgetting, reaches 75 %. `spacenet` with phantom classes is above
all of these, but not above small dense networks that share nothing (`independent`), which keep 1.6 times as much.
What is ahead of everything is statistics: a linear classifier on random features (`ranpac`), then densities of the
classes, with a network (`spacenet-density`) or without any (`gaussian`). With random features too (its preset
`readout`, which is not searched here), `spacenet-density` reaches 99.1 and 90.7 % ([class statistics](density.md)):
as much as `ranpac` on Split MNIST, more on Split Fashion-MNIST, with a third of the memory.
"""


@dataclass(frozen=True)
class Options:
    """Which cells are searched, and how long."""

    stream: tuple[str, ...] = tuple(TITLES)
    method: tuple[str, ...] = ()
    """Default: all that keep no old data."""
    loss: tuple[str, ...] = ()
    """Default: all that the method offers."""
    trials: Annotated[int, Ge(1)] = 8
    seeds: Annotated[int, Ge(1)] = 3
    folder: Path = Path("runs/rivals")
    workers: Annotated[int, Ge(1)] = 1
    """Runs at the same time."""
    page_only: bool = False
    """Only make the page from what is kept."""


@dataclass(frozen=True)
class Cell:
    """One search."""

    stream: str
    method: str
    loss: str

    @property
    def name(self) -> str:
        return f"{self.stream}-{self.method}-{self.loss}"

    @property
    def settings(self) -> dict[str, Any]:
        """What all trials share."""
        return losses_of(self.method)[self.loss]

    def command(self, trials: int) -> str:
        given = "".join(f" --set {name}={value}" for name, value in self.settings.items())
        return f"spacenet sweep {self.stream} --method {self.method}{given} --trials {trials}"


def losses_of(method: str) -> dict[str, dict[str, Any]]:
    """The losses that a method offers, with their settings."""
    kind = METHODS[method].Settings
    if issubclass(kind, LossSettings):
        return LOSSES
    if issubclass(kind, PhantomSettings | SparseSettings):
        return {"own": {"phantom_classes": 0}, "own-phantom": {"phantom_classes": PHANTOMS}}
    return {FIXED: {}}


def cells(options: Options) -> Iterator[Cell]:
    methods = options.method or [name for name in METHODS if name not in NOT_HERE]
    for stream in options.stream:
        for method in methods:
            for loss in losses_of(method):
                if not options.loss or loss in options.loss:
                    yield Cell(stream, method, loss)


def search(cell: Cell, options: Options) -> None:
    """Search a cell, measure the best settings on the test set, and keep the log."""
    folder = options.folder / cell.name
    given: dict[str, Any] = {"progress": False, "workers": options.workers}
    found = spacenet.sweep(
        cell.stream, cell.method, trials=options.trials, out=folder / "search", **given, **cell.settings
    )
    runs = spacenet.run(
        cell.stream, cell.method, config=found.best, seeds=options.seeds, out=folder / f"test-{options.trials}", **given
    )
    facts: Figures = {
        "stream": cell.stream,
        "method": cell.method,
        "loss": cell.loss,
        "command": cell.command(options.trials),
        "date": date.today().isoformat(),
        "hardware": hardware(),
        "trials": [_log(trial, folder / "search") for trial in sorted(found.trials, key=lambda trial: trial.number)],
        "best": dict(found.trials[0].values),
        "test": [figures_of_seed(run.metrics) for run in runs],
    }
    make_folder(LOGS)
    save_text(_path(cell), json.dumps(facts, indent=1) + "\n")


def _log(trial: Trial, folder: Path) -> Figures:
    metrics = load_metrics(folder / f"trial-{trial.number}" / "seed-0") or {"seconds": 0.0}
    seconds = round(float(metrics["seconds"]), 1)
    return {"number": trial.number, "values": dict(trial.values), "score": trial.score, "seconds": seconds}


def _path(cell: Cell) -> Path:
    return LOGS / f"{cell.name}.json"


def load(cell: Cell) -> Figures | None:
    """What is kept of a cell."""
    path = _path(cell)
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def is_done(cell: Cell, options: Options) -> bool:
    """Whether the log has as much as is asked for; trials that failed count as well."""
    kept = load(cell)
    if kept is None:
        return False
    return kept["command"] == cell.command(options.trials) and len(kept["test"]) >= options.seeds


def page() -> None:
    """Make docs/rivals.md."""
    parts = [INTRODUCTION]
    for stream, title in TITLES.items():
        kept = {cell: facts for cell in cells(Options((stream,))) if (facts := load(cell)) is not None}
        if kept:
            strongest = f"The strongest of each strategy:\n\n{_table(strongest_of(kept)).to_markdown()}"
            parts.append(f"## {title}\n\n{strongest}\nAll cells:\n\n{_table(kept).to_markdown()}")
    save_text(PAGE, "\n".join(parts))


def strongest_of(kept: Mapping[Cell, Figures]) -> dict[Cell, Figures]:
    """The cell with the highest ACC of each strategy, and of each method in the space; the highest first."""
    acc = {cell: mean(seed["acc"] for seed in facts["test"]) for cell, facts in kept.items()}
    best: dict[str, Cell] = {}
    for cell in sorted(kept, key=lambda cell: -acc[cell]):
        method = METHODS[cell.method]
        best.setdefault(method.name if issubclass(method, SparseMethod) else method.strategy, cell)
    return {cell: kept[cell] for cell in best.values()}


def _table(kept: Mapping[Cell, Figures]) -> Table:
    rows = []
    for cell, facts in kept.items():
        test, trials = facts["test"], facts["trials"]
        best = "  ".join(f"{name.split('.')[1]} {_text(value)}" for name, value in facts["best"].items())
        rows.append(
            [
                cell.method,
                cell.loss,
                over_seeds([seed["acc"] for seed in test]),
                over_seeds([seed["task_il_acc"] for seed in test]),
                format_bytes(round(mean(seed["bytes_kept"] for seed in test))),
                str(len(test)),
                str(len(trials)),
                f"{mean(trial['seconds'] for trial in trials):.0f}",
                best,
            ]
        )
    columns = ["method", "loss", "ACC", "task-IL", "kept", "seeds", "trials", "s/trial", "best settings"]
    return Table("", columns, rows, "llrrrrrrl")


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def run(options: Options) -> int:
    shown = console()
    for cell in () if options.page_only else cells(options):
        if is_done(cell, options):
            shown.print(f"{cell.name}: done already", highlight=False)
            continue
        search(cell, options)
        facts = load(cell) or {}
        score = max(trial["score"] for trial in facts["trials"])
        acc = over_seeds([seed["acc"] for seed in facts["test"]])
        shown.print(f"{cell.name}: held-out {score:.2f}, test {acc}", highlight=False)
        page()
    page()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    options = read_options(Options, "rivals", None if arguments is None else list(arguments))
    return reported("rivals", lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
