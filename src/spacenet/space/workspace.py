"""The workspace: the small dense network in which one task trains.

It holds the task's selected units, the frozen units that lie between them, and those that its connections come from.
All
its parameters are one vector of frozen numbers; the task's own ones, another vector, are scattered into it at every
step. So a frozen weight cannot change, and the cost of a step follows the units that are used, not the width of the
network.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.space.blueprint import BATCH_STATS, CPU, TRAINING, Derivative, Hook, Params
from spacenet.space.ledger import Connections, Ledger
from spacenet.space.opening import FrozenInputs, Layout, OpenLink, find_live_units
from spacenet.space.pack import Units, cut, sizes
from spacenet.space.rewiring import drop, grow
from spacenet.utils.optimizers import Optimizer


class Workspace:
    """One task's network, from allocation to commit."""

    def __init__(
        self,
        ledger: Ledger,
        selection: Units,
        new: Mapping[str, Connections],
        *,
        outputs: Tensor,
        masked_dense: bool = False,
        fixed: bool = True,
        device: torch.device = CPU,
        layout: Layout | None = None,
    ) -> None:
        """Cut the workspace out of the ledger.

        selection     the task's units
        new           its connections
        outputs       the output units that take part: the task's own, or all so far when old data is replayed
        masked_dense  hold every unit of the network instead of the live ones, for comparison
        fixed         inputs do not vary, so units that depend on frozen weights alone may stay outside
        device        where it computes; the ledger stays on the CPU
        layout        how parameters lie in memory; by default the fastest on the device
        """
        self.ledger, self.selection, self.device = ledger, selection, device
        self.layout = layout or Layout.for_device(device, ledger.blueprint)
        self.units, frozen = find_live_units(ledger, selection, new, outputs, masked_dense, fixed)
        self.frozen_inputs = FrozenInputs(ledger, frozen, self.units, device)
        self.selected = {name: torch.searchsorted(self.units[name], chosen) for name, chosen in selection.items()}
        """Places of the selected units in the workspace."""
        self.sizes = sizes(ledger, self.units, self.layout.multiple)  # units of each layer, with padding
        links = ledger.blueprint.links
        self.links = {k.name: OpenLink.open(ledger, k, new[k.name], self.units, self.sizes) for k in links}
        self.statistics: dict[str, Tensor] = {}  # running statistics of batch norm, which the forward pass updates
        self.batch_stats: dict[str, Tensor] = {}
        self._open_parameters()
        derivative = ledger.blueprint.derivative
        self._manual = _ManualGradient(self, derivative) if derivative and device.type == "cpu" else None

    def _open_parameters(self) -> None:
        """Lay out the vector of all parameters and that of the task's own."""
        links = self.links.values()
        stored = cut(self.ledger, self.units, self.sizes)
        self._permuted = {name for name in self.links if self.layout.permutes(stored[name].dim())}
        stored |= {name: stored[name].permute(0, 2, 3, 1) for name in self._permuted}
        selected, owner = dict[str, Tensor](), dict[str, str]()
        for key, (layer, value) in self.ledger.blueprint.unit_values().items():
            chosen, owner[key] = self.selected[layer.name], layer.name
            if value.trained:
                elements = torch.arange(math.prod(value.shape))
                selected[key] = (chosen[:, None] * len(elements) + elements).flatten()
            else:
                self.statistics[key] = stored.pop(key).to(self.device)
                marks = torch.zeros(self.sizes[layer.name], dtype=torch.bool).index_fill_(0, chosen, True)
                if len(chosen) == len(self.units[layer.name]):  # empty marks stand for all units, which is faster
                    marks = marks[:0]
                self.batch_stats[layer.name + BATCH_STATS] = marks.to(self.device)
        if self.ledger.blueprint.drops:
            self.batch_stats[TRAINING] = torch.zeros(0, device=self.device)
        self._shapes = {name: numbers.shape for name, numbers in stored.items()}
        gaps = {name: -numbers.numel() % self.layout.alignment for name, numbers in stored.items()}
        self._counts = [n for name, gap in gaps.items() for n in (stored[name].numel(), gap)]
        own = [o.params for o in links] + [stored[key].flatten()[places] for key, places in selected.items()]
        self._base = torch.cat([F.pad(stored[name].flatten(), (0, gap)) for name, gap in gaps.items()]).to(self.device)
        self._own = nn.Parameter(torch.cat([numbers.flatten() for numbers in own]).to(self.device))
        self._selected = list(selected.values())
        self._place = self._places().to(self.device)
        self._importance = torch.zeros_like(self._own.data)
        # Views of the task's own numbers, by link and by unit value.
        counts = [numbers.numel() for numbers in own]
        parts, rows = self._own.data.split(counts), self._importance.split(counts)
        for opened, part, importance in zip(links, parts, rows, strict=False):
            opened.params, opened.importance = part.view(opened.params.shape), importance.view(opened.params.shape)
        trained = zip(selected, parts[len(links) :], strict=True)
        self.unit_params = {k: part.view(len(self.selected[owner[k]]), *stored[k].shape[1:]) for k, part in trained}
        """The trained values of the selected units."""

    def _places(self) -> Tensor:
        """Where each of the task's own numbers lies in the vector of all parameters."""
        places = [o.places(self.layout) for o in self.links.values()] + self._selected
        starts = list(itertools.accumulate(self._counts, initial=0))[:-1:2]
        return torch.cat([start + place for start, place in zip(starts, places, strict=True)])

    # One step

    def named_parameters(self) -> dict[str, nn.Parameter]:
        """What the task trains, as one vector: its connections, and the unit values of its selected units."""
        return {"workspace": self._own}

    def params(self, training: bool = True) -> dict[str, Tensor]:
        """The network's parameters at this moment, frozen ones and the task's own together."""
        params = self.split(self._base.index_copy(0, self._place, self._own))
        return {**params, **self.statistics, **(self.batch_stats if training else {})}

    def split(self, vector: Tensor) -> dict[str, Tensor]:
        """A vector of all parameters by link and unit value."""
        count = 2 * len(self.links)
        weights, units = vector.split([sum(self._counts[:count]), sum(self._counts[count:])])
        if torch.is_autocast_enabled(vector.device.type):  # all at once; each convolution would otherwise cast its own
            weights = weights.to(torch.get_autocast_dtype(vector.device.type))
        parts = [*weights.split(self._counts[:count]), *units.split(self._counts[count:])]
        params = {}
        for (name, shape), part in zip(self._shapes.items(), parts[::2], strict=True):
            numbers = part if len(shape) == 1 else part.view(shape)
            params[name] = numbers.permute(0, 3, 1, 2) if name in self._permuted else numbers
        return params

    def __call__(self, x: Tensor, precomputed: Params, training: bool = True, hook: Hook | None = None) -> Tensor:
        """Scores of the outputs that take part, in ascending order of their numbers."""
        plain = training and hook is None and torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
        if self._manual is not None and plain:
            return self._manual.forward(x, precomputed)
        return self.ledger.blueprint.forward({**self.params(training), **precomputed}, x, hook)

    def backward(self, loss: Tensor) -> None:
        if loss.requires_grad:  # else the outputs have their gradients already
            loss.backward()
        if self._manual is not None:
            self._manual.backward()

    def step(self, optimizer: Optimizer) -> None:
        """One optimizer step. Ω gains |gradient · actual change| for each connection (equations 3 and 4)."""
        own, gradient = self._own.data, self._own.grad
        assert gradient is not None, "there was no backward pass"
        before = own.clone()
        optimizer.step()
        self._importance += before.sub_(own).mul_(gradient).abs_()

    # After an epoch

    def importance(self, layer: str) -> Tensor:
        """Equation 5 for each selected unit: Ω summed over its ingoing connections (an input's: outgoing ones)."""
        total = torch.zeros(len(self.units[layer]))  # on the CPU, where a sum has a fixed order
        is_input = layer == self.ledger.blueprint.input.name
        for opened in self.links.values():
            if layer == (opened.link.source if is_input else opened.link.target):
                target, source = opened.ends()
                total.index_add_(0, source if is_input else target, opened.connection_importance())
        return total[self.selected[layer]]

    def rewire(self, fraction: float, optimizer: Optimizer | None = None) -> dict[str, Tensor]:
        """Move a fraction of the connections of every link but the classifier (Algorithm 3); returns which ones.

        They start at zero and with no history, in the optimizer too.
        """
        self._base.index_fill_(0, self._place[: sum(o.params.numel() for o in self.links.values())], 0.0)
        moved, rows, start = {}, [], 0
        for name, opened in self.links.items():
            if opened.link.target != self.ledger.blueprint.output.name:
                moved[name] = gone = self._move(opened, fraction)
                elements = math.prod(opened.link.kernel)
                rows.append((start + gone[:, None] * elements + torch.arange(elements)).flatten())
            start += opened.params.numel()
        self._place.copy_(self._places())  # in place: a recorded step reads it there
        if optimizer is not None and rows:
            optimizer.reset(self._own, torch.cat(rows))
        return moved

    def _move(self, opened: OpenLink, fraction: float) -> Tensor:
        link, position = opened.link, opened.position
        gone = drop(opened.connection_importance(), fraction)
        opened.importance[gone] = 0.0
        taken = opened.taken.flatten().index_fill(0, position, True).index_fill_(0, position[gone], False)
        targets, sources = self.selected[link.target], self.selected[link.source]
        taken = taken.view(opened.shape)[targets][:, sources]
        target, source = grow(self.importance(link.source), self.importance(link.target), taken, len(gone))
        position[gone] = targets[target] * opened.shape[1] + sources[source]
        opened.params[gone] = 0.0
        opened.moved[gone] = True
        return gone

    def moved_fraction(self) -> float:
        """The fraction of the task's connections, without the classifier, that have moved since allocation."""
        output = self.ledger.blueprint.output.name
        moved = torch.cat([opened.moved for opened in self.links.values() if opened.link.target != output])
        return float(moved.float().mean()) if len(moved) else 0.0

    # After the task, and for checkpoints

    def connections(self, task: int) -> dict[str, Connections]:
        """The task's connections at this moment, in the network's own numbers."""
        result = {}
        for name, opened in self.links.items():
            target, source = opened.ends()
            ends = self.units[opened.link.source][source].int(), self.units[opened.link.target][target].int()
            owner = torch.full((len(source),), task, dtype=torch.int16)
            result[name] = Connections(*ends, owner, opened.params.cpu().clone())
        return result

    def unit_values(self) -> dict[str, Tensor]:
        trained = {key: params.cpu() for key, params in self.unit_params.items()}
        layers = self.ledger.blueprint.unit_values()
        return trained | {key: s.cpu()[self.selected[layers[key][0].name]] for key, s in self.statistics.items()}

    def commit(self, task: int) -> None:
        """Enter what the task learned into the ledger, where it is frozen from now on."""
        for name, connections in self.connections(task).items():
            self.ledger.add(self.links[name].link, connections)
        layers = self.ledger.blueprint.unit_values()
        for key, numbers in self.unit_values().items():
            self.ledger.units[key][self.selection[layers[key][0].name]] = numbers

    def state(self, task: int) -> dict[str, Tensor]:
        """What a checkpoint in the middle of the task needs beyond the ledger."""
        tensors = {f"selection/{name}": chosen for name, chosen in self.selection.items()}
        for name, connections in self.connections(task).items():
            tensors |= connections.to_tensors(f"links/{name}/")
            tensors[f"importance/{name}"] = self.links[name].importance.cpu()
            tensors[f"moved/{name}"] = self.links[name].moved
        return tensors | {f"units/{key}": values for key, values in self.unit_values().items()}

    @classmethod
    def reopen(cls, ledger: Ledger, state: Mapping[str, Tensor], **form: Any) -> "Workspace":
        """The workspace that `state` was called on; `form` are the other arguments it was made with."""
        blueprint = ledger.blueprint
        selection = {layer.name: state[f"selection/{layer.name}"] for layer in blueprint.layers}
        new = {link.name: Connections.from_tensors(state, f"links/{link.name}/") for link in blueprint.links}
        workspace = cls(ledger, selection, new, **form)
        for name, opened in workspace.links.items():
            opened.importance.copy_(state[f"importance/{name}"])
            opened.moved = state[f"moved/{name}"].clone()
        for key, params in workspace.unit_params.items():
            params.copy_(state[f"units/{key}"])
        for key, statistics in workspace.statistics.items():
            chosen = workspace.selected[blueprint.unit_values()[key][0].name].to(workspace.device)
            statistics.index_copy_(0, chosen, state[f"units/{key}"].to(workspace.device))
        return workspace


class _ManualGradient:
    """A workspace's network, computed with the blueprint's `derivative` instead of autograd."""

    def __init__(self, workspace: Workspace, derivative: Derivative) -> None:
        self.derivative = derivative
        self.own, self.place, self.vector = workspace._own, workspace._place, workspace._base
        self.params = workspace.split(self.vector)
        self.gradient = torch.zeros_like(self.vector)
        self.gradients = workspace.split(self.gradient)
        self.passes: list[tuple[Tensor, list[Tensor], Params]] = []
        """Forward passes whose backward pass is due: output, activations, parameters."""

    def forward(self, x: Tensor, precomputed: Params) -> Tensor:
        """The output, from which autograd computes the loss."""
        with torch.no_grad():
            self.vector.scatter_(0, self.place, self.own)  # takes less than half the time of index_copy_
            params = {**self.params, **precomputed} if precomputed else self.params
            output, activations = self.derivative.forward(params, x)
        self.passes.append((output.requires_grad_(), activations, params))
        return output

    def backward(self) -> None:
        """Continue from the outputs' gradients to those of the task's own parameters."""
        for output, activations, params in self.passes:
            if output.grad is not None:
                self.derivative.backward(params, activations, output.grad, self.gradients)
                gradient = self.gradient.index_select(0, self.place)
                self.own.grad = gradient if self.own.grad is None else self.own.grad + gradient
        self.passes.clear()
