"""The workspace: the small dense network in which one task trains.

It holds the task's selected units and those frozen units that lie between them. Frozen weights are a constant base;
only the task's own connections are parameters, scattered into it at every step. So a frozen weight cannot change, and
the cost of a step follows the units that are used, not the width of the network.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from spacenet.space.assembly import Assembly, Layout
from spacenet.space.blueprint import CPU, Hook, Link, Params
from spacenet.space.cut import Units, block, downstream, inside, marks, numbers, sizes, upstream
from spacenet.space.frozen_inputs import FrozenInputs
from spacenet.space.in_training import LinkInTraining, UnitsInTraining
from spacenet.space.ledger import Connections, Ledger
from spacenet.space.rewiring import drop, grow


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
    ) -> None:
        """Cut the workspace out of the ledger.

        selection  the task's units
        new        its connections
        outputs    the output units that take part: the task's own, or all so far when old data is replayed
        whole      hold every unit of the network instead of the live ones: the masked dense form, for comparison
        fixed      inputs do not vary, so units that depend on frozen weights alone may stay outside as constants
        device     where it computes; the ledger stays where it is
        """
        self.ledger, self.selection, self.device = ledger, selection, device
        self.units, constant = self._live(outputs, masked_dense, fixed)
        self.frozen_inputs = FrozenInputs(ledger, constant, self.units, device)
        self.selected = {name: torch.searchsorted(self.units[name], chosen) for name, chosen in selection.items()}
        layout = Layout.for_device(device, ledger.blueprint)
        size = sizes(ledger, self.units, layout.multiple)
        links = ledger.blueprint.links
        self.training = {link.name: self._open(link, new[link.name], size).to(device) for link in links}
        self.layers = {
            p.name: UnitsInTraining.open(p, ledger.units, self.units[p.name], self.selected[p.name], size[p.name]).to(
                device
            )
            for p in ledger.blueprint.layers
        }
        frozen = {link.name: block(ledger, link, self.units, size) for link in links}
        self.assembly = Assembly(self.training, frozen, list(self.layers.values()), device, layout)

    def _live(self, outputs: Tensor, masked_dense: bool, fixed: bool) -> tuple[Units, Units]:
        """The units that the workspace must hold, and the constant ones that feed them from outside."""
        blueprint = self.ledger.blueprint
        inputs = marks(self.ledger, {blueprint.input.name: torch.arange(self.ledger.size(blueprint.input.name))})
        if masked_dense:
            everything = {p.name: torch.arange(self.ledger.size(p.name)) for p in blueprint.layers}
            return everything | {blueprint.output.name: outputs}, numbers(inputs)
        selected = marks(self.ledger, self.selection)
        ends = marks(self.ledger, self.selection | {blueprint.output.name: outputs})
        needed = upstream(self.ledger, ends)
        if not fixed:
            return numbers(needed), numbers(inputs)
        changing = downstream(self.ledger, {name: mark & ~inputs[name] for name, mark in selected.items()})
        live = {name: needed[name] & changing[name] | ends[name] for name in needed}
        constant = {name: needed[name] & ~live[name] | inputs[name] for name in needed}
        return numbers(live), numbers(constant)

    def _open(self, link: Link, new: Connections, size: Mapping[str, int]) -> LinkInTraining:
        targets, sources = size[link.target], size[link.source]
        taken = torch.zeros(targets * sources, dtype=torch.bool)
        taken[inside(self.ledger, link, self.units, sources)[0]] = True
        target = torch.searchsorted(self.units[link.target], new.target.long())
        source = torch.searchsorted(self.units[link.source], new.source.long())
        return LinkInTraining(
            link,
            shape=(targets, sources),
            taken=taken.view(targets, sources),
            place=target * sources + source,
            value=nn.Parameter(new.value.clone()),
            importance=torch.zeros_like(new.value),
            moved=torch.zeros(len(new), dtype=torch.bool),
        )

    def parameters(self) -> list[nn.Parameter]:
        """What the task trains: its connections, and the unit values of its selected units."""
        return self.assembly.own

    def values(self, training: bool = True) -> dict[str, Tensor]:
        """The network's numbers at this moment, frozen ones and the task's own together."""
        values = self.assembly.values()
        for part in self.layers.values():
            values |= part.values(training)
        return values

    def __call__(self, x: Tensor, precomputed: Params, training: bool = True, hook: Hook | None = None) -> Tensor:
        """Scores of the outputs that take part, in ascending order of their numbers."""
        return self.ledger.blueprint.forward({**self.values(training), **precomputed}, x, hook)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """One optimiser step. Ω gains |gradient · actual change| for each connection (equations 3 and 4)."""
        links = self.training.values()
        values, importance = [link.value.detach() for link in links], [link.importance for link in links]
        before = [value.clone() for value in values]
        optimizer.step()
        # For all links at once, which a GPU does in a few kernels.
        gain = torch._foreach_sub(values, before)
        torch._foreach_mul_(gain, [link.gradient() for link in links])
        torch._foreach_abs_(gain)
        torch._foreach_add_(importance, gain)

    def importance(self, layer: str) -> Tensor:
        """Equation 5 for each selected unit: Ω summed over its ingoing connections (an input's: outgoing ones).

        On the processor, where a sum has a fixed order.
        """
        total = torch.zeros(len(self.units[layer]))
        is_input = layer == self.ledger.blueprint.input.name
        for training in self.training.values():
            target, source = training.ends()
            if is_input and training.link.source == layer:
                total.index_add_(0, source, training.connection_importance())
            elif training.link.target == layer:
                total.index_add_(0, target, training.connection_importance())
        return total[self.selected[layer]]

    def rewire(self, fraction: float) -> dict[str, Tensor]:
        """Move a fraction of the connections of every link but the classifier's (Algorithm 3).

        Returns which ones moved. They start at zero and with no history.
        """
        moved = {}
        for name, training in self.training.items():
            link = training.link
            if link.target == self.ledger.blueprint.output.name:
                continue
            place = training.place.cpu()
            gone = drop(training.connection_importance(), fraction)
            training.importance[gone] = 0.0
            taken = training.taken.flatten().index_fill(0, place, True).index_fill_(0, place[gone], False)
            targets, sources = self.selected[link.target], self.selected[link.source]
            target, source = grow(
                self.importance(link.source),
                self.importance(link.target),
                taken.view(training.shape)[targets][:, sources],
                len(gone),
            )
            place[gone] = targets[target] * training.shape[1] + sources[source]
            training.place.copy_(place)
            training.value.data[gone] = 0.0
            training.moved[gone] = True
            moved[name] = gone
        self.assembly.rewired()
        return moved

    def moved(self) -> float:
        """The part of the task's connections, the classifier's apart, that lie elsewhere than in the beginning."""
        output = self.ledger.blueprint.output.name
        moved = torch.cat([each.moved for each in self.training.values() if each.link.target != output])
        return float(moved.float().mean()) if len(moved) else 0.0

    def connections(self, task: int) -> dict[str, Connections]:
        """The task's connections as they stand, in the network's own numbers."""
        result = {}
        for name, training in self.training.items():
            target, source = training.ends()
            result[name] = Connections(
                self.units[training.link.source][source].int(),
                self.units[training.link.target][target].int(),
                torch.full((len(source),), task, dtype=torch.int16),
                training.value.detach().cpu().clone(),
            )
        return result

    def commit(self, task: int) -> None:
        """Enter what the task learned into the ledger, where it is frozen from now on."""
        for name, connections in self.connections(task).items():
            self.ledger.add(self.training[name].link, connections)
        for name, part in self.layers.items():
            for key, values in part.of_selected().items():
                self.ledger.units[key][self.selection[name]] = values

    def tensors(self, task: int) -> dict[str, Tensor]:
        """What a checkpoint in the middle of the task needs beyond the ledger."""
        tensors = {f"selection/{name}": chosen for name, chosen in self.selection.items()}
        for name, connections in self.connections(task).items():
            tensors |= connections.tensors(f"links/{name}/")
            tensors[f"importance/{name}"] = self.training[name].importance.cpu()
            tensors[f"moved/{name}"] = self.training[name].moved
        for part in self.layers.values():
            tensors |= {f"units/{key}": values for key, values in part.of_selected().items()}
        return tensors

    @classmethod
    def reopened(cls, ledger: Ledger, tensors: Mapping[str, Tensor], **form: Any) -> "Workspace":
        """The workspace that `tensors` was taken from; `form` is what else it was made with."""
        selection = {p.name: tensors[f"selection/{p.name}"] for p in ledger.blueprint.layers}
        new = {link.name: Connections.load(tensors, f"links/{link.name}/") for link in ledger.blueprint.links}
        workspace = cls(ledger, selection, new, **form)
        for name, training in workspace.training.items():
            training.importance.copy_(tensors[f"importance/{name}"])
            training.moved = tensors[f"moved/{name}"].clone()
        for part in workspace.layers.values():
            part.load({key: tensors[f"units/{key}"] for key in part.layer.keys()})
        return workspace
