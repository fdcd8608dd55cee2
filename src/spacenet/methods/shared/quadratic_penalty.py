"""What EWC, SI, MAS and AR1 share: a value may move, but the more it mattered, the more moving it costs."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.methods.base import Batch
from spacenet.methods.shared.dense import DenseMethod

IMPORTANCE, ANCHOR = "importance/", "anchor/"


class Penalty:
    """strength × Σ importance × (value − anchor)², summed over all numbers of the values it knows."""

    def __init__(self, strength: float) -> None:
        self.strength = strength
        self.importance: dict[str, Tensor] = {}
        self.anchor: dict[str, Tensor] = {}
        """Where the values are held: usually what they were after the last task."""

    def __call__(self, values: Mapping[str, Tensor]) -> Tensor | float:
        """What the loss grows by; 0 while nothing is important."""
        moved = [
            (self.importance[name] * (values[name] - self.anchor[name]).square()).sum()
            for name in sorted(self.importance)  # always in the same order: sums depend on it
        ]
        return self.strength * torch.stack(moved).sum() if moved else 0.0

    def without(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The gradients that values have without what the penalty added to them: those of the data's loss."""
        gradients = {name: value.grad for name, value in values.items() if value.grad is not None}
        for name, importance in self.importance.items():
            if name in gradients:
                pull = 2 * self.strength * importance * (values[name].detach() - self.anchor[name])
                gradients[name] = gradients[name] - pull
        return gradients

    def hold(self, values: Mapping[str, Tensor]) -> None:
        """Hold what is important near where it is now. Outputs that are new since have no importance yet."""
        self.importance = {name: as_wide(old, values[name]) for name, old in self.importance.items()}
        self.anchor = {name: values[name].detach().clone() for name in self.importance}

    def add(self, importance: Mapping[str, Tensor], limit: float | None = None) -> None:
        """Add a task's importance to that of the tasks before. None falls below 0: that would reward moving."""
        for name, new in importance.items():
            old = self.importance.get(name)
            self.importance[name] = (new if old is None else old + new).clamp(0, limit)

    def importances(self) -> dict[str, Tensor]:
        """The importance by name, to be saved."""
        return {IMPORTANCE + name: tensor for name, tensor in self.importance.items()}

    def anchors(self) -> dict[str, Tensor]:
        """The anchor by name, to be saved."""
        return {ANCHOR + name: tensor for name, tensor in self.anchor.items()}

    def load(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Take back what of `importances` and `anchors` is among the tensors."""
        for prefix, target in ((IMPORTANCE, self.importance), (ANCHOR, self.anchor)):
            for key, tensor in tensors.items():
                if key.startswith(prefix):
                    target[key.removeprefix(prefix)] = tensor.to(device, copy=True)


class QuadraticPenalty(DenseMethod):
    """A network whose loss grows when it leaves what mattered. What is important is kept from task to task."""

    penalty: Penalty

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        return super().loss(output, batch) + self.penalty(self.values)

    def extra(self) -> dict[str, Tensor]:
        return self.penalty.importances()

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self.penalty.load(tensors, self.device)


def as_wide(tensor: Tensor, like: Tensor) -> Tensor:
    """The tensor with zeros for outputs that came since: as many rows as `like`."""
    missing = torch.zeros(len(like) - len(tensor), *tensor.shape[1:], device=tensor.device)
    return torch.cat([tensor, missing]) if len(missing) else tensor


def trained(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those that the optimiser changes: all but batch norm's statistics."""
    return {name: value for name, value in values.items() if value.requires_grad}
