"""DEN: each task retrains only the units that are relevant to it, adds new ones where they do not suffice, and splits
those that it has changed too much."""

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from spacenet.methods.base import Samples, Task, Uniform, kept, map_batches
from spacenet.methods.shared.dense import PhantomSettings
from spacenet.methods.shared.task_models import GrowingMethod, crop
from spacenet.space.blueprint import Blueprint, Link, Params
from spacenet.utils.optimizers import Optimizer


@dataclass(frozen=True)
class DENSettings(PhantomSettings):
    """When the network grows, and how strongly it is regularized."""

    sparsity: Annotated[float, Ge(0), Uniform(1e-6, 1e-2, log=True)] = 1e-3
    """L1 penalty on the first task's weights, a new task's output weights, and those of added units (the paper's μ)."""
    decay: Annotated[float, Ge(0)] = 1e-4
    """L2 penalty on the weights that a new task retrains."""
    group_sparsity: Annotated[float, Ge(0), Uniform(1e-4, 1e-1, log=True)] = 1e-3
    """Penalty on the norm of an added unit's incoming weights (the paper's γ), which removes units that do not help."""
    drift_penalty: Annotated[float, Ge(0), Uniform(1e-3, 1.0, log=True)] = 0.5
    """Penalty on the squared distance from the old weights during retraining after units were split (λ)."""
    expand_above: Annotated[float, Ge(0)] = 0.01
    """Loss on the task's training data above which units are added (the paper's τ)."""
    expand_by: Annotated[int, Ge(0), Le(1_000_000), Uniform(1, 40, integer=True)] = 10
    """Units that are added to each layer then (the paper's k)."""
    split_above: Annotated[float, Ge(0), Uniform(0.01, 2.0, log=True)] = 0.15
    """Distance of a unit's incoming weights from their old values above which it is split (the paper's σ)."""


class Phase(IntEnum):
    """The phases of a task; its epochs are divided between the first four. The first task has only `FIRST`."""

    SELECT = 0
    """Only the task's outputs are trained, with L1: their weights show which units are relevant (algorithm 2)."""
    RETRAIN = 1
    """These units are trained."""
    EXPAND = 2
    """New units are trained if the loss is still too high (algorithm 3); otherwise retraining continues."""
    SPLIT = 3
    """Units that changed too much are split into an old and a new one, then all are retrained (algorithm 4)."""
    FIRST = 4
    """The whole network is trained, with L1."""


PHASES = 4


class DEN(GrowingMethod):
    """A unit's timestamp is the task that added it: a task's model has the units of this and earlier tasks."""

    name = "den"
    strategy = "Architectural"
    reference = "Yoon, Yang, Lee, Hwang: Lifelong Learning with Dynamically Expandable Networks. ICLR, 2018"
    settings_from = (
        "From the published code; sparsity, drift penalty and the four epochs on Split Fashion-MNIST from a small "
        "search on held-out data."
    )
    settings: DENSettings
    phase: Phase = kept("task/phase", lambda: Phase.FIRST)
    old: dict[str, Tensor] = kept("task/old", dict)
    """The hidden units' parameters before the task."""
    selected: dict[str, Tensor] = kept("task/selected", dict, on_cpu=True)
    """In each layer, which of the units from before the task are retrained."""
    phase_epochs = 1
    data: Samples

    # The phases of a task

    def begin_task(self, task: Task, data: Samples) -> None:
        names = [name for each in self.blueprint.hidden for name in self.param_names(each.name)]
        self.old = {name: self.params[name].detach().clone() for name in names}
        self.selected = {p.name: torch.zeros(self.width(p.name), dtype=torch.bool) for p in self.blueprint.hidden}
        self.phase = Phase.SELECT if self.tasks_learned else Phase.FIRST
        super().begin_task(task, data)

    def prepare(self, data: Samples) -> None:
        super().prepare(data)
        self.data = data

    def epochs(self, planned: int) -> int:
        if self.phase == Phase.FIRST:
            return planned
        self.phase_epochs = math.ceil(planned / PHASES)
        return PHASES * self.phase_epochs

    def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
        if last or self.phase == Phase.FIRST or (epoch + 1) % self.phase_epochs:
            return
        self.unfreeze()
        phase = Phase((epoch + 1) // self.phase_epochs)
        if phase == Phase.RETRAIN:
            self.selected = self.find_relevant_units()
        elif phase == Phase.EXPAND:
            if self._loss() > self.settings.expand_above:
                self.expand()
            else:
                phase = Phase.RETRAIN
        else:
            self._remove_inactive()
            self.split_drifted()
        self.start_phase(phase)

    def start_phase(self, phase: Phase) -> None:
        """Train what the phase trains. The parameters are new, so the loop creates a new optimizer."""
        for name, param in self.params.items():
            self.set_param(name, param.data, param.requires_grad)
        self.phase = phase
        self.freeze()

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        del self.data

    # What is trained

    def trainable_masks(self) -> dict[str, Tensor]:
        if self.phase == Phase.FIRST:
            return {}
        mine = self._trained_units()
        new = {name: torch.arange(len(mine[name])) >= len(old) for name, old in self.selected.items()}
        values = [(key, layer, value) for key, (layer, value) in self.blueprint.unit_values().items()]
        masks = {key: mine[p.name].view(-1, *(1 for _ in value.shape)) for key, p, value in values if p.name in mine}
        for link in self.blueprint.links:
            weight, targets = self.params[link.name], mine[link.target]
            within = self.phase in (Phase.RETRAIN, Phase.SPLIT) and link.source in mine
            mask = targets[:, None] & (mine[link.source] if within else torch.ones(weight.shape[1], dtype=torch.bool))
            if self.phase == Phase.EXPAND and link.source in new and link.target in new:
                mask |= new[link.source]  # old units may read new ones, which are not in the models of older tasks
            masks[link.name] = mask.view(*weight.shape[:2], *(1 for _ in link.kernel))
        return masks

    def _trained_units(self) -> dict[str, Tensor]:
        """The units that the phase trains: all new ones, the task's outputs and, when retraining, the selected ones."""
        retrained = self.phase in (Phase.RETRAIN, Phase.SPLIT)
        units = {self.blueprint.output.name: torch.arange(self.classes[-1].stop) >= self.classes[-1].start}
        for name, selected in self.selected.items():
            new = torch.ones(self.width(name) - len(selected), dtype=torch.bool)
            units[name] = torch.cat([selected & retrained, new])
        return units

    def step(self, optimizer: Optimizer) -> None:
        """A gradient step, then a proximal one, which makes penalized weights exactly zero (frozen ones too, without
        effect: they are read from a constant copy)."""
        settings, rate = self.settings, optimizer.rate
        threshold = torch.as_tensor(rate * settings.sparsity)
        weights = [self.params[link.name] for link in self.blueprint.links]
        with torch.no_grad():
            if self.phase == Phase.RETRAIN:
                for weight in weights:
                    assert weight.grad is not None
                    weight.grad.add_(weight, alpha=2 * settings.decay)
            if self.phase == Phase.SPLIT:
                for name, old in self.old.items():
                    param = self.params[name]
                    if param.grad is not None:
                        crop(param.grad, old).add_(crop(param, old) - old, alpha=2 * settings.drift_penalty)
        optimizer.step()
        with torch.no_grad():
            if self.phase not in (Phase.RETRAIN, Phase.SPLIT):
                for weight in weights:
                    # The proximal step of the absolute value: weights move towards zero by the threshold.
                    weight.sub_(weight.clamp(-threshold, threshold))
            if self.phase == Phase.EXPAND:
                for name, old in self.selected.items():
                    new = [rows[len(old) :] for rows in self.incoming_weights(name).values()]
                    shrink_groups(new, rate * settings.group_sparsity)

    # From one phase to the next

    def find_relevant_units(self) -> dict[str, Tensor]:
        """The hidden units that the task's outputs depend on."""
        found = find_units(self.blueprint, self.params, self._trained_units()[self.blueprint.output.name])
        return {name: found[name] for name in self.selected}

    def _loss(self) -> float:
        scores = map_batches(lambda x: self.scores(x, self.tasks_learned), self.data.x, self.device)
        return float(self.cross_entropy(scores, self.data.y.cpu() - self.classes[-1].start))

    def expand(self) -> None:
        """Add untrained units to every hidden layer."""
        for each in self.blueprint.hidden:
            self.add_units(each.name, self.settings.expand_by, f"expand {each.name}")
        for link in self.blueprint.links:
            if link.target == self.blueprint.output.name:  # the models of old outputs do not have the new units
                self.params[link.name].data[: self.classes[-1].start, len(self.selected[link.source]) :] = 0.0

    def _remove_inactive(self) -> None:
        """Remove the new units that the penalties have deactivated: all their incoming weights are zero."""
        for layer in self.blueprint.hidden:  # in order: a unit that is removed no longer activates the next layer's
            name, old = layer.name, self.selected[layer.name]
            active = torch.stack([rows.flatten(1).any(1).cpu() for rows in self.incoming_weights(name).values()]).any(0)
            active[: len(old)] = True
            self.pick_units(name, active.nonzero().flatten())

    def split_drifted(self) -> None:
        """Split the units that changed too much; the originals are as before the task and stay frozen."""
        drifted = {name: (self._drift(name) > self.settings.split_above).nonzero().flatten() for name in self.selected}
        self.split_units(drifted, self.old)
        for name, which in drifted.items():
            self.selected[name][which] = False

    def _drift(self, layer: str) -> Tensor:
        """The distance of each old unit's incoming weights from their old values."""
        moved = [crop(new, self.old[name]) - self.old[name] for name, new in self.incoming_weights(layer).items()]
        return torch.stack([each.square().flatten(1).sum(1) for each in moved]).sum(0).sqrt().cpu()

    def connected(self, link: Link) -> Tensor:
        """Connections are the weights that are not zero."""
        return connections(self.params[link.name])


def connections(weight: Tensor) -> Tensor:
    """Which units are connected by a weight that is not zero, (targets, sources)."""
    return weight.detach().reshape(*weight.shape[:2], -1).any(2).cpu()


def find_units(blueprint: Blueprint, params: Params, outputs: Tensor) -> dict[str, Tensor]:
    """In each layer, the units that these outputs depend on, directly or through other units."""
    connected = {link.name: connections(params[link.name]) for link in blueprint.links}
    found = {link.source: torch.zeros(connected[link.name].shape[1], dtype=torch.bool) for link in blueprint.links}
    found[blueprint.output.name] = outputs
    before, now = -1, 0
    while before < now:  # one backward pass suffices, except for residual streams, which blocks read and write
        for link in reversed(blueprint.links):
            found[link.source] |= connected[link.name][found[link.target]].any(0)
        before, now = now, sum(int(units.sum()) for units in found.values())
    return found


def shrink_groups(parts: list[Tensor], threshold: float | Tensor) -> None:
    """The proximal step of the group norm, in place: row i of all parts together is one group."""
    norm = torch.stack([part.flatten(1).square().sum(1) for part in parts]).sum(0).sqrt()
    factor = (1 - threshold / norm.clamp_min(1e-12)).clamp_min(0.0)
    for part in parts:
        part.mul_(factor.view(-1, *(1 for _ in part.shape[1:])))
