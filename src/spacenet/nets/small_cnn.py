"""The small CNN of the paper's CIFAR experiments: four convolutions and a sparse linear layer, each with batch norm."""

from itertools import pairwise

from spacenet.errors import SettingsError
from spacenet.nets import image_shape
from spacenet.space.blueprint import Blueprint, Layer, Link
from spacenet.space.operations import chain_with_norm, norm_values

HIDDEN = (32, 32, 64, 64, 512)


def build_small_cnn(input_shape: tuple[int, ...], hidden: tuple[int, ...] = HIDDEN) -> Blueprint:
    """The network for images of this shape; `hidden` has the maps of each convolution, and last the linear layer."""
    channels, height, width = image_shape(input_shape)
    *maps, linear = hidden or HIDDEN
    halvings = len(maps) // 2
    if not maps or min(height, width) >> halvings < 1:
        message = f"{len(maps)} convolutions halve images of {height}×{width} {halvings} times; give one or more"
        raise SettingsError(f"{message}, as many as the images allow, and last the linear layer", setting="hidden")
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
    links = (*convolutions, flatten, Link("linear-output", "linear", "output"))
    return Blueprint(layers, links, chain_with_norm(links, pooled=convolutions[1::2]))  # after every second convolution
