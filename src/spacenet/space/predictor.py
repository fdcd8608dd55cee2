"""A function that predicts, apart from the numbers it computes with: so both can be moved, exported and measured."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from spacenet.space.blueprint import Params


@dataclass(frozen=True)
class Predictor:
    """Inputs to one score for each class."""

    forward: Callable[[Params, Tensor], Tensor]
    values: dict[str, Tensor]

    def __call__(self, x: Tensor) -> Tensor:
        with torch.inference_mode():
            return self.forward(self.values, x)
