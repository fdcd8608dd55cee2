"""docs/adaptive.md from the figures that `python -m benchmarks.adaptive` and `python -m benchmarks.unused` keep."""

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import mean

from benchmarks import unused
from benchmarks.methods import TITLES
from benchmarks.pictures import DOCS, show_plot
from benchmarks.results import HERE, Figures, over_seeds
from spacenet.report.plots.plot import Figure, Plot, new_figure, task_colors
from spacenet.report.tables import Table
from spacenet.utils.files import save_text
from spacenet.utils.significance import paired_p
from spacenet.utils.text import MeanStd

METHODS = ("spacenet", "static-sparse")
HEIGHT = 3.2  # of the figure in inches
INTRODUCTION = """\
# What moving the connections gains

`spacenet` moves a task's connections while it learns; `static-sparse` leaves them where they were drawn and is the
same otherwise. In the paper, adaptive training is worth 14 points on Split MNIST and 8 on Split Fashion-MNIST. How
much it is worth depends on how long and how fast a task is learned, so one pair of settings does not say much. Here
both learn every task with each of six learning rates and five numbers of epochs, all else as in their presets; what
is shown is ACC on held-out training data (10 %), the mean over three seeds. With one epoch per task there is no time
to move connections and both are the same.

The best pair of each method, chosen on the held-out data, is then measured on the test set.
"""
UNUSED = """\
## Units that are never used

The paper reports units that no task has used after all five: 92 and 91 of 400 in the hidden layers on Split MNIST, 90
and 93 on Split Fashion-MNIST. It calls unused what no task has *selected*. Each task selects units at random among
those that no earlier one has reserved, so their number follows from how many a task selects and reserves, whether or
not training is adaptive: "expected at random" is computed from these two numbers alone. Units *without connections*
are more, because a unit may be selected and yet lose all its connections while they move.
"""


def path(stream: str) -> Path:
    return HERE / f"adaptive-{stream}.json"


def load(stream: str) -> Figures | None:
    """What is kept of a stream."""
    place = path(stream)
    return dict(json.loads(place.read_text(encoding="utf-8"))) if place.is_file() else None


def page() -> None:
    """Make docs/adaptive.md."""
    parts = [INTRODUCTION]
    parts += [_section(facts) for stream in TITLES if (facts := load(stream)) is not None]
    table = unused.table(unused.load())
    parts.append(f"{UNUSED}\n{Table('', table.columns, table.rows, table.align).to_markdown()}")
    parts.append("\nCommands: `python -m benchmarks.adaptive`, `python -m benchmarks.unused`.\n")
    save_text(DOCS / "adaptive.md", "\n".join(parts))


def _section(facts: Figures) -> str:
    """A stream: the curves, the cells behind them, and the best ones on the test set."""
    stream = facts["stream"]
    found: dict[str, dict[tuple[int, float], float]] = {method: {} for method in METHODS}
    for cell in facts["cells"]:
        place = cell["epochs"], cell["learning_rate"]
        found[cell["method"]][place] = mean(seed["acc"] for seed in cell["seeds"])
    gaps = {place: value - found["static-sparse"][place] for place, value in found["spacenet"].items()}
    return "\n".join([f"## {TITLES[stream]}\n", show_plot(_plot(stream, found)), _cells(found, gaps), _tested(facts)])


def _cells(found: Mapping[str, Mapping[tuple[int, float], float]], gaps: Mapping[tuple[int, float], float]) -> str:
    epochs, rates = sorted({count for count, _ in gaps}), sorted({rate for _, rate in gaps})
    lines = [[f"{rate:g}", *(_cell(found, gaps[count, rate], (count, rate)) for count in epochs)] for rate in rates]
    columns = ["learning rate", *(f"{count} epoch{'s' * (count > 1)}" for count in epochs)]
    about = "`spacenet`, and in brackets what it is above `static-sparse`:\n\n"
    return about + Table("", columns, lines, "l" + "r" * len(epochs)).to_markdown()


def _cell(found: Mapping[str, Mapping[tuple[int, float], float]], gap: float, place: tuple[int, float]) -> str:
    return f"{found['spacenet'][place]:.1f} ({gap:+.1f})"


def _tested(facts: Figures) -> str:
    lines, accs = [], {}
    for method in METHODS:
        best = facts["test"][method]
        accs[method] = {seed["seed"]: seed["acc"] for seed in best["seeds"]}
        figures = [over_seeds([seed[key] for seed in best["seeds"]]) for key in ("acc", "bwt", "task_il_acc")]
        lines.append([method, f"{best['learning_rate']:g}", str(best["epochs"]), *figures, str(len(best["seeds"]))])
    columns = ["test set", "learning rate", "epochs", "ACC", "BWT", "task-IL", "seeds"]
    first, second = accs.values()
    gain, p = MeanStd.of([first[seed] - second[seed] for seed in first]), paired_p(first, second)
    said = f"Each at its best, `spacenet` is {gain} points above `static-sparse`"
    said += "." if p is None else f" (paired t-test over the seeds, p = {p:.2g})."
    measured = f"Measured on {facts['date']}, {facts['hardware']}."
    return f"{Table('', columns, lines, 'lrrrrrr').to_markdown()}\n{said} {measured}\n"


def _plot(stream: str, found: Mapping[str, Mapping[tuple[int, float], float]]) -> Plot:
    best = {method: max(cells.values()) for method, cells in found.items()}
    title = f"{TITLES[stream]}: moving connections helps most where a task is learned slowly or for a short time"
    text = (
        "A panel for each number of epochs, ACC on held-out data against the learning rate, a line for each method. "
        + "Highest: "
        + ", ".join(f"{method} {value:.1f} %" for method, value in best.items())
        + "."
    )
    return Plot(f"adaptive-{stream}", title, text, lambda: _draw(found))


def _draw(found: Mapping[str, Mapping[tuple[int, float], float]]) -> Figure:
    figure = new_figure(HEIGHT)
    epochs = sorted({place[0] for place in found["spacenet"]})
    panels = figure.subplots(1, len(epochs), sharey=True)
    for panel, count in zip(panels, epochs, strict=True):
        for (method, cells), color in zip(found.items(), task_colors(len(found)), strict=True):
            rates = sorted(rate for each, rate in cells if each == count)
            style = "-" if method == METHODS[0] else "--"
            panel.plot(
                rates, [cells[count, rate] for rate in rates], style, color=color, marker="o", ms=3, label=method
            )
        panel.set_xscale("log")
        panel.set_title(f"{count} epoch{'s' * (count > 1)}", fontsize="small")
        panel.set_xticks([0.01, 0.1], ["0.01", "0.1"])
    panels[0].set_ylabel("ACC in %")
    panels[len(epochs) // 2].set_xlabel("learning rate")
    panels[0].legend(frameon=False, fontsize="x-small", loc="upper left")
    return figure
