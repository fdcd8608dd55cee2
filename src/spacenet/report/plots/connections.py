"""How many connections each task has in each layer, and how far they moved while it trained."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spacenet.report.plots.areas import letters_on, listed, paint, some_of
from spacenet.report.plots.labels import share_text, spread_out
from spacenet.report.plots.plot import Plot, colours, new_figure
from spacenet.report.run_data import RunFacts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FINE = 1000
"""Into so many steps the length of a bar is divided."""
BAR, PITCH, LONG = 0.26, 0.36, 3.3
"""Inches: a bar's height, the distance from one to the next, and the longest bar's length, about."""
LETTER = 0.058
"""Inches of a letter on a bar, about."""
FEW = 10
"""More bars than these are drawn thinner."""
LINES_NAMED = 10
"""So many lines have room for a label at their end."""


@dataclass(frozen=True)
class LinkUse:
    """The connections from one layer to another."""

    source: str
    target: str
    counts: tuple[int, ...]
    """Of each task."""
    positions: int
    """How many there could be."""

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def share(self) -> float:
        """Connections there are, in percent of those that could be."""
        return 100 * self.total / self.positions


def connections_data(facts: RunFacts) -> tuple[LinkUse, ...] | None:
    """Counted in the ledger; None where there is no space."""
    if facts.model is None:
        return None
    ledger, tasks = facts.model.method.ledger, len(facts.model.tasks)
    return tuple(
        LinkUse(
            link.source,
            link.target,
            tuple(ledger.connections[link.name].owner.long().bincount(minlength=tasks).tolist()),
            ledger.size(link.source) * ledger.size(link.target),
        )
        for link in ledger.blueprint.links
    )


def connections_picture(links: tuple[LinkUse, ...]) -> Plot:
    """A bar for each pair of layers, divided by task."""
    total, positions = sum(link.total for link in links), sum(link.positions for link in links)
    each = sorted({sum(counts) for counts in zip(*(link.counts for link in links), strict=True)})
    adds = f"{each[0]:,}" if len(each) == 1 else f"{each[0]:,} to {each[-1]:,}"
    title = f"{total:,} connections, {_percent(100 * total / positions)} of all possible"
    if len(links[0].counts) > 1:
        title += f"; {'each task adds' if len(each) == 1 else 'tasks add'} {adds}"
    parts = (
        f"{_name(link)} {listed([f'{count:,}' for count in link.counts])}; in all {link.total:,} of {link.positions:,}"
        for link in links
    )
    text = f"Connections of each task, from the first on, between layers. {'. '.join(parts)}."
    return Plot("connections-per-task", title, text, lambda: _draw_bars(links))


def _draw_bars(links: tuple[LinkUse, ...]) -> "Figure":
    pitch = PITCH if len(links) <= FEW else PITCH / 2
    figure = new_figure(pitch * len(links) + 0.6)
    axes = figure.subplots()
    longest = max(link.share for link in links)
    shades = colours(len(links[0].counts))
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
                axes.text(middle, place, text, color=letters_on(shades[number]), size=7, ha="center", va="center")
        axes.text(link.share + longest * 0.01, place, _end(link), size=8, va="center")
    axes.set(xlim=(0, longest * 1.75), ylim=(len(links) - 0.5, -0.5))
    axes.set_yticks(range(len(links)), [_name(link) for link in links])
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= longest * 1.05])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(0, longest)
    axes.set_xlabel("connections in % of all that the two layers could have; tasks from left to right", loc="left")
    return figure


def _name(link: LinkUse) -> str:
    return f"{link.source} → {link.target}"


def _inside(link: LinkUse, number: int, first: bool) -> list[str]:
    """What to write on a task's part of a bar, if there is room; the first bar says which task it is."""
    count, equal = f"{link.counts[number]:,}", len(set(link.counts)) == 1
    if not first:
        return [] if equal else [count]
    return ([] if equal else [f"task {number + 1}: {count}"]) + [f"task {number + 1}", str(number + 1)]


def _end(link: LinkUse) -> str:
    text = f"{link.total:,} of {link.positions:,} ({_percent(link.share)})"
    return f"{text}, {link.counts[0]:,} each" if len(set(link.counts)) == 1 < len(link.counts) else text


def _percent(share: float) -> str:
    return f"{share:.1f} %" if share < 99.95 else "100 %"


@dataclass(frozen=True)
class RewiringData:
    """How many of a task's connections lie elsewhere than at first."""

    learned: int
    """Tasks there are."""
    moved: dict[int, tuple[float, ...]]
    """By task, from 1: percent before training and after each epoch. Tasks without connections to move are left out."""


def rewiring_data(facts: RunFacts) -> RewiringData | None:
    """As the run noted it; None where connections stay where they are."""
    moved = {}
    for task in facts.metrics["tasks"]:
        line = tuple(100 * epoch["moved"] for epoch in task["epochs"] if math.isfinite(epoch.get("moved", math.nan)))
        if line:
            moved[task["index"] + 1] = (0.0, *line)
    return RewiringData(len(facts.metrics["tasks"]), moved) if any(map(any, moved.values())) else None


def rewiring_picture(data: RewiringData) -> Plot:
    """A line for each task."""
    last = [line[-1] for line in data.moved.values()]
    if data.learned == 1:
        who = f"{share_text(last[0])} of the task's connections"
    elif round(min(last)) == round(max(last)):
        who = f"{share_text(last[0])} of every task's connections"
    else:
        who = f"{min(last):.0f} to {max(last):.0f} % of a task's connections"
    title = f"When training ends, {who} lie elsewhere than at first"
    parts = [f"task {number} {share_text(share)}" for number, share in zip(data.moved, last, strict=True)]
    text = f"Connections that had moved when training ended, those of the classifiers apart: {listed(parts)}."
    return Plot("rewiring", title, text, lambda: _draw_lines(data))


def _draw_lines(data: RewiringData) -> "Figure":
    figure = new_figure(2.8)
    axes = figure.subplots()
    tasks, top = list(data.moved), max(map(max, data.moved.values()))
    shades, named = colours(data.learned), [tasks[place] for place in some_of(len(tasks), LINES_NAMED)]
    for task, line in data.moved.items():
        axes.plot(range(len(line)), line, color=shades[task - 1], linewidth=1.5)
    heights = spread_out([data.moved[task][-1] for task in named], top * 0.065, 0, top * 1.05)
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
