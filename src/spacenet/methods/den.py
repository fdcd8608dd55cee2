"""DEN: each task retrains only the part of the network that matters to it, adds units where that does not do, and
splits units that it has changed too much."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import PREDICT_BATCH, LayerUsage, MethodSettings
from spacenet.methods.shared.growing import GrowingMethod, front
from spacenet.methods.shared.sparsity import connections, reached, shrink_groups
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.utils.optimizers import Optimizer


@dataclass(frozen=True)
class DENSettings(MethodSettings):
    """When a network grows, and what holds it together."""

    sparsity: float = 1e-3
    """L1 penalty on weights: the first task's, a new task's output weights, those of added units (the paper's μ)."""
    decay: float = 1e-4
    """L2 penalty on the weights that a new task retrains."""
    group_sparsity: float = 1e-3
    """Penalty on the norm of an added unit's ingoing weights (the paper's γ): units that do not help vanish."""
    drift_penalty: float = 0.5
    """Penalty on the squared distance from the old weights, when all is retrained after units were split (λ)."""
    expand_above: float = 0.01
    """Loss on the task's training data above which units are added (the paper's τ)."""
    expand_by: int = 10
    """Units added to each layer then (the paper's k)."""
    split_above: float = 0.15
    """Distance of a unit's ingoing weights from their old values above which it is split (the paper's σ)."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0:
                raise SettingsError(f"{name.replace('_', '-')}: {value} is negative")


class Phase(IntEnum):
    """What a task goes through: its epochs are shared out among the four. The first task has only `FIRST`."""

    SELECT = 0
    """Only the task's outputs are trained, sparsely: they show which units matter to it (algorithm 2)."""
    RETRAIN = 1
    """These units are trained."""
    EXPAND = 2
    """New units are trained, if the loss is still too high (algorithm 3); else retraining goes on."""
    SPLIT = 3
    """Units that changed too much are split into an old and a new copy, and all is trained again (algorithm 4)."""
    FIRST = 4
    """The whole network is trained, sparsely."""


PHASES = 4


class DEN(GrowingMethod):
    """A unit's timestamp is the task it came with: the model of a task has the units that came with it or before."""

    name = "den"
    strategy = "Architectural"
    reference = "Yoon, Yang, Lee, Hwang: Lifelong Learning with Dynamically Expandable Networks. ICLR, 2018"
    settings_from = (
        "Of the published code, but sparsity and drift, and four epochs on Split Fashion-MNIST, from "
        "a small search on held-out data."
    )
    Settings = DENSettings
    settings: DENSettings
    # Held out, seed 0: ACC 50 with 4 epochs, 26 with 8 and with 20, where hardly anything is left of the first task.
    presets: ClassVar = {"split-fashion-mnist": {"training": {"epochs": 4}}}
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.001, 0.3, log=True),
        "method.sparsity": Uniform(1e-6, 1e-2, log=True),
        "method.group_sparsity": Uniform(1e-4, 1e-1, log=True),
        "method.drift_penalty": Uniform(1e-3, 1.0, log=True),
        "method.expand_by": Uniform(1, 40, integer=True),
        "method.split_above": Uniform(0.01, 2.0, log=True),
    }

    def __init__(self, blueprint: Blueprint, settings: DENSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.phase, self.phase_epochs = Phase.FIRST, 1
        self.selected: dict[str, Tensor] = {}
        """In each layer, which of the units that were there before the task are trained."""
        self.old: dict[str, Tensor] = {}
        """The hidden units' numbers before the task."""
        self.data: Samples | None = None

    # The phases of a task

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        self.data = data
        names = [name for each in self.blueprint.hidden for name in self.values_of(each.name)]
        self.old = {name: self.values[name].detach().clone() for name in names}
        self.selected = {p.name: torch.zeros(self.width(p.name), dtype=torch.bool) for p in self.blueprint.hidden}
        self._enter(Phase.SELECT if self.tasks_learned else Phase.FIRST)

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self.data = data
        self.old = {key[4:]: value.to(self.device) for key, value in tensors.items() if key.startswith("old/")}
        self.selected = {p.name: tensors[f"selected/{p.name}"].cpu() for p in self.blueprint.hidden}
        self._enter(Phase(int(tensors["phase"])))

    def task_state(self) -> dict[str, Tensor]:
        state = {f"old/{name}": value for name, value in self.old.items()}
        state |= {f"selected/{name}": mask for name, mask in self.selected.items()}
        return state | {"phase": torch.tensor(int(self.phase))}

    def epochs(self, planned: int) -> int:
        if self.phase == Phase.FIRST:
            return planned
        self.phase_epochs = math.ceil(planned / PHASES)
        return PHASES * self.phase_epochs

    def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
        if last or self.phase == Phase.FIRST or (epoch + 1) % self.phase_epochs:
            return
        self.settle_values()
        phase = Phase((epoch + 1) // self.phase_epochs)
        if phase == Phase.RETRAIN:
            self.selected = self._reached()
        elif phase == Phase.EXPAND:
            if self._loss() > self.settings.expand_above:
                self._expand()
            else:
                phase = Phase.RETRAIN
        else:
            self._remove_useless()
            self._split()
        self._enter(phase)

    def _enter(self, phase: Phase) -> None:
        """Train what the phase trains; new parameters tell the loop to start the optimiser anew."""
        for name, value in self.values.items():
            self._set(name, value.data, value.requires_grad)
        self.phase = phase
        self.freeze(self._trained())

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.selected, self.old, self.data = {}, {}, None

    # What is trained

    def _trained(self) -> dict[str, Tensor]:
        """The masks of what the phase trains."""
        if self.phase == Phase.FIRST:
            return {}
        mine = self._mine()
        new = {name: torch.arange(len(mine[name])) >= len(old) for name, old in self.selected.items()}
        masks = {key: mine[p.name] for p in self.blueprint.layers[1:] for key in p.keys()}
        for link in self.blueprint.links:
            weight, targets = self.values[link.name], mine[link.target]
            within = self.phase in (Phase.RETRAIN, Phase.SPLIT) and link.source in mine
            mask = targets[:, None] & (mine[link.source] if within else torch.ones(weight.shape[1], dtype=torch.bool))
            if self.phase == Phase.EXPAND and link.source in new and link.target in new:
                mask |= new[link.source]  # old units may hear new ones: models of older tasks do not have these
            masks[link.name] = mask.view(*weight.shape[:2], *(1 for _ in link.kernel))
        return masks

    def _mine(self) -> dict[str, Tensor]:
        """The units that the phase trains: all new ones, the task's outputs, and where it retrains, those selected."""
        retrained = self.phase in (Phase.RETRAIN, Phase.SPLIT)
        units = {self.blueprint.output.name: torch.arange(self.classes[-1].stop) >= self.classes[-1].start}
        for name, selected in self.selected.items():
            new = torch.ones(self.width(name) - len(selected), dtype=torch.bool)
            units[name] = torch.cat([selected & retrained, new])
        return units

    def step(self, optimizer: Optimizer) -> None:
        """A gradient step, then a proximal one: so a penalised weight becomes zero, not just small.

        What is frozen may move here without effect: it is not what is computed with.
        """
        settings, weights = self.settings, [self.values[link.name] for link in self.blueprint.links]
        rate = float(optimizer.param_groups[0]["lr"])
        with torch.no_grad():
            if self.phase == Phase.RETRAIN:
                for weight in weights:
                    assert weight.grad is not None
                    weight.grad.add_(weight, alpha=2 * settings.decay)
            if self.phase == Phase.SPLIT:
                for name, old in self.old.items():
                    value = self.values[name]
                    if value.grad is not None:
                        front(value.grad, old).add_(front(value, old) - old, alpha=2 * settings.drift_penalty)
        optimizer.step()
        with torch.no_grad():
            if self.phase not in (Phase.RETRAIN, Phase.SPLIT):
                for weight in weights:
                    weight.copy_(F.softshrink(weight, rate * settings.sparsity))
            if self.phase == Phase.EXPAND:
                for name, old in self.selected.items():
                    shrink_groups([rows[len(old) :] for rows in self.into(name)], rate * settings.group_sparsity)

    # From one phase to the next

    def _reached(self) -> dict[str, Tensor]:
        """The hidden units on which the task's outputs depend."""
        found = reached(self.blueprint, self.values, self._mine()[self.blueprint.output.name])
        return {name: found[name] for name in self.selected}

    def _loss(self) -> float:
        """Mean loss on the task's training data."""
        assert self.data is not None
        total, first = 0.0, self.classes[-1].start
        with torch.no_grad():
            for x, y in zip(self.data.x.split(PREDICT_BATCH), self.data.y.split(PREDICT_BATCH), strict=True):
                total += float(F.cross_entropy(self.scores(x, self.tasks_learned), y - first, reduction="sum"))
        return total / len(self.data)

    def _expand(self) -> None:
        for each in self.blueprint.hidden:
            self.add_units(each.name, self.settings.expand_by, f"expand {each.name}")
        for link in self.blueprint.links:
            if link.target == self.blueprint.output.name:  # the models of old outputs do not have the new units
                self.values[link.name].data[: self.classes[-1].start, len(self.selected[link.source]) :] = 0.0

    def _remove_useless(self) -> None:
        """Drop the new units that the penalties have silenced: all weights that lead into them are zero."""
        for name, old in self.selected.items():
            useful = torch.stack([rows.flatten(1).any(1).cpu() for rows in self.into(name)]).any(0)
            useful[: len(old)] = True
            self.pick_units(name, useful.nonzero().flatten())

    def _split(self) -> None:
        drifted = {name: (self._drift(name) > self.settings.split_above).nonzero().flatten() for name in self.selected}
        self.split_units(drifted, self.old)
        for name, which in drifted.items():
            self.selected[name][which] = False  # as before the task, and they stay so

    def _drift(self, layer: str) -> Tensor:
        """How far each old unit's ingoing weights are from their old values."""
        names = [link.name for link in self.blueprint.links if link.target == layer]
        squares = [
            (front(self.values[name].data, self.old[name]) - self.old[name]).square().flatten(1).sum(1)
            for name in names
        ]
        return torch.stack(squares).sum(0).sqrt().cpu()

    def layers(self) -> list[LayerUsage]:
        """Connections are the weights that are not zero."""
        return [
            replace(layer, connections=sum(int(connections(weight).sum()) for weight in self.into(layer.name)))
            for layer in super().layers()
        ]
