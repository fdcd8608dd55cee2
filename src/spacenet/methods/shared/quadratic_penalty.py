"""What EWC, SI, MAS and AR1 share: a penalty on changing parameters, larger for the more important ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge, Gt
from torch import Tensor
from torch.func import grad, vmap

from spacenet.methods.base import Batch, Optimizer, Params, Samples, Task, Uniform, kept
from spacenet.methods.shared.dense import DenseMethod, LossSettings
from spacenet.utils.tensors import take_tensors

Function = Callable[..., Tensor]
WHAT = "what weights are held by"
CHUNK = 25
"""Samples at a time. The gradient of each is as large as the network."""


@dataclass(frozen=True)
class PenaltySettings(LossSettings):
    """How strongly the old weights are held."""

    strength: Annotated[float, Ge(0), Uniform(0.001, 100.0, log=True)] = 1.0
    """Factor of the penalty (the paper's λ)."""


class QuadraticPenalty(DenseMethod):
    """Adds strength × Σ importance × (parameter − anchor)² to the loss, over all parameters that have an importance."""

    settings: PenaltySettings
    importance: dict[str, Tensor] = kept("importance", dict)
    anchor: dict[str, Tensor] = kept("task/anchor", dict)
    """What the parameters are held near: usually their values after the last task."""
    importance_limit: float | None = None
    factor = 1.0
    """Of the settings' strength."""

    def begin_task(self, task: Task, data: Samples) -> None:
        """Outputs that are added have no importance yet."""
        super().begin_task(task, data)
        self.importance = {name: pad_rows(old, self.params[name]) for name, old in self.importance.items()}
        self.anchor = self.next_anchor()

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        super().check_state(take_tensors(state, self.measured_shapes("importance"), WHAT, least=0.0), input_shape)

    def measured_shapes(self, prefix: str) -> dict[str, tuple[int, ...]]:
        """The shapes of what is kept under this prefix for each measured parameter."""
        shapes = self.saved_shapes(self.saved_sizes())
        return {f"{prefix}/{name}": shapes[name] for name in self.measured_params()}

    def next_anchor(self) -> dict[str, Tensor]:
        """What the parameters are held near during the task that begins."""
        return {name: self.params[name].detach().clone() for name in self.importance}

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        return super().loss(output, batch) + self.penalty()

    def penalty(self) -> Tensor | float:
        """What is added to the loss; 0 while nothing is important."""
        names = sorted(self.importance)  # always in the same order: sums depend on it
        moved = [(self.importance[name] * (self.params[name] - self.anchor[name]).square()).sum() for name in names]
        return self.factor * self.settings.strength * torch.stack(moved).sum() if moved else 0.0

    def add_importance(self, importance: Params) -> None:
        """Add a task's importance to that of earlier tasks. It is never negative: that would reward changes."""
        for name, new in importance.items():
            old = self.importance.get(name)
            self.importance[name] = (new if old is None else old + new).clamp(0, self.importance_limit)

    def measured_params(self) -> dict[str, Tensor]:
        """The parameters whose importance is measured: all but batch norm's statistics."""
        return {name: param for name, param in self.params.items() if param.requires_grad}

    def mean_gradients(self, x: Tensor, y: Tensor, objective: Function, measure: Function) -> dict[str, Tensor]:
        """The mean over samples of `measure(gradient)`, for each measured parameter. `objective` gets a sample's scores
        and its y. Batch norm uses its stored statistics, so samples are independent."""
        trained = {name: param.detach() for name, param in self.measured_params().items()}
        fixed = {name: param.detach() for name, param in self.params.items() if name not in trained}

        def of_sample(inner: dict[str, Tensor], one_x: Tensor, one_y: Tensor) -> Tensor:
            return objective(self.blueprint.forward({**inner, **fixed}, one_x.unsqueeze(0))[0], one_y)

        of_samples = vmap(grad(of_sample), in_dims=(None, 0, 0))
        sums = {name: torch.zeros_like(param) for name, param in trained.items()}
        for some_x, some_y in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
            for name, gradient in of_samples(trained, some_x, some_y).items():
                sums[name] += measure(gradient).sum(0)
        return {name: total / len(x) for name, total in sums.items()}


@dataclass(frozen=True)
class PathIntegralSettings(PenaltySettings):
    """How strongly the old weights are held."""

    strength: Annotated[float, Ge(0)] = 1.0
    """Factor of the penalty (the paper's c)."""
    damping: Annotated[float, Gt(0)] = 0.1
    """Added to the squared change of a weight, so that the importance of one that hardly changed stays finite (ξ)."""


class PathIntegralPenalty(QuadraticPenalty):
    """The importance is measured while a task is trained: how much each parameter decreased the loss, the sum of
    −gradient × step (Zenke et al. 2017, eq. 3)."""

    settings: PathIntegralSettings
    decrease: dict[str, Tensor] = kept("task/decrease", dict)
    """How far each number has decreased the loss so far (the paper's ω)."""
    anchor: dict[str, Tensor] = kept("task/start", dict)
    """All measured parameters at the beginning of the task."""

    def next_anchor(self) -> dict[str, Tensor]:
        return {name: param.detach().clone() for name, param in self.measured_params().items()}

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        self.decrease = {name: torch.zeros_like(param) for name, param in self.anchor.items()}

    def step(self, optimizer: Optimizer) -> None:
        gradients = self.data_gradients()
        before = {name: self.params[name].detach().clone() for name in gradients}
        super().step(optimizer)
        for name, gradient in gradients.items():
            self.decrease[name] -= gradient * (self.params[name].detach() - before[name])

    def data_gradients(self) -> dict[str, Tensor]:
        """The gradients of the data's loss alone: the parameters' gradients without the penalty's share."""
        params = self.measured_params()
        gradients = {name: param.grad for name, param in params.items() if param.grad is not None}
        for name in self.importance.keys() & gradients.keys():
            moved = params[name].detach() - self.anchor[name]
            gradients[name] = gradients[name] - 2 * self.settings.strength * self.importance[name] * moved
        return gradients

    def end_task(self, task: Task) -> None:
        self.add_importance(self.task_importance())
        super().end_task(task)

    def task_importance(self) -> dict[str, Tensor]:
        """What the task adds to the importance (eq. 5): the decrease of the loss over the squared total change."""
        squares = {name: (self.params[name].detach() - start).square() for name, start in self.anchor.items()}
        return {name: decrease / (squares[name] + self.settings.damping) for name, decrease in self.decrease.items()}


def sample_subset(data: Samples, count: int, rng: torch.Generator) -> Samples:
    """A random subset of `count` samples, or all of them if there are fewer."""
    rows = torch.randperm(len(data), generator=rng)[:count]
    return Samples(data.x[rows], data.y[rows])


def pad_rows(tensor: Tensor, like: Tensor) -> Tensor:
    """The tensor with as many rows as `like`; those of outputs that were added since are zero."""
    missing = torch.zeros(len(like) - len(tensor), *tensor.shape[1:], device=tensor.device)
    return torch.cat([tensor, missing]) if len(missing) else tensor
