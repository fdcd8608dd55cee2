"""How many connections each task has between layers, and how many of them moved in training."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spacenet.experiments.run import RunData
from spacenet.model.model import Model
from spacenet.report.plots import drawing
from spacenet.report.plots.drawing import CENTERED, abbreviate, paint, share_text, text_color
from spacenet.report.plots.plot import Axes, Figure, Plot, new_axes, task_colors

FINE = 1000  # steps into which the length of a bar is divided
BAR, PITCH, LONG = 0.26, 0.36, 3.3  # inches: height of a bar, distance between bars, length of the longest bar (about)
LETTER = 0.058  # approximate width of a letter in inches
MAX_THICK = 10  # bars up to which they have their full height
MAX_LABELS = 10  # lines that have room for a label at their end


@dataclass(frozen=True)
class LinkUsage:
    """The connections from one layer to another."""

    name: str
    counts: Sequence[int]  # of each task
    positions: int  # how many are possible

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def share(self) -> float:
        """Connections in percent of those that are possible."""
        return 100 * self.total / self.positions


def link_usage(model: Model) -> list[LinkUsage]:
    """Counted in the model's ledger."""
    ledger, links = model.method.ledger, []
    for link in ledger.blueprint.links:
        counts = ledger.connections[link.name].owner.long().bincount(minlength=len(model.tasks))
        positions = ledger.size(link.source) * ledger.size(link.target)
        links.append(LinkUsage(f"{link.source} → {link.target}", counts.tolist(), positions))
    return links


def connections_plot(run: RunData) -> Plot | None:
    """A bar for each pair of connected layers, divided by task; None without a model that divides its network."""
    if run.model is None or not run.model.method.divides_network:
        return None
    links = link_usage(run.model)
    total, positions = sum(link.total for link in links), sum(link.positions for link in links)
    title = f"{total:,} connections, {_percent(100 * total / positions)} of all possible"
    each = sorted({sum(counts) for counts in zip(*(link.counts for link in links), strict=True)})
    if len(links[0].counts) > 1:
        title += f"; each task adds {each[0]:,}" if len(each) == 1 else f"; tasks add {each[0]:,} to {each[-1]:,}"
    parts = (f"{link.name} {abbreviate([f'{n:,}' for n in link.counts])}; in all {link.total:,}" for link in links)
    text = f"Bar chart of the connections between layers by task, from the first task to the last. {'. '.join(parts)}."
    return Plot("connections-per-task", title, text, lambda: _draw_bars(links))


def _draw_bars(links: Sequence[LinkUsage]) -> Figure:
    figure, axes = new_axes((PITCH if len(links) <= MAX_THICK else PITCH / 2) * len(links) + 0.6)
    longest = max(link.share for link in links)
    for place, link in enumerate(links):
        if link.total:
            _draw_bar(axes, link, place, longest)
    axes.set(xlim=(0, longest * 1.75), ylim=(len(links) - 0.5, -0.5))
    axes.set_yticks(range(len(links)), [link.name for link in links])
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= longest * 1.05])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(0, longest)
    axes.set_xlabel("connections in % of all possible between the two layers; tasks from left to right", loc="left")
    return figure


def _draw_bar(axes: Axes, link: LinkUsage, place: int, longest: float) -> None:
    shades, half = task_colors(len(link.counts)), BAR / PITCH / 2
    equal = len(set(link.counts)) == 1
    widths = np.array(link.counts) / link.positions * 100
    ends = widths.cumsum()
    owner = np.searchsorted(ends, (np.arange(FINE) + 0.5) / FINE * link.share).clip(max=len(ends) - 1)
    paint(axes, owner[None], shades, (0.0, link.share, place + half, place - half))
    for task, (count, width, end) in enumerate(zip(link.counts, widths, ends, strict=True), 1):
        texts = [] if equal else [f"{count:,}"]
        if place == 0:  # the first bar names the tasks
            texts = [*(f"task {task}: {text}" for text in texts), f"task {task}", str(task)]
        for text in [text for text in texts if LETTER * len(text) < width / longest * LONG][:1]:
            axes.text(end - width / 2, place, text, color=text_color(shades[task - 1]), size=7, **CENTERED)
    text = f"{link.total:,} of {link.positions:,} ({_percent(link.share)})"
    text += f", {link.counts[0]:,} each" if equal and len(link.counts) > 1 else ""
    axes.text(link.share + longest * 0.01, place, text, size=8, va="center")


def _percent(share: float) -> str:
    return f"{share:.1f} %" if share < 99.95 else "100 %"


def moved_connections(run: RunData) -> dict[int, list[float]]:
    """Of each task, from 1: how many have moved since its training began, in percent, at first and after each epoch.

    Tasks without connections to move are left out.
    """
    moved = {}
    for number, task in enumerate(run.metrics["tasks"], 1):
        shares = [epoch.get("moved", math.nan) for epoch in task["epochs"]]
        moved[number] = [0.0, *(100 * share for share in shares if math.isfinite(share))]
    return {number: line for number, line in moved.items() if len(line) > 1}


def rewiring_plot(run: RunData) -> Plot | None:
    """A line for each task; None if no connection moved."""
    moved, learned = moved_connections(run), len(run.metrics["tasks"])
    if not any(map(any, moved.values())):
        return None
    last = [line[-1] for line in moved.values()]
    if learned == 1 or round(min(last)) == round(max(last)):
        which = f"{share_text(last[0])} of {'the' if learned == 1 else 'every'} task's connections"
    else:
        which = f"{min(last):.0f} to {max(last):.0f} % of a task's connections"
    parts = [f"task {number} {share_text(share)}" for number, share in zip(moved, last, strict=True)]
    text = f"Lines of the connections that moved in training, output layer excluded. In the end: {abbreviate(parts)}."
    return Plot("rewiring", f"By the end of training, {which} have moved", text, lambda: _draw_lines(moved, learned))


def _draw_lines(moved: Mapping[int, Sequence[float]], learned: int) -> Figure:
    figure, axes = new_axes(2.8)
    tasks, top = list(moved), max(map(max, moved.values()))
    shades, named = task_colors(learned), [tasks[place] for place in drawing.evenly_chosen(len(tasks), MAX_LABELS)]
    for task, line in moved.items():
        axes.plot(range(len(line)), line, color=shades[task - 1], linewidth=1.5)
    heights = drawing.spread_labels([moved[task][-1] for task in named], top * 0.065, 0, top * 1.05)
    end = max(map(len, moved.values())) - 1
    for task, y in zip(named, heights, strict=True):
        line, x = moved[task], end * 1.03
        axes.plot([len(line) - 1, x], [line[-1], y], color=shades[task - 1], linewidth=0.7, clip_on=False)
        axes.text(x, y, f" task {task}: {share_text(line[-1])}", size=8, va="center")
    axes.set(xlim=(0, end), ylim=(0, max(top, *heights) * 1.03))
    axes.set(xlabel="epochs of training", ylabel="connections that moved, in %")
    axes.locator_params(axis="x", integer=True)
    axes.grid(axis="y")
    return figure
