"""The multilayer perceptron: any number of hidden layers of any width, ReLU between them."""

import math
from itertools import pairwise

import torch
from torch import Tensor

from spacenet.space.blueprint import PRECOMPUTED, Blueprint, Hook, Layer, Link, Params
from spacenet.space.operations import connect

HIDDEN = (400, 400)
_relu_backward = torch.ops.aten.threshold_backward.default


def build_mlp(input_shape: tuple[int, ...], hidden: tuple[int, ...] = HIDDEN) -> Blueprint:
    """An MLP for samples of this shape, which are flattened. Its output starts empty and grows with the classes."""
    names = ["input", *(f"hidden{i}" for i in range(1, len(hidden) + 1)), "output"]
    layers = (
        Layer("input", math.prod(input_shape), unit_values=()),
        *(Layer(name, size) for name, size in zip(names[1:-1], hidden, strict=True)),
        Layer("output", 0),
    )
    links = tuple(Link(f"{a}-{b}", a, b) for a, b in pairwise(names))

    def forward(params: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
        h = x.flatten(1)
        for link in links:
            h = connect(params, link, h, hook) + params[f"{link.target}.bias"]
            if link is not links[-1]:
                h = torch.relu(h)
        return h

    return Blueprint(layers, links, forward, MlpDerivative(links))


class MlpDerivative:
    """The forward function above and its gradient, operation by operation as autograd would compute them."""

    def __init__(self, links: tuple[Link, ...]) -> None:
        self.links = [(link.name, link.name + PRECOMPUTED, f"{link.target}.bias") for link in links]

    def forward(self, params: Params, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        h = x.flatten(1)
        activations: list[Tensor] = []
        for weight, precomputed, bias in self.links:
            if activations:
                h.relu_()
            activations.append(h)
            h = h.mm(params[weight].t())
            if precomputed in params:
                h.add_(params[precomputed])
            h.add_(params[bias])
        return h, activations

    def backward(self, params: Params, activations: list[Tensor], gradient: Tensor, out: Params) -> None:
        for (weight, _, bias), h in zip(reversed(self.links), reversed(activations), strict=True):
            torch.sum(gradient, 0, out=out[bias])
            torch.mm(gradient.t(), h, out=out[weight])
            if h is not activations[0]:
                gradient = _relu_backward(gradient.mm(params[weight]), h, 0)
