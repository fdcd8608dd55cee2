"""How many connections each task has between layers, and how many of them moved in training."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spacenet.experiments.run import RunData
from spacenet.report.plots.drawing import evenly_chosen, paint, text_color
from spacenet.report.plots.labels import abbreviate, share_text, spread_labels
from spacenet.report.plots.plot import Plot, new_figure, task_colors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FINE = 1000
"""Steps into which the length of a bar is divided."""
BAR, PITCH, LONG = 0.26, 0.36, 3.3
"""Inches: height of a bar, distance between bars, approximate length of the longest bar."""
LETTER = 0.058
"""Approximate width of a letter in inches."""
MAX_THICK = 10
"""Bars up to which they have their full height."""
MAX_LABELS = 10
"""Lines that have room for a label at their end."""


@dataclass(frozen=True)
class LinkUsage:
    """The connections from one layer to another."""

    source: str
    target: str
    counts: tuple[int, ...]
    """Of each task."""
    positions: int
    """How many are possible."""

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def share(self) -> float:
        """Connections in percent of those that are possible."""
        return 100 * self.total / self.positions


def connections_data(run: RunData) -> tuple[LinkUsage, ...] | None:
    """Counted in the model's ledger; None without a model."""
    if run.model is None:
        return None
    ledger, tasks = run.model.method.ledger, len(run.model.tasks)
    return tuple(
        LinkUsage(
            link.source,
            link.target,
            tuple(ledger.connections[link.name].owner.long().bincount(minlength=tasks).tolist()),
            ledger.size(link.source) * ledger.size(link.target),
        )
        for link in ledger.blueprint.links
    )


def connections_plot(links: tuple[LinkUsage, ...]) -> Plot:
    """A bar for each pair of connected layers, divided by task."""
    total, positions = sum(link.total for link in links), sum(link.positions for link in links)
    each = sorted({sum(counts) for counts in zip(*(link.counts for link in links), strict=True)})
    adds = f"{each[0]:,}" if len(each) == 1 else f"{each[0]:,} to {each[-1]:,}"
    title = f"{total:,} connections, {_percent(100 * total / positions)} of all possible"
    if len(links[0].counts) > 1:
        title += f"; {'each task adds' if len(each) == 1 else 'tasks add'} {adds}"
    parts = (
        f"{_name(link)} {abbreviate([f'{count:,}' for count in link.counts])}; in all {link.total:,}" for link in links
    )
    text = f"Bar chart of the connections between layers by task, from the first task to the last. {'. '.join(parts)}."
    return Plot("connections-per-task", title, text, lambda: _draw_bars(links))


def _draw_bars(links: tuple[LinkUsage, ...]) -> "Figure":
    pitch = PITCH if len(links) <= MAX_THICK else PITCH / 2
    figure = new_figure(pitch * len(links) + 0.6)
    axes = figure.subplots()
    longest = max(link.share for link in links)
    shades = task_colors(len(links[0].counts))
    for place, link in enumerate(links):
        if not link.total:
            continue
        ends = np.cumsum(link.counts) / link.total * link.share
        owner = np.searchsorted(ends, (np.arange(FINE) + 0.5) / FINE * link.share)
        half = BAR / PITCH / 2
        paint(axes, owner[None], shades, (0.0, link.share, place + half, place - half))
        for number, count in enumerate(link.counts):
            width = count / link.total * link.share / longest * LONG
            text = next((text for text in _inside(link, number, place == 0) if LETTER * len(text) < width), "")
            if text:
                middle = ends[number] - count / link.total * link.share / 2
                axes.text(middle, place, text, color=text_color(shades[number]), size=7, ha="center", va="center")
        axes.text(link.share + longest * 0.01, place, _end(link), size=8, va="center")
    axes.set(xlim=(0, longest * 1.75), ylim=(len(links) - 0.5, -0.5))
    axes.set_yticks(range(len(links)), [_name(link) for link in links])
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= longest * 1.05])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(0, longest)
    axes.set_xlabel("connections in % of all possible between the two layers; tasks from left to right", loc="left")
    return figure


def _name(link: LinkUsage) -> str:
    return f"{link.source} → {link.target}"


def _inside(link: LinkUsage, number: int, first: bool) -> list[str]:
    """Texts for a task's part of a bar, the longest first; the first bar names the tasks."""
    count, equal = f"{link.counts[number]:,}", len(set(link.counts)) == 1
    if not first:
        return [] if equal else [count]
    return ([] if equal else [f"task {number + 1}: {count}"]) + [f"task {number + 1}", str(number + 1)]


def _end(link: LinkUsage) -> str:
    text = f"{link.total:,} of {link.positions:,} ({_percent(link.share)})"
    return f"{text}, {link.counts[0]:,} each" if len(set(link.counts)) == 1 < len(link.counts) else text


def _percent(share: float) -> str:
    return f"{share:.1f} %" if share < 99.95 else "100 %"


@dataclass(frozen=True)
class RewiringData:
    """How many of each task's connections have moved since its training began."""

    learned: int
    """Number of tasks."""
    moved: dict[int, tuple[float, ...]]
    """By task, from 1: percent before training and after each epoch. Tasks without connections to move are left out."""


def rewiring_data(run: RunData) -> RewiringData | None:
    """What the run recorded; None if no connection moved."""
    moved = {}
    for task in run.metrics["tasks"]:
        line = tuple(100 * epoch["moved"] for epoch in task["epochs"] if math.isfinite(epoch.get("moved", math.nan)))
        if line:
            moved[task["index"] + 1] = (0.0, *line)
    return RewiringData(len(run.metrics["tasks"]), moved) if any(map(any, moved.values())) else None


def rewiring_plot(data: RewiringData) -> Plot:
    """A line for each task."""
    last = [line[-1] for line in data.moved.values()]
    if data.learned == 1:
        which = f"{share_text(last[0])} of the task's connections"
    elif round(min(last)) == round(max(last)):
        which = f"{share_text(last[0])} of every task's connections"
    else:
        which = f"{min(last):.0f} to {max(last):.0f} % of a task's connections"
    title = f"By the end of training, {which} have moved"
    parts = [f"task {number} {share_text(share)}" for number, share in zip(data.moved, last, strict=True)]
    text = f"Lines of the connections that moved in training, output layer excluded. In the end: {abbreviate(parts)}."
    return Plot("rewiring", title, text, lambda: _draw_lines(data))


def _draw_lines(data: RewiringData) -> "Figure":
    figure = new_figure(2.8)
    axes = figure.subplots()
    tasks, top = list(data.moved), max(map(max, data.moved.values()))
    shades, named = task_colors(data.learned), [tasks[place] for place in evenly_chosen(len(tasks), MAX_LABELS)]
    for task, line in data.moved.items():
        axes.plot(range(len(line)), line, color=shades[task - 1], linewidth=1.5)
    heights = spread_labels([data.moved[task][-1] for task in named], top * 0.065, 0, top * 1.05)
    end = max(map(len, data.moved.values())) - 1
    for task, height in zip(named, heights, strict=True):
        line = data.moved[task]
        label = (end * 1.03, height)
        axes.plot([len(line) - 1, label[0]], [line[-1], height], color=shades[task - 1], linewidth=0.7, clip_on=False)
        axes.text(*label, f" task {task}: {share_text(line[-1])}", size=8, va="center")
    axes.set(xlim=(0, end), ylim=(0, max(top, *heights) * 1.03), xlabel="epochs of training")
    axes.set_ylabel("connections that moved, in %")
    axes.locator_params(axis="x", integer=True)
    axes.grid(axis="y")
    return figure
