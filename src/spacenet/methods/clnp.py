"""CLNP: units that a task hardly uses are pruned and free for later tasks; all others are frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError, SpaceFull
from spacenet.methods.base import PREDICT_BATCH, Batch, LayerUsage, MethodSettings
from spacenet.methods.shared.masked import Masked
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.utils.seeding import generator


@dataclass(frozen=True)
class CLNPSettings(MethodSettings):
    """How few units a task should get along with."""

    sparsity: float = 1e-3
    """Strength of the penalty on mean activations (L1): it silences units that a task can do without."""
    margin: float = 0.05
    """Percentage points of training accuracy that a task may lose when its least active units are pruned.

    The published "graceful forgetting": a little is lost now, under control, so that later tasks have room."""

    def __post_init__(self) -> None:
        if self.sparsity < 0:
            raise SettingsError(f"sparsity: {self.sparsity} is negative")
        if not 0.0 <= self.margin <= 100.0:
            raise SettingsError(f"margin: {self.margin} is not a number of percentage points (need 0 to 100)")


class CLNP(Masked):
    """Tasks share a network of fixed size: each may read what earlier ones use, and change only what they left free."""

    name = "clnp"
    strategy = "Architectural"
    reference = "Golkar, Kagan, Cho: Continual Learning via Neural Pruning. arXiv:1903.04476, 2019"
    settings_from = "A small search on held-out data; the stream's own training."
    Settings = CLNPSettings
    settings: CLNPSettings
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.001, 0.3, log=True),
        "method.sparsity": Uniform(1e-5, 1e-1, log=True),
        "method.margin": Uniform(0.0, 1.0),
    }

    def __init__(self, blueprint: Blueprint, settings: CLNPSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.taken = {each.name: torch.zeros(each.size, dtype=torch.bool) for each in blueprint.hidden}
        """Which units of each hidden layer are in use by a task learned, and frozen."""
        self.counted: dict[str, Tensor] = {}
        """For each link from hidden units a 1 where the unit is free: only their activity is penalised."""
        self.activity = torch.zeros(())

    def begin_task(self, task: Task, data: Samples) -> None:
        if all(bool(taken.all()) for taken in self.taken.values()):
            raise SpaceFull(
                f"the network is full: all {sum(map(len, self.taken.values()))} hidden units are in use by earlier "
                "tasks. Wider layers, or more --sparsity or --margin, leave room for more tasks.",
                layer=self.blueprint.hidden[-1].name,
            )
        super().begin_task(task, data)
        if self.tasks_learned:
            self._renew()
        self._freeze_taken()

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self._freeze_taken()

    def _renew(self) -> None:
        """Free units start anew, as untrained as in a new network."""
        rng = generator(self.seed, "renew", self.tasks_learned)
        for link in self.blueprint.links:
            if link.target in self.taken:
                weight, taken = self.values[link.name].data, self.taken[link.target]
                new = link.initial((weight.shape[0], weight.shape[1]), weight.shape[1], weight.shape[0], rng)
                weight[~taken] = new[~taken].to(self.device)
        for layer in self.blueprint.hidden:
            for key, value in layer.keys().items():
                self.values[key].data[~self.taken[layer.name]] = value.initial

    def _freeze_taken(self) -> None:
        outputs = torch.arange(self.classes[-1].stop) >= self.classes[-1].start
        free = {name: ~taken for name, taken in self.taken.items()} | {self.blueprint.output.name: outputs}
        masks = {key: free[p.name] for p in self.blueprint.layers[1:] for key in p.keys()}
        for link in self.blueprint.links:
            masks[link.name] = free[link.target].view(-1, 1, *(1 for _ in link.kernel))
        self.freeze(masks)
        hidden = [link for link in self.blueprint.links if link.source in self.taken]
        self.counted = {link.name: free[link.source].to(self.device, torch.float32) for link in hidden}

    def forward(self, batch: Batch) -> Tensor:
        activities = []

        def hook(link: str, h: Tensor) -> None:
            if link in self.counted:
                activities.append((per_unit(h) * self.counted[link]).sum())

        output = self.blueprint.forward({**self.in_training(), **self.uses_batch_stats}, batch.x, hook)
        self.activity = torch.stack(activities).sum()
        return output

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """Of the task's own classes: scores of old ones are what they are."""
        first = self.classes[-1].start
        return F.cross_entropy(output[:, first:], batch.y - first) + self.settings.sparsity * self.activity

    def end_task(self, task: Task) -> None:
        self.settle_values()
        self.taken = self._used(task)
        for name, value in self._cut(self.taken).items():
            self.values[name].data.copy_(value)
        super().end_task(task)

    def _used(self, task: Task) -> dict[str, Tensor]:
        """Which units are in use after the task: the threshold on activity is as high as the margin allows."""
        activity = self._activity(task)
        steps = torch.cat(list(activity.values())).unique()
        least = self._accuracy(task, self.values) - self.settings.margin / 100

        def above(threshold: Tensor) -> dict[str, Tensor]:
            return {name: self.taken[name] | (activity[name] > threshold) for name in self.taken}

        low, high = -1, len(steps)  # steps[:low + 1] can be done without, steps[high:] cannot
        while high - low > 1:
            middle = (low + high) // 2
            good = self._accuracy(task, self._cut(above(steps[middle]))) >= least
            low, high = (middle, high) if good else (low, middle)
        return above(steps[low] if low >= 0 else torch.tensor(-1.0))

    def _activity(self, task: Task) -> dict[str, Tensor]:
        """Mean activation of each hidden unit on the task's data; where several links read a unit, on the busiest.

        In units of the layer's mean, so that one threshold suits all layers."""
        sums: dict[str, Tensor] = {}

        def hook(link: str, h: Tensor) -> None:
            sums[link] = sums.get(link, 0.0) + per_unit(h).cpu() * len(h)

        with torch.no_grad():
            for x in task.train.x.split(PREDICT_BATCH):
                self.blueprint.forward(self.values, x.to(self.device), hook)
        readers = {name: [link.name for link in self.blueprint.links if link.source == name] for name in self.taken}
        activity = {name: torch.stack([sums[link] for link in links]).amax(0) for name, links in readers.items()}
        return {name: each / each.mean().clamp_min(1e-12) for name, each in activity.items()}

    def _cut(self, used: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The values without any connection from units that are not used to units that are."""
        values: dict[str, Tensor] = {name: value.detach() for name, value in self.values.items()}
        for link in self.blueprint.links:
            if link.source in used:
                values[link.name] = values[link.name].clone()
                everyone = torch.ones(len(values[link.name]), dtype=torch.bool)  # outputs are all in use
                values[link.name][used.get(link.target, everyone)[:, None] & ~used[link.source]] = 0.0
        return values

    def _accuracy(self, task: Task, values: Mapping[str, Tensor]) -> float:
        """Part of the task's training samples that are told apart from the task's other classes."""
        right, first = 0, task.classes.start
        with torch.no_grad():
            for x, y in zip(task.train.x.split(PREDICT_BATCH), task.train.y.split(PREDICT_BATCH), strict=True):
                scores = self.blueprint.forward(values, x.to(self.device))[:, first:]
                right += int((scores.argmax(1).cpu() == y - first).sum())
        return right / len(task.train)

    def layers(self) -> list[LayerUsage]:
        taken = {name: int(mask.sum()) for name, mask in self.taken.items()}
        return [
            replace(layer, used=taken[layer.name], reserved=taken[layer.name], unused=layer.units - taken[layer.name])
            if layer.name in taken
            else layer
            for layer in super().layers()
        ]

    def extra(self) -> dict[str, Tensor]:
        return {f"taken/{name}": taken for name, taken in self.taken.items()}

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self.taken = {name: tensors[f"taken/{name}"].cpu() for name in self.taken}


def per_unit(h: Tensor) -> Tensor:
    """Mean size of each unit's activations, over samples and positions."""
    return h.float().abs().flatten(2).mean((0, 2)) if h.dim() > 2 else h.float().abs().mean(0)
