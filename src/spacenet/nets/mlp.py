"""The multilayer perceptron: any number of hidden layers of any width, ReLU between them."""

import math

from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.nets.ours import blueprint_of
from spacenet.space.blueprint import Blueprint

HIDDEN = (400, 400)


class Mlp(nn.Module):
    """An MLP for samples of any shape, which are flattened."""

    def __init__(self, input_shape: tuple[int, ...], hidden: tuple[int, ...] = HIDDEN, classes: int = 1) -> None:
        super().__init__()
        sizes = (math.prod(input_shape), *hidden)
        for number, (enter, out) in enumerate(zip(sizes, hidden, strict=False), start=1):
            self.add_module(f"hidden{number}", nn.Linear(enter, out))
        self.output = nn.Linear(sizes[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        *hidden, output = self.children()
        h = x.flatten(1)
        for layer in hidden:
            h = F.relu(layer(h))
        return output(h)  # type: ignore[no-any-return]


def build_mlp(input_shape: tuple[int, ...], hidden: tuple[int, ...] = HIDDEN) -> Blueprint:
    """The MLP in the space."""
    return blueprint_of(Mlp, input_shape, {"hidden": (2,) * len(hidden)}, hidden=tuple(hidden))
