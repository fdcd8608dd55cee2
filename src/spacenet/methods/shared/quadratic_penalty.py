"""What EWC, SI, MAS and AR1 share: a penalty on changing parameters, larger for the more important ones."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.methods.base import Batch
from spacenet.methods.shared.dense import DenseMethod
from spacenet.space.blueprint import Params
from spacenet.utils.tensors import in_section

IMPORTANCE, ANCHOR = "importance", "anchor"


class Penalty:
    """strength × Σ importance × (parameter − anchor)², over all parameters that have an importance."""

    def __init__(self, strength: float) -> None:
        self.strength = strength
        self.importance: dict[str, Tensor] = {}
        self.anchor: dict[str, Tensor] = {}
        """What the parameters are held near: usually their values after the last task."""

    def __call__(self, params: Params) -> Tensor | float:
        """What is added to the loss; 0 while nothing is important."""
        moved = [
            (self.importance[name] * (params[name] - self.anchor[name]).square()).sum()
            for name in sorted(self.importance)  # always in the same order: sums depend on it
        ]
        return self.strength * torch.stack(moved).sum() if moved else 0.0

    def data_gradients(self, params: Params) -> dict[str, Tensor]:
        """The gradients of the data's loss alone: the parameters' gradients without the penalty's share."""
        gradients = {name: param.grad for name, param in params.items() if param.grad is not None}
        for name, importance in self.importance.items():
            if name in gradients:
                pull = 2 * self.strength * importance * (params[name].detach() - self.anchor[name])
                gradients[name] = gradients[name] - pull
        return gradients

    def set_anchor(self, params: Params) -> None:
        """Hold what is important near its present value. Outputs added since then have no importance yet."""
        self.importance = {name: pad_rows(old, params[name]) for name, old in self.importance.items()}
        self.anchor = {name: params[name].detach().clone() for name in self.importance}

    def add(self, importance: Mapping[str, Tensor], limit: float | None = None) -> None:
        """Add a task's importance to that of earlier tasks. It is never negative: that would reward changes."""
        for name, new in importance.items():
            old = self.importance.get(name)
            self.importance[name] = (new if old is None else old + new).clamp(0, limit)

    def importance_tensors(self) -> dict[str, Tensor]:
        """The importance, for a method's state."""
        return in_section(IMPORTANCE, self.importance)

    def anchor_tensors(self) -> dict[str, Tensor]:
        """The anchors, for a method's state."""
        return in_section(ANCHOR, self.anchor)


class QuadraticPenalty(DenseMethod):
    """Adds a penalty to the loss for changing important parameters. The importance is kept from task to task."""

    penalty: Penalty

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        return super().loss(output, batch) + self.penalty(self.params)

    def state(self) -> dict[str, Tensor]:
        return super().state() | self.penalty.importance_tensors()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        self.penalty.importance = self.load_section(state, IMPORTANCE)


def pad_rows(tensor: Tensor, like: Tensor) -> Tensor:
    """The tensor with as many rows as `like`; those of outputs that were added since are zero."""
    missing = torch.zeros(len(like) - len(tensor), *tensor.shape[1:], device=tensor.device)
    return torch.cat([tensor, missing]) if len(missing) else tensor


def trained_params(params: Params) -> dict[str, Tensor]:
    """The parameters that the optimizer changes: all but batch norm's statistics."""
    return {name: param for name, param in params.items() if param.requires_grad}
