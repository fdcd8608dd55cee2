"""What EWC, SI, MAS and AR1 share: a penalty on changing parameters, larger for the more important ones."""

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from torch import Tensor
from torch.func import grad, vmap

from spacenet.methods.base import Batch, Samples, Task
from spacenet.methods.shared.dense import DenseMethod
from spacenet.space.blueprint import Blueprint, Params
from spacenet.utils.optimizers import Optimizer

Objective = Callable[[Tensor, Tensor], Tensor]
CHUNK = 25
"""Samples at a time. The gradient of each is as large as the network."""


class Penalty:
    """strength × Σ importance × (parameter − anchor)², over all parameters that have an importance."""

    def __init__(self, strength: float) -> None:
        self.strength = strength
        self.importance: dict[str, Tensor] = {}
        self.anchor: dict[str, Tensor] = {}
        """What the parameters are held near: usually their values after the last task."""

    def __call__(self, params: Params) -> Tensor | float:
        """What is added to the loss; 0 while nothing is important."""
        names = sorted(self.importance)  # always in the same order: sums depend on it
        moved = [(self.importance[name] * (params[name] - self.anchor[name]).square()).sum() for name in names]
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


class PathIntegral:
    """Accumulates −gradient × step for each parameter during a task (Zenke et al. 2017, eq. 3)."""

    def __init__(self) -> None:
        self.decrease: dict[str, Tensor] = {}
        """How far each number has decreased the loss so far (the paper's ω)."""
        self.start: dict[str, Tensor] = {}
        """The parameters at the beginning of the task."""

    def begin(self, params: Params) -> None:
        """Begin a task with these parameters."""
        self.start = {name: param.detach().clone() for name, param in params.items()}
        self.decrease = {name: torch.zeros_like(param) for name, param in self.start.items()}

    def record(self, params: Params, gradients: Mapping[str, Tensor], step: Callable[[], None]) -> None:
        """Call `step` and record what it changed; `gradients` are those of the data's loss."""
        before = {name: params[name].detach().clone() for name in gradients}
        step()
        for name, gradient in gradients.items():
            self.decrease[name] -= gradient * (params[name].detach() - before[name])

    def importance(self, params: Params, damping: float) -> dict[str, Tensor]:
        """What the task adds to the importance (eq. 5): the decrease of the loss over the squared total change."""
        squares = {name: (params[name].detach() - start).square() for name, start in self.start.items()}
        return {name: decrease / (squares[name] + damping) for name, decrease in self.decrease.items()}


class QuadraticPenalty(DenseMethod):
    """Adds a penalty to the loss for changing important parameters. The importance is kept from task to task."""

    kept: ClassVar = {"penalty.importance": "importance"}
    penalty: Penalty

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        return super().loss(output, batch) + self.penalty(self.params)


class PathIntegralPenalty(QuadraticPenalty):
    """The importance is measured while a task is trained: how much each parameter decreased the loss."""

    kept: ClassVar = {"path.decrease": "task/decrease", "path.start": "task/start"}
    damping: float
    importance_limit: float | None = None

    def setup(self) -> None:
        super().setup()
        self.path = PathIntegral()

    def measured_params(self) -> dict[str, Tensor]:
        """The parameters that have an importance."""
        return trained_params(self.params)

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        self.path.begin(self.measured_params())
        self.penalty.set_anchor(self.path.start)

    def resume_task(self, task: Task, data: Samples) -> None:
        super().resume_task(task, data)
        self.penalty.set_anchor(self.path.start)

    def step(self, optimizer: Optimizer) -> None:
        params, step = self.measured_params(), super().step
        self.path.record(params, self.penalty.data_gradients(params), lambda: step(optimizer))

    def end_task(self, task: Task) -> None:
        self.penalty.add(self.path.importance(self.params, self.damping), self.importance_limit)
        super().end_task(task)


def sample_subset(data: Samples, count: int, rng: torch.Generator) -> Samples:
    """A random subset of `count` samples, or all of them if there are fewer."""
    rows = torch.randperm(len(data), generator=rng)[:count]
    return Samples(data.x[rows], data.y[rows])


def mean_gradients(
    blueprint: Blueprint,
    params: Params,
    x: Tensor,
    y: Tensor,
    objective: Objective,
    measure: Callable[[Tensor], Tensor],
) -> dict[str, Tensor]:
    """The mean over samples of `measure(gradient)`, for each trained parameter. `objective` gets a sample's scores
    and its y. Batch norm uses its stored statistics, so samples are independent."""
    trained = {name: param.detach() for name, param in trained_params(params).items()}
    fixed = {name: param.detach() for name, param in params.items() if name not in trained}

    def of_sample(inner: dict[str, Tensor], one_x: Tensor, one_y: Tensor) -> Tensor:
        return objective(blueprint.forward({**inner, **fixed}, one_x.unsqueeze(0))[0], one_y)

    of_samples = vmap(grad(of_sample), in_dims=(None, 0, 0))
    sums = {name: torch.zeros_like(param) for name, param in trained.items()}
    for some_x, some_y in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
        for name, gradient in of_samples(trained, some_x, some_y).items():
            sums[name] += measure(gradient).sum(0)
    return {name: total / len(x) for name, total in sums.items()}


def pad_rows(tensor: Tensor, like: Tensor) -> Tensor:
    """The tensor with as many rows as `like`; those of outputs that were added since are zero."""
    missing = torch.zeros(len(like) - len(tensor), *tensor.shape[1:], device=tensor.device)
    return torch.cat([tensor, missing]) if len(missing) else tensor


def trained_params(params: Params) -> dict[str, Tensor]:
    """The parameters that the optimizer changes: all but batch norm's statistics."""
    return {name: param for name, param in params.items() if param.requires_grad}
