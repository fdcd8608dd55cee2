"""The multilayer perceptron: any number of hidden layers of any width, ReLU between them."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from spacenet.space.blueprint import Blueprint, Hook, Layer, Link, Params, connect


def mlp(inputs: int, hidden: Sequence[int]) -> Blueprint:
    """Describe an MLP of `inputs` features. Its output starts empty and grows with the classes."""
    names = ["input", *(f"hidden{i}" for i in range(1, len(hidden) + 1)), "output"]
    layers = (
        Layer("input", inputs, unit_values=()),
        *(Layer(name, size) for name, size in zip(names[1:-1], hidden, strict=True)),
        Layer("output", 0),
    )
    links = tuple(Link(f"{a}-{b}", a, b) for a, b in pairwise(names))

    def forward(values: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
        h = x.flatten(1)
        for link in links:
            h = connect(values, link, h, hook) + values[f"{link.target}.bias"]
            if link is not links[-1]:
                h = torch.relu(h)
        return h

    return Blueprint(layers, links, forward)
