"""The first task's connections before and after training: they concentrate on few units (a figure of the paper)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.run import RunData
from spacenet.model.model import Model
from spacenet.model.selection import repeat_allocations
from spacenet.report.plots.drawing import CENTERED, paint, units_with_half
from spacenet.report.plots.plot import INK, LINE, Figure, Plot, new_figure, task_colors
from spacenet.space.blueprint import Link
from spacenet.space.ledger import Connections
from spacenet.space.pack import Units

Block = NDArray[np.bool_]


@dataclass(frozen=True)
class Blocks:
    """Whether a unit (column) is connected to a unit (row), among those selected for the first task."""

    source: str
    target: str
    before: Block
    after: Block


def first_blocks(model: Model) -> Blocks:
    """Between the first two hidden layers, or from the inputs if there is only one."""
    ledger, (selection, initial) = model.method.ledger, next(repeat_allocations(model))
    hidden, links = {layer.name for layer in ledger.blueprint.hidden}, ledger.blueprint.links
    link = next((link for link in links if {link.source, link.target} <= hidden), links[0])
    held = ledger.connections[link.name]
    before, after = (_block(each, link, selection) for each in (initial[link.name], held[held.owner == 0]))
    return Blocks(link.source, link.target, before, after)


def _block(connections: Connections, link: Link, selection: Units) -> Block:
    targets, sources = selection[link.target].numpy(), selection[link.source].numpy()
    block = np.zeros((len(targets), len(sources)), bool)
    rows = np.searchsorted(targets, connections.target.numpy())
    block[rows, np.searchsorted(sources, connections.source.numpy())] = True
    return block


def compaction_plot(run: RunData) -> Plot | None:
    """Two panels, before and after, each sorted by how many connections its units have; None if nothing moved there."""
    if run.model is None or not run.model.method.divides_network:
        return None
    data, shade = first_blocks(run.model), task_colors(len(run.model.tasks))[0]
    if not data.before.any() or bool((data.before == data.after).all()):
        return None
    enter, leave = ([units_with_half(block.sum(axis)) for block in (data.before, data.after)] for axis in (1, 0))
    targets, sources = data.after.shape
    before = "as before" if enter[0] == enter[1] else f"{enter[0]} before"
    title = f"After training, half of task 1's connections enter {enter[1]} of {targets} units ({before})"
    text = (
        f"{data.after.sum():,} connections of task 1 from {data.source} to {data.target} before and after "
        f"training. Half of them enter {enter[0]} of {targets} units before and {enter[1]} after; half leave "
        f"{leave[0]} of {sources} units before and {leave[1]} after."
    )
    return Plot("connections-before-after", title, text, lambda: _draw(data, shade))


def _draw(data: Blocks, shade: str) -> Figure:
    figure, blocks = new_figure(3.9), (data.before, data.after)
    most = [max(int(block.sum(axis).max()) for block in blocks) for axis in (0, 1)]
    parts: Any = figure.subfigures(1, 2)
    for part, block, name in zip(parts, blocks, ("before training (random)", "after training"), strict=True):
        _draw_panel(part, block, data, shade, most)
        part.suptitle(name, size=9, color=INK)
    return figure


def _draw_panel(part: Any, block: Block, data: Blocks, shade: str, most: Sequence[int]) -> None:
    """The connections; above them the number of each source, to the right that of each target, up to `most`."""
    targets, sources = block.shape
    ratios = {"width_ratios": (4, 1.2), "height_ratios": (1, 4)}
    (above, corner), (middle, right) = part.subplots(2, 2, gridspec_kw=ratios, sharex="col", sharey="row")
    per_target, per_source = block.sum(1), block.sum(0)
    enter, leave = units_with_half(per_target), units_with_half(per_source)
    style: dict[str, Any] = {"size": 8, **CENTERED}
    corner.axis("off")
    corner.text(0.5, 0.5, f"half enter\n{enter} of {targets}", transform=corner.transAxes, **style)
    place = (1 + leave / sources) / 2
    above.text(place, 0.86, f"half leave {leave} of {sources}", transform=above.transAxes, **style)
    ordered = block[np.argsort(-per_target, kind="stable")][:, np.argsort(-per_source, kind="stable")]
    paint(middle, np.where(ordered, 0, -1), [shade], (0.0, sources, targets, 0.0))
    above.fill_between(np.arange(sources + 1), np.append(np.sort(per_source)[::-1], 0), step="post", color=shade)
    right.fill_betweenx(np.arange(targets + 1), np.append(np.sort(per_target)[::-1], 0), step="post", color=shade)
    above.axvline(leave, color=INK, linewidth=1)
    right.axhline(enter, color=INK, linewidth=1)
    for axes, across, along in ((above, "y", "x"), (right, "x", "y")):
        axes.spines[:].set_visible(False)
        axes.grid(axis=across)
        axes.tick_params(axis=along, length=0)
    middle.locator_params(integer=True, nbins=6)
    middle.spines[:].set(visible=True, color=LINE)
    middle.set(xlabel=f"{sources} units of {data.source} (sorted)", ylabel=f"{targets} units of {data.target}")
    above.set(xlim=(0, sources), ylim=(0, most[0] * 1.5))
    above.set_ylabel("connections", size=8)
    right.set(ylim=(targets, 0), xlim=(0, most[1]))
    right.set_xlabel("connections", size=8, loc="right")
