"""docs/gallery.md: the report's plots, from real runs. `python -m benchmarks.gallery [FOLDER]`

Runs SpaceNet, static-sparse and spacenet-density on Split MNIST, and a comparison of eight methods; then seven methods
on CIFAR-10/100, which takes hours without a GPU. Runs that the folder holds already are not repeated. Needs MNIST and
both CIFARs (SPACENET_DATA, or what `spacenet data fetch` left).
"""

import sys
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import tyro

from benchmarks.command import read_options, reported
from benchmarks.pictures import DOCS, show_plot
from spacenet.cli.main import main as spacenet
from spacenet.errors import RunError
from spacenet.experiments.comparison import load_comparison
from spacenet.experiments.run import RunData, load_run
from spacenet.report.plots.by_task import by_task_plot
from spacenet.report.plots.class_memory import class_memory_plot
from spacenet.report.plots.collect import (
    accuracy_plots,
    capacity_plots,
    class_plots,
    comparison_plots,
    confusion_plots,
    mistakes_plots,
)
from spacenet.report.plots.plot import Plot
from spacenet.utils.files import save_text

STREAM, SEEDS = "split-mnist", 3
METHODS = ("naive", "ewc", "lwf", "er", "packnet", "static-sparse", "spacenet", "joint")
DENSITY = "spacenet-density"
CIFAR, CIFAR_METHODS = "cifar-10-100", ("naive", "ewc", "si", "lwf", "cwr", "ar1", "spacenet")
"""The paper's figure of accuracy per task, with its methods."""
INTRODUCTION = """\
# Gallery

What `spacenet run`, `spacenet compare` and `spacenet report` draw, each title with the run's own figures. All of it is
Split MNIST, seed 0 ({seeds} seeds in the comparison), but for the last picture: CIFAR-10/100, seed 0.
`python -m benchmarks.gallery` makes this page, here on {day}. The figures of the paper's analysis section are among
them: activations, connections before and after training, connections per pixel, parameters, accuracy per task. In the
last one the paper has SpaceNet ahead of all; here CWR+ and AR1, which keep what the large first task taught, are.
"""


def make(folder: Path) -> None:
    """Run what is missing, draw, and write the page."""
    for method in ("spacenet", "static-sparse", DENSITY):
        if not (folder / method / "metrics.json").is_file():
            _spacenet("run", STREAM, "--method", method, "--out", str(folder / method), "--no-report")
    _spacenet(
        "compare", STREAM, "--methods", ",".join(METHODS), "--seeds", str(SEEDS), "--out", str(folder / "compare")
    )
    _spacenet(
        "compare",
        CIFAR,
        "--methods",
        ",".join(CIFAR_METHODS),
        "--seeds",
        "1",
        "--out",
        str(folder / "cifar"),
        "--no-report",
    )
    run, beside = load_run(folder / "spacenet"), load_run(folder / "static-sparse")
    sections = {
        "What a run remembers": accuracy_plots([run]),
        "What it confuses": [*class_plots([run]), *confusion_plots([run]), *mistakes_plots([run])],
        "Network capacity": capacity_plots([run], beside),
        "With class statistics": _density(run, load_run(folder / DENSITY)),
        "Methods side by side": comparison_plots(load_comparison(folder / "compare")),
        "CIFAR-10/100, task by task": _cifar(folder / "cifar"),
    }
    parts = [INTRODUCTION.format(seeds=SEEDS, day=date.today().isoformat())]
    for title, plots in sections.items():
        parts += [f"## {title}\n", *(show_plot(plot) for plot in plots)]
    save_text(DOCS / "gallery.md", "\n".join(parts))


def _density(before: RunData, after: RunData) -> list[Plot]:
    """Which tasks are confused without class statistics and with them, and what fewer of them cost: docs/density.md."""
    plots = []
    for run in (before, after):
        method = run.config.model.method
        plot = next(each for each in confusion_plots([run]) if each.name == "task-confusion")
        plots.append(replace(plot, name=f"{method}-{plot.name}", title=f"{method}: {plot.title}"))
    curve = class_memory_plot(after)
    assert curve is not None
    return [*plots, curve]


def _cifar(folder: Path) -> list[Plot]:
    """The one plot that the Split MNIST comparison cannot stand for; under another name than there."""
    plot = by_task_plot(load_comparison(folder))
    assert plot is not None
    return [replace(plot, name=f"{CIFAR}-{plot.name}")]


def _spacenet(*arguments: str) -> None:
    code = spacenet(list(arguments))
    if code:
        raise RunError(f"spacenet {arguments[0]} ended with exit code {code}")


@dataclass(frozen=True)
class Options:
    """Make docs/gallery.md and its pictures from real runs."""

    folder: tyro.conf.Positional[Path] = Path("runs") / "gallery"
    """Where the runs are; those that it lacks are made."""


def main(arguments: list[str] | None = None) -> int:
    options = read_options(Options, "gallery", arguments)

    def act() -> int:
        make(options.folder)
        return 0

    return reported("gallery", act)


if __name__ == "__main__":
    sys.exit(main())
