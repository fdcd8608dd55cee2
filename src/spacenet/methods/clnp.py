"""CLNP: units that a task hardly uses are pruned and left to later tasks; all others are frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SpaceFull
from spacenet.methods.base import PREDICT_BATCH, Batch, LayerUsage, kept, map_batches
from spacenet.methods.shared.masked import Masked, OwnLossSettings
from spacenet.space.blueprint import Params
from spacenet.utils.tensors import take_tensors


@dataclass(frozen=True)
class CLNPSettings(OwnLossSettings):
    """How many units a task may keep."""

    sparsity: Annotated[float, Ge(0), Uniform(1e-5, 1e-1, log=True)] = 1e-3
    """Factor of the L1 penalty on mean activations, which deactivates units that a task does not need."""
    margin: Annotated[float, Ge(0), Le(100), Uniform(0.0, 1.0)] = 0.05
    """Percentage points of training accuracy that a task may lose when its least active units are pruned: the published
    "graceful forgetting", which leaves room for later tasks."""


class CLNP(Masked):
    """Tasks share a network of fixed size: each may use the units of earlier ones, and changes only the free units."""

    name = "clnp"
    strategy = "Architectural"
    reference = "Golkar, Kagan, Cho: Continual Learning via Neural Pruning. arXiv:1903.04476, 2019"
    settings_from = "A small search on held-out data; the stream's own training."
    settings: CLNPSettings
    taken: dict[str, Tensor] = kept("taken", on_cpu=True)
    """Which units of each hidden layer belong to a task learned, and are frozen."""
    penalized: Params
    """For each link from hidden units a 1 where the unit is free: only the activity of these is penalized."""

    def setup(self) -> None:
        super().setup()
        self.taken = {layer.name: torch.zeros(layer.size, dtype=torch.bool) for layer in self.blueprint.hidden}

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        shapes = {f"taken/{layer.name}": (layer.size,) for layer in self.blueprint.hidden}
        super().check_state(take_tensors(state, shapes, "units of tasks", dtype=torch.bool), input_shape)

    def begin_task(self, task: Task, data: Samples) -> None:
        if all(bool(taken.all()) for taken in self.taken.values()):
            raise SpaceFull(
                f"the network is full: earlier tasks use all {sum(map(len, self.taken.values()))} hidden units.",
                layer=self.blueprint.hidden[-1].name,
                cli="Wider layers (--hidden), or more --sparsity or --margin, leave room for more tasks.",
                python="Wider layers (hidden), or more sparsity or margin, leave room for more tasks.",
            )
        if self.tasks_learned:
            self._reinitialize()
        super().begin_task(task, data)

    def _reinitialize(self) -> None:
        """Initialize the free units as in a new network."""
        rng = self.rng("renew", self.tasks_learned)
        for link in self.blueprint.links:
            if link.target in self.taken:
                weight, taken = self.params[link.name].data, self.taken[link.target]
                new = link.initial((weight.shape[0], weight.shape[1]), weight.shape[1], weight.shape[0], rng)
                weight[~taken] = new[~taken].to(self.device)
        for layer in self.blueprint.hidden:
            for key, value in layer.keys().items():
                taken = self.taken[layer.name]
                self.params[key].data[~taken] = value.start(len(taken), rng)[~taken].to(self.device)

    def trainable_masks(self) -> dict[str, Tensor]:
        outputs = torch.arange(self.classes[-1].stop) >= self.classes[-1].start
        free = {name: ~taken for name, taken in self.taken.items()} | {self.blueprint.output.name: outputs}
        hidden = [link for link in self.blueprint.links if link.source in self.taken]
        self.penalized = {link.name: free[link.source].to(self.device, torch.float32) for link in hidden}
        return self.unit_masks(free)

    def forward(self, batch: Batch) -> Tensor:
        activities = []

        def hook(link: str, h: Tensor) -> None:
            if link in self.penalized:
                activities.append((self._activity(link, h) * self.penalized[link]).sum())

        output = self.compute(batch.x, hook)
        batch.saved["activity"] = torch.stack(activities).sum()
        return self.outputs_in_loss(output)

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """Cross-entropy, as published over the task's own classes, and the penalty on activity."""
        return super().loss(output, batch) + self.settings.sparsity * batch.saved["activity"]

    def end_task(self, task: Task) -> None:
        self.unfreeze()
        self.taken = self._find_used(task)
        for name, param in self._disconnect(self.taken).items():
            self.params[name].data.copy_(param)
        super().end_task(task)

    def _find_used(self, task: Task) -> dict[str, Tensor]:
        """Which units are used after the task: those above the highest threshold of activity that the margin allows."""
        activity = self._measure_activity(task)
        steps = torch.cat(list(activity.values())).unique()
        least = self._accuracy(task, self.params) - self.settings.margin / 100

        def above(threshold: Tensor) -> dict[str, Tensor]:
            return {name: self.taken[name] | (activity[name] > threshold) for name in self.taken}

        low, high = -1, len(steps)  # units with steps[:low + 1] can be pruned, those with steps[high:] cannot
        while high - low > 1:
            middle = (low + high) // 2
            good = self._accuracy(task, self._disconnect(above(steps[middle]))) >= least
            low, high = (middle, high) if good else (low, middle)
        return above(steps[low] if low >= 0 else torch.tensor(-1.0))

    def _activity(self, link: str, h: Tensor) -> Tensor:
        """The mean activity of each unit that a link reads; where a unit has several features, these lie together."""
        units = self.params[link].shape[1]
        return mean_activity(h if h.shape[1] == units else h.reshape(len(h), units, -1))

    def _measure_activity(self, task: Task) -> dict[str, Tensor]:
        """Mean activation of each hidden unit on the task's data; the largest where several links read a unit.
        Relative to the layer's mean, so that one threshold suits all layers."""
        sums: dict[str, Tensor] = {}

        def hook(link: str, h: Tensor) -> None:
            sums[link] = sums.get(link, 0.0) + self._activity(link, h).cpu() * len(h)

        with torch.no_grad():
            for x in task.train.x.split(PREDICT_BATCH):
                self.blueprint.forward(self.params, x.to(self.device), hook)
        readers = {name: [link.name for link in self.blueprint.links if link.source == name] for name in self.taken}
        activity = {name: torch.stack([sums[link] for link in links]).amax(0) for name, links in readers.items()}
        return {name: each / each.mean().clamp_min(1e-12) for name, each in activity.items()}

    def _disconnect(self, used: Params) -> dict[str, Tensor]:
        """The parameters without connections from unused units to used ones."""
        params: dict[str, Tensor] = {name: param.detach() for name, param in self.params.items()}
        for link in self.blueprint.links:
            if link.source in used:
                params[link.name] = params[link.name].clone()
                outputs = torch.ones(len(params[link.name]), dtype=torch.bool)  # all are used
                params[link.name][used.get(link.target, outputs)[:, None] & ~used[link.source]] = 0.0
        return params

    def _accuracy(self, task: Task, params: Params) -> float:
        """Accuracy on the task's training samples among the task's classes, from 0 to 1."""
        first = task.classes.start
        scores = map_batches(lambda x: self.blueprint.forward(params, x)[:, first:], task.train.x, self.device)
        return float((scores.argmax(1) == task.train.y.cpu() - first).double().mean())

    def layer_usage(self) -> list[LayerUsage]:
        taken = {name: int(mask.sum()) for name, mask in self.taken.items()}
        *hidden, output = super().layer_usage()
        counts = [(layer, taken[layer.name]) for layer in hidden]
        return [replace(layer, used=n, reserved=n, unused=layer.units - n) for layer, n in counts] + [output]


def mean_activity(h: Tensor) -> Tensor:
    """The mean absolute activation of each unit, over samples and positions."""
    return h.float().abs().flatten(2).mean((0, 2)) if h.dim() > 2 else h.float().abs().mean(0)
