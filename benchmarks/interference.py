"""docs/interference.md: whether earlier tasks are forgotten in shared units or lose against later tasks' scores.

python -m benchmarks.interference [STREAM …] [--seeds 3] [--epochs …]
python -m benchmarks.interference --page-only

A task of `spacenet` reserves some of the units it selects; the others are shared with later tasks, which connect them
anew and overwrite their bias or batch norm. Here the units' values are recorded after each task. In the end each task
is scored by the network as it is, with the shared units' values as they were after the task, and by the network as it
was then, connections included. What is still lost in the last case is not forgotten: other tasks' scores are higher.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated

import torch
import tyro
from annotated_types import Ge
from torch import Tensor

from benchmarks.command import console, progress, read_options, reported
from benchmarks.results import HERE, Figures, over_seeds
from spacenet.config.presets import preset_config
from spacenet.experiments.callbacks import Callback
from spacenet.experiments.metrics import Record, accuracies
from spacenet.experiments.run import Run
from spacenet.methods.base import map_batches
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.report.tables import Table
from spacenet.space.ledger import Ledger, as_of, unit_values
from spacenet.space.pack import pack
from spacenet.utils.files import save_text

PAGE = HERE.parent.parent / "docs" / "interference.md"
TITLES = {"split-mnist": "Split MNIST", "split-fashion-mnist": "Split Fashion-MNIST", "cifar-10-100": "CIFAR-10/100"}
AS_IS, VALUES, AS_WAS = "as it is in the end", "values of shared units restored", "as it was after each task"
INTRODUCTION = """\
# Where forgetting comes from

A task of `spacenet` reserves some of the units it selects. The others are shared: later tasks connect them anew and
overwrite their biases or their batch norm, and earlier tasks still read them. So an earlier task may lose accuracy in
two ways: what its units compute has changed, or its scores are as they were and later tasks' scores are higher.

Both can be told apart, because the connections of each task never change. The first row of each table is the network
in the end. In the second, each task is scored with the values that all units had after it was learned, but with
later tasks' connections. In the third, each task is scored by the network exactly as it was then: nothing is
forgotten, and what is missing to task-IL is lost between the tasks. Accuracy in percent on the test set after the last
task, mean ± standard deviation over seeds; "first task" is the accuracy on it.

What it says: in the multilayer perceptrons of Split MNIST and Split Fashion-MNIST nothing measurable is lost in shared
units. All of BWT there comes from later tasks' scores, which the earlier tasks were never trained against.

In the convolutional network of CIFAR-10/100 it is the other way round: most of the forgetting happens in shared maps.
Scored by the network as it was after each task, the tasks would have kept 17 points of task-IL and 18 of ACC. Later
tasks connect a shared map to more inputs and replace the mean, variance, scale and bias of its batch norm; an earlier
task would need its connections and its values. Restoring the values alone makes it worse, because they belong to the
sum of fewer inputs.

This is why `cwr` and `ar1` are ahead there ([results](results.md)). Below the outputs, `cwr` trains on the first task
only, batch norm included, and `ar1` changes little, so that both keep 78 % on the first task, where `spacenet` keeps
8 to 13 %; on the other tasks they are no better. With the networks as they were, `spacenet` would be ahead of both.
[`spacenet-experts`](experts.md), in which tasks share no units, loses nothing in this way.
"""


@dataclass(frozen=True)
class Options:
    """Where forgetting comes from."""

    stream: tyro.conf.Positional[tuple[str, ...]] = tuple(TITLES)
    """Streams that have a preset for spacenet."""
    seeds: Annotated[int, Ge(1)] = 3
    epochs: Annotated[int, Ge(1)] | None = None
    """Epochs per task; default: the preset's."""
    page_only: bool = False
    """Only make the page from what is kept."""


@dataclass
class UnitRecorder(Callback):
    """Keeps the values of all units after each task."""

    values: list[dict[str, Tensor]] = field(default_factory=list)
    ledger: Callable[[], Ledger] | None = None

    def on_task_end(self, record: Record) -> None:
        assert self.ledger is not None
        self.values.append(unit_values(self.ledger()))


def with_values(ledger: Ledger, values: Mapping[str, Tensor]) -> Ledger:
    """A copy of the ledger whose hidden units have these values again; units that were added later keep theirs."""
    copy = deepcopy(ledger)
    for key, (layer, _) in ledger.blueprint.unit_values().items():
        if layer.name != ledger.blueprint.output.name:
            copy.units[key][: len(values[key])] = values[key]
    return copy


def measure_seed(stream: str, seed: int, settings: Figures) -> Figures:
    """Learn a stream with one seed and measure the network in its three states."""
    recorder = UnitRecorder()
    run = Run(preset_config(stream, "spacenet", {"seed": seed, **settings}), callbacks=[recorder, progress()])
    method = run.method
    assert isinstance(method, SparseMethod)
    recorder.ledger = lambda: method.ledger
    run.execute()
    states: dict[str, Callable[[int], Ledger]] = {
        AS_IS: lambda task: method.ledger,
        VALUES: lambda task: with_values(method.ledger, recorder.values[task]),
        AS_WAS: lambda task: as_of(method.ledger, task + 1, recorder.values[task]),
    }
    found: Figures = {"seed": seed, "hardware": run.hardware.describe()}
    for name, state in states.items():
        scores = []
        for task, classes in enumerate(run.classes):
            packed = pack(state(task), method.device)
            scores.append(map_batches(packed, run.test_x, method.device)[:, classes.start : classes.stop])
        acc, task_il = accuracies(torch.cat(scores, 1), run.tests, run.classes)
        found[name] = {"acc": acc, "task_il_acc": task_il}
    return found


def path_of(stream: str) -> Path:
    return HERE / f"interference-{stream}.json"


def measure(stream: str, options: Options) -> Figures:
    training: Figures = {"training": {"epochs": options.epochs}} if options.epochs else {}
    seeds = [measure_seed(stream, seed, training) for seed in range(options.seeds)]
    more = f" --epochs {options.epochs}" if options.epochs else ""
    command = f"python -m benchmarks.interference {stream} --seeds {options.seeds}{more}"
    return {"command": command, "date": date.today().isoformat(), "seeds": seeds}


def table(title: str, seeds: Sequence[Figures]) -> Table:
    rows = []
    for name in (AS_IS, VALUES, AS_WAS):
        acc, task_il = ([seed[name][key] for seed in seeds] for key in ("acc", "task_il_acc"))
        means = [[sum(each) / len(each) for each in values] for values in (acc, task_il)]
        first = [[each[0] for each in values] for values in (acc, task_il)]
        rows.append([name, *map(over_seeds, (means[0], means[1], first[0], first[1])), str(len(seeds))])
    return Table(title, ["network", "ACC", "task-IL", "first task", "first task, task-IL", "seeds"], rows, "lrrrrr")


def page() -> None:
    """Make docs/interference.md."""
    parts = [INTRODUCTION]
    for stream, title in TITLES.items():
        if path_of(stream).is_file():
            kept = json.loads(path_of(stream).read_text(encoding="utf-8"))
            source = f"`{kept['command']}` ({kept['date']}, {kept['seeds'][0]['hardware']})"
            parts.append(f"## {title}\n\n{table('', kept['seeds']).to_markdown()}\n{source}\n")
    save_text(PAGE, "\n".join(parts))


def run(options: Options) -> int:
    for stream in () if options.page_only else options.stream:
        kept = measure(stream, options)
        save_text(path_of(stream), json.dumps(kept, indent=1) + "\n")
        console().print(table(stream, kept["seeds"]))
    page()
    return 0


def main(arguments: list[str] | None = None) -> int:
    options = read_options(Options, "interference", arguments)
    return reported("interference", lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
