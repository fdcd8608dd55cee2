"""A task's connections before and after training: they concentrate on few units (a figure of the paper).

The connections before training are not stored. They follow from the seed, so the allocation is repeated.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spacenet.data.stream import Task
from spacenet.experiments.run import RunData
from spacenet.report.plots.drawing import CENTERED, paint, units_with_half
from spacenet.report.plots.plot import INK, LINE, Figure, Plot, new_figure, task_colors
from spacenet.space.blueprint import Link
from spacenet.space.ledger import FREE, Connections, Ledger
from spacenet.space.pack import Units

Block = NDArray[np.bool_]


@dataclass(frozen=True)
class CompactionData:
    """Whether a unit (column) is connected to a unit (row), among those selected for the task."""

    task: int  # from 1
    tasks: int
    source: str
    target: str
    before: Block
    after: Block


def compaction_data(run: RunData, task: int = 1) -> CompactionData | None:
    """Between the first two hidden layers, or from the inputs if there is only one; None if nothing moved there."""
    found = initial_allocation(run, task - 1)
    if found is None or run.model is None:
        return None
    ledger = run.model.method.ledger
    hidden, links = {layer.name for layer in ledger.blueprint.hidden}, ledger.blueprint.links
    link = next((link for link in links if {link.source, link.target} <= hidden), links[0])
    held = ledger.connections[link.name]
    before, after = (_block(each, link, found[0]) for each in (found[1][link.name], held[held.owner == task - 1]))
    if not before.any() or bool((before == after).all()):
        return None
    return CompactionData(task, len(run.model.tasks), link.source, link.target, before, after)


def initial_allocation(run: RunData, task: int) -> tuple[Units, dict[str, Connections]] | None:
    """The units selected for a task (from 0) and its connections before training; None without a model."""
    if run.model is None:
        return None
    model, first = run.model, sum(map(len, run.model.tasks[:task]))
    method = model.build()
    method.ledger = ledger_before(run, task)
    labels = model.tasks[task]
    method.plan.carry_out(method.ledger, task)
    no_data: Any = None  # the allocation uses no samples
    return method.allocate(Task(task, labels, range(first, first + len(labels)), no_data))


def ledger_before(run: RunData, task: int) -> Ledger:
    """The ledger without what this task and later ones did: connections, reservations and units added."""
    assert run.model is not None
    now, sizes = run.model.method.ledger, {layer.name: layer.size for layer in run.model.method.blueprint.layers}
    if task:
        sizes |= {layer["name"]: layer["units"] for layer in run.metrics["tasks"][task - 1]["layers"]}
    then = Ledger(now.blueprint)
    for layer in now.blueprint.layers:
        state = now.state[layer.name][: sizes[layer.name]]
        then.state[layer.name] = torch.where(state < task, state, FREE)
        then.units |= {key: now.units[key][: sizes[layer.name]] for key in layer.keys()}
    then.connections = {name: held[held.owner < task] for name, held in now.connections.items()}
    return then


def _block(connections: Connections, link: Link, selection: Units) -> Block:
    targets, sources = selection[link.target].numpy(), selection[link.source].numpy()
    block = np.zeros((len(targets), len(sources)), bool)
    rows = np.searchsorted(targets, connections.target.numpy())
    block[rows, np.searchsorted(sources, connections.source.numpy())] = True
    return block


def compaction_plot(data: CompactionData) -> Plot:
    """Two panels, before and after, each sorted by how many connections its units have."""
    enter, leave = ([units_with_half(block.sum(axis)) for block in (data.before, data.after)] for axis in (1, 0))
    targets, sources = data.after.shape
    before = "as before" if enter[0] == enter[1] else f"{enter[0]} before"
    title = f"After training, half of task {data.task}'s connections enter {enter[1]} of {targets} units ({before})"
    text = (
        f"{data.after.sum():,} connections of task {data.task} from {data.source} to {data.target} before and after "
        f"training. Half of them enter {enter[0]} of {targets} units before and {enter[1]} after; half leave "
        f"{leave[0]} of {sources} units before and {leave[1]} after."
    )
    return Plot("connections-before-after", title, text, lambda: _draw(data))


def _draw(data: CompactionData) -> Figure:
    figure, blocks = new_figure(3.9), (data.before, data.after)
    most = [max(int(block.sum(axis).max()) for block in blocks) for axis in (0, 1)]
    parts: Any = figure.subfigures(1, 2)
    for part, block, name in zip(parts, blocks, ("before training (random)", "after training"), strict=True):
        above, right = _draw_panel(part, block, data)
        above.set_ylim(0, most[0] * 1.5)
        right.set_xlim(0, most[1])
        part.suptitle(name, size=9, color=INK)
    return figure


def _draw_panel(part: Any, block: Block, data: CompactionData) -> tuple[Any, Any]:
    """The connections; above them the number of each source, to the right that of each target."""
    targets, sources = block.shape
    ratios = {"width_ratios": (4, 1.2), "height_ratios": (1, 4)}
    (above, corner), (middle, right) = part.subplots(2, 2, gridspec_kw=ratios, sharex="col", sharey="row")
    per_target, per_source = block.sum(1), block.sum(0)
    enter, leave = units_with_half(per_target), units_with_half(per_source)
    place, shade = (1 + leave / sources) / 2, task_colors(data.tasks)[data.task - 1]
    corner.axis("off")
    corner.text(0.5, 0.5, f"half enter\n{enter} of {targets}", transform=corner.transAxes, size=8, **CENTERED)
    above.text(place, 0.86, f"half leave {leave} of {sources}", transform=above.transAxes, size=8, **CENTERED)
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
    above.set_xlim(0, sources)
    above.set_ylabel("connections", size=8)
    right.set_ylim(targets, 0)
    right.set_xlabel("connections", size=8, loc="right")
    return above, right
