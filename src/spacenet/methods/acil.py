"""ACIL: a linear classifier on random features, computed in closed form, the same as from all data at once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.settings import WIDE
from spacenet.errors import RunError
from spacenet.methods.base import PREDICT_BATCH, Choice, LayerUsage, MethodSettings, Params, Stream, Task, Uniform, kept
from spacenet.methods.shared import class_statistics
from spacenet.methods.shared.class_statistics import Representation
from spacenet.methods.shared.frozen_features import FrozenFeatures
from spacenet.space.blueprint import Blueprint
from spacenet.utils.tensors import take_tensors

WHAT = "the random features"


@dataclass(frozen=True)
class ACILSettings(MethodSettings):
    """The random features, and how the classifier on them is regularized."""

    representation: Representation = "features"
    """What random features are computed from: features, those of the network after its first task, as published; the
    inputs, or the edges of images, which need no network; auto is features for convolutional networks, edges for other
    images, otherwise inputs."""
    buffer_size: Annotated[int, Ge(1), Le(WIDE), Choice((500, 1000, 2000, 4000))] = 2000
    """Random features. Published with 8192; memory grows with the square."""
    ridge: Annotated[float, Gt(0), Uniform(0.001, 1000.0, log=True)] = 0.1
    """Factor of the squared norm of the classifier's weights (the paper's γ)."""
    compensation: Annotated[float, Ge(0), Choice((0.0, 0.6, 1.0))] = 0.0
    """Factor of a second classifier, on the same random features through tanh, which learns what the first one leaves
    of the new classes: DS-AL's compensation stream. 0 is ACIL."""


class ACIL(FrozenFeatures):
    """Ridge regression of the classes on random features of a network that is frozen after the first task.

    Published recursively, with the inverse of the features' correlations. Here the correlations themselves are added up
    and solved when they are needed: the same numbers and memory, whatever the order of tasks. Keeps no samples.
    """

    name = "acil"
    reference = (
        "Zhuang, Weng, Wei, Xie, Toh, Lin: ACIL: Analytic Class-Incremental Learning with Absolute Memorization and "
        "Privacy Protection. NeurIPS, 2022; compensation: Zhuang, He, Tong, Zeng, Chen, Lin: DS-AL. AAAI, 2024"
    )
    settings_from = "Fewer random features than published (8192); ridge not searched; the stream's own training."
    settings: ACILSettings
    projection: Tensor = kept("network/projection", Tensor)
    """(buffer size, d), random."""
    correlations: dict[str, Tensor] = kept("correlations", dict)
    """For each stream the sum of h hᵀ over all samples, (buffer size, buffer size)."""
    sums: dict[str, Tensor] = kept("sums", dict)
    """For each stream the sum of h yᵀ, (buffer size, classes)."""

    @property
    def uses_features(self) -> bool:
        """Whether random features are computed from those of the network."""
        return _uses_features(self.settings, self.blueprint)

    @classmethod
    def count_new_numbers(cls, blueprint: Blueprint, settings: ACILSettings) -> int:
        return super().count_new_numbers(blueprint, settings) if _uses_features(settings, blueprint) else 0

    def build(self) -> None:
        if self.uses_features:
            super().build()

    def new_outputs(self, task: Task) -> int:
        return super().new_outputs(task) if self.uses_features else 0

    def layer_usage(self) -> list[LayerUsage]:
        return super().layer_usage() if self.uses_features else []

    def check(self, stream: Stream) -> list[str]:
        self.check_inputs(stream.input_shape)
        return super().check(stream)

    def check_inputs(self, shape: tuple[int, ...]) -> None:
        self._representation(shape)

    def _representation(self, shape: tuple[int, ...]) -> Representation:
        kind: Representation = "features" if self.uses_features else self.settings.representation
        return class_statistics.resolve_representation(kind, shape)

    def epochs(self, planned: int) -> int:
        return super().epochs(planned) if self.uses_features else 0

    def represent(self, x: Tensor) -> Tensor:
        """What random features are computed from, (n, d)."""
        kind = self._representation(tuple(x.shape[1:]))
        return self.features(x) if kind == "features" else class_statistics.FIXED[kind](x)

    def streams(self, x: Tensor) -> dict[str, Tensor]:
        """The random features of each stream, (n, buffer size), in 64 bits: the sums must be exact enough to solve."""
        h = (self.represent(x) @ self.projection.T).double()
        return {"main": h.relu()} | ({"compensation": h.tanh()} if self.settings.compensation else {})

    def end_task(self, task: Task) -> None:
        if not len(self.projection):
            size = self.represent(task.train.x[:1].to(self.device)).shape[1]
            drawn = torch.randn(self.settings.buffer_size, size, generator=self.rng("projection"))
            self.projection = (drawn / math.sqrt(size)).to(self.device)
        self._add(task, "main")
        if self.settings.compensation:
            self._add(task, "compensation")
        super().end_task(task)

    def _add(self, task: Task, stream: str) -> None:
        """Add the task's samples to a stream. That of the compensation learns what the main one leaves."""
        size, classes = self.settings.buffer_size, task.classes.stop
        gram = self.correlations.get(stream, torch.zeros(size, size, dtype=torch.double, device=self.device))
        old = self.sums.get(stream, gram[:, :0])
        total = F.pad(old, (0, classes - old.shape[1]))
        main = self._solve("main") if stream != "main" else None
        for x, y in zip(task.train.x.split(PREDICT_BATCH), task.train.y.split(PREDICT_BATCH), strict=True):
            h = self.streams(x.to(self.device))
            target = F.one_hot(y.to(self.device), classes).double()
            if main is not None:
                target = target - h["main"] @ main
                target[:, : task.classes.start] = 0.0  # earlier classes would be compensated twice
            gram = gram + h[stream].T @ h[stream]
            total = total + h[stream].T @ target
        self.correlations[stream], self.sums[stream] = gram, total

    def _solve(self, stream: str) -> Tensor:
        """The classifier's weights, (buffer size, classes)."""
        gram = self.correlations[stream]
        ridge = self.settings.ridge * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        factor, info = torch.linalg.cholesky_ex(gram + ridge)
        if int(info):
            raise RunError("the classifier cannot be computed: the values that were learned from are too large")
        return torch.cholesky_solve(self.sums[stream], factor)

    @cached_property
    def weights(self) -> Params:
        """The weights of each stream's classifier."""
        return {stream: self._solve(stream) for stream in self.correlations}

    def predict(self, x: Tensor) -> Tensor:
        factor = {"main": 1.0, "compensation": self.settings.compensation}
        parts = [factor[stream] * (h @ self.weights[stream]) for stream, h in self.streams(x).items()]
        return torch.stack(parts).sum(0).float()

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        size, classes = self.settings.buffer_size, self.classes[-1].stop
        inputs = self.represent(torch.zeros(0, *input_shape)).shape[1]
        rest = take_tensors(state, {"network/projection": (size, inputs)}, WHAT)
        for stream in ("main", "compensation")[: 2 if self.settings.compensation else 1]:
            shapes = {f"correlations/{stream}": (size, size), f"sums/{stream}": (size, classes)}
            rest = take_tensors(rest, shapes, WHAT, dtype=torch.double)
        super().check_state(rest, input_shape)

    def saved_shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        return super().saved_shapes(sizes) if self.uses_features else {}

    def params_to_save(self) -> dict[str, Tensor]:
        return super().params_to_save() if self.uses_features else {}

    def load_params(self, params: Params) -> None:
        if params:
            super().load_params(params)


def _uses_features(settings: ACILSettings, blueprint: Blueprint) -> bool:
    kind = settings.representation
    return kind == "features" or (kind == "auto" and blueprint.convolves)
