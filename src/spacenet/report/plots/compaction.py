"""A task's connections before and after adaptive training: they gather at few units (a figure of the paper)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spacenet.report.plots.areas import half_of, paint
from spacenet.report.plots.initial_allocation import laid_out
from spacenet.report.plots.plot import INK, LINE, Plot, colours, new_figure
from spacenet.report.run_data import RunFacts
from spacenet.space.blueprint import Blueprint, Link
from spacenet.space.cut import Units
from spacenet.space.ledger import Connections

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

Block = NDArray[np.bool_]
CENTRED: dict[str, Any] = {"size": 8, "ha": "center", "va": "center"}


@dataclass(frozen=True)
class CompactionData:
    """Whether there is a connection from a unit (column) to a unit (row), among those that the task selected."""

    task: int
    """From 1."""
    tasks: int
    source: str
    target: str
    before: Block
    after: Block


def compaction_data(facts: RunFacts, task: int = 1) -> CompactionData | None:
    """Between the first two hidden layers, or from the inputs where there is one; None if nothing moved there."""
    found = laid_out(facts, task - 1)
    if found is None or facts.model is None:
        return None
    selection, new = found
    ledger = facts.model.method.ledger
    link = _first_between_hidden(ledger.blueprint)
    held = ledger.connections[link.name]
    before = _block(new[link.name], link, selection)
    after = _block(held[held.owner == task - 1], link, selection)
    if not before.any() or bool((before == after).all()):
        return None
    return CompactionData(task, len(facts.model.tasks), link.source, link.target, before, after)


def _first_between_hidden(blueprint: Blueprint) -> Link:
    hidden = [layer.name for layer in blueprint.hidden]
    inner = (link for link in blueprint.links if link.source in hidden and link.target in hidden)
    return next(inner, blueprint.links[0])


def _block(connections: Connections, link: Link, selection: Units) -> Block:
    targets, sources = selection[link.target].numpy(), selection[link.source].numpy()
    block = np.zeros((len(targets), len(sources)), bool)
    rows = np.searchsorted(targets, connections.target.numpy())
    block[rows, np.searchsorted(sources, connections.source.numpy())] = True
    return block


def compaction_picture(data: CompactionData) -> Plot:
    """Two panels, before and after, each sorted by how many connections its units have."""
    enter = [half_of(block.sum(1)) for block in (data.before, data.after)]
    leave = [half_of(block.sum(0)) for block in (data.before, data.after)]
    targets, sources = data.after.shape
    before = "as many as before" if enter[0] == enter[1] else f"before it was {enter[0]}"
    title = f"After training, half of task {data.task}'s connections enter {enter[1]} of the {targets} units; {before}"
    text = (
        f"{data.after.sum():,} connections of task {data.task} from {data.source} to {data.target} before and after "
        f"training. Half of them entered {enter[0]} of {targets} units before and enter {enter[1]} after; half "
        f"left {leave[0]} of {sources} units before and leave {leave[1]} after."
    )
    return Plot("connections-before-after", title, text, lambda: _draw(data))


def _draw(data: CompactionData) -> "Figure":
    figure = new_figure(3.9)
    most = tuple(max(int(block.sum(axis).max()) for block in (data.before, data.after)) for axis in (0, 1))
    shade = colours(data.tasks)[data.task - 1]
    parts: Any = figure.subfigures(1, 2)
    for part, block, name in zip(
        parts, (data.before, data.after), ("before training: laid at random", "after training"), strict=True
    ):
        _panel(part, block, data, name, (most[0], most[1]), shade)
    return figure


def _panel(part: "SubFigure", block: Block, data: CompactionData, name: str, most: tuple[int, int], shade: str) -> None:
    """The connections; above them the numbers for each source, at their right those for each target."""
    targets, sources = block.shape
    grid: Any = part.subplots(
        2, 2, gridspec_kw={"width_ratios": (4, 1.2), "height_ratios": (1, 4)}, squeeze=False, sharex="col", sharey="row"
    )
    (above, corner), (middle, right) = grid
    corner.axis("off")
    per_target, per_source = block.sum(1), block.sum(0)
    enter, leave = half_of(per_target), half_of(per_source)
    corner.text(0.5, 0.5, f"half enter\n{enter} of {targets}", transform=corner.transAxes, **CENTRED)
    above.text(
        (1 + leave / sources) / 2, 0.86, f"half leave {leave} of {sources}", transform=above.transAxes, **CENTRED
    )
    ordered = block[np.argsort(-per_target, kind="stable")][:, np.argsort(-per_source, kind="stable")]
    paint(middle, np.where(ordered, 0, -1), [shade], (0.0, sources, targets, 0.0))
    above.fill_between(np.arange(sources + 1), np.append(np.sort(per_source)[::-1], 0), step="post", color=shade)
    right.fill_betweenx(np.arange(targets + 1), np.append(np.sort(per_target)[::-1], 0), step="post", color=shade)
    above.set(ylim=(0, most[0] * 1.5), xlim=(0, sources))
    right.set(xlim=(0, most[1]), ylim=(targets, 0))
    for axes, half in ((above, leave), (right, enter)):
        axes.spines[:].set_visible(False)
        axes.grid(axis="y" if axes is above else "x")
        line = axes.axvline if axes is above else axes.axhline
        line(half, color=INK, linewidth=1)
    middle.locator_params(integer=True, nbins=6)
    above.tick_params(axis="x", length=0)
    right.tick_params(axis="y", length=0)
    for spine in middle.spines.values():
        spine.set(visible=True, color=LINE)
    middle.set(xlabel=f"{sources} units of {data.source}, fullest first", ylabel=f"{targets} units of {data.target}")
    above.set_ylabel("connections", size=8)
    right.set_xlabel("connections", size=8, loc="right")
    part.suptitle(name, size=9, color=INK)
