"""The small CNN of the paper's CIFAR experiments: four convolutions and a sparse linear layer, each with batch norm."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.nets.batch_norm import norm_values, normalize
from spacenet.space.blueprint import Blueprint, Hook, Layer, Link, Params, as_images, connect


def small_cnn(image: tuple[int, int, int], maps: Sequence[int] = (32, 32, 64, 64), linear: int = 512) -> Blueprint:
    """Describe the network for images of (channels, height, width); max pooling follows every second convolution."""
    channels, height, width = image
    halvings = len(maps) // 2
    if not maps or min(height, width) >> halvings < 1:
        raise SettingsError(
            f"hidden: {len(maps)} convolutions halve images of {height}×{width} {halvings} times; "
            "give one or more, as many as the images allow, and last the linear layer"
        )
    positions = (height >> halvings) * (width >> halvings)
    names = [f"conv{i}" for i in range(1, len(maps) + 1)]
    layers = (
        Layer("input", channels, unit_values=()),
        *(Layer(name, size, norm_values()) for name, size in zip(names, maps, strict=True)),
        Layer("linear", linear, norm_values()),
        Layer("output", 0),
    )
    convolutions = tuple(Link(f"{a}-{b}", a, b, kernel=(3, 3)) for a, b in pairwise(["input", *names]))
    flatten = Link(f"{names[-1]}-linear", names[-1], "linear", kernel=(positions,))
    classify = Link("linear-output", "linear", "output")

    def forward(values: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
        h = as_images(x)
        for number, link in enumerate(convolutions, 1):
            h = torch.relu(normalize(values, link.target, connect(values, link, h, hook)))
            if number % 2 == 0:
                h = F.max_pool2d(h, 2)
        h = torch.relu(normalize(values, "linear", connect(values, flatten, h, hook)))
        return connect(values, classify, h, hook) + values["output.bias"]

    return Blueprint(layers, (*convolutions, flatten, classify), forward)
