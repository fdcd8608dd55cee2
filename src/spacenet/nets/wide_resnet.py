"""Wide residual networks (Zagoruyko and Komodakis 2016), e.g. WRN-28-10.

Feature maps that are added to each other are one layer: each group has a *stream* that its blocks add to, and each
block a layer of its own between its two convolutions. Batch norm and ReLU come before a convolution, so a stream is
normalized once for every block that reads it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from spacenet.errors import SettingsError
from spacenet.nets.shapes import image_shape
from spacenet.space.blueprint import Blueprint, Hook, Layer, Link, Params
from spacenet.space.operations import as_images, connect, norm_values, normalize

GROUPS = 3


@dataclass(frozen=True)
class Block:
    """Two convolutions from one stream to another (or the same one), around a shortcut."""

    source: str
    inner: str
    target: str
    first: Link
    second: Link
    shortcut: Link | None


def build_wide_resnet(input_shape: tuple[int, ...], *, depth: int = 28, widen: int = 10, stem: int = 16) -> Blueprint:
    """WRN-depth-widen for images of this shape."""
    channels = image_shape(input_shape)[0]
    if depth < 10 or (depth - 4) % 6:
        raise SettingsError(f"a wide residual network has 6 n + 4 layers (10, 16, 22, …), not {depth}", setting="net")
    blocks = [_block(group, number) for group in range(1, GROUPS + 1) for number in range(1, (depth - 4) // 6 + 1)]
    widths = {"stem": stem} | {f"group{g}": stem * widen << (g - 1) for g in range(1, GROUPS + 1)}
    layers = [Layer("input", channels, unit_values=())]
    for stream, width in widths.items():
        readers = [norm_values(block.inner) for block in blocks if block.source == stream]
        last = [norm_values("last")] if stream == f"group{GROUPS}" else []
        layers.append(Layer(stream, width, sum(readers + last, ()), group=stream))
        inner = [block.inner for block in blocks if block.target == stream]
        layers += [Layer(name, width, norm_values(), group=stream) for name in inner]
    layers.append(Layer("output", 0))
    first = Link("input-stem", "input", "stem", kernel=(3, 3))
    last_stream = f"group{GROUPS}"
    classify = Link(f"{last_stream}-output", last_stream, "output")
    links = [first, *(link for b in blocks for link in (b.first, b.second, b.shortcut) if link is not None), classify]

    def forward(params: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
        stream = connect(params, first, as_images(x), hook)
        for block in blocks:
            h = torch.relu(normalize(params, block.source, stream, block.inner))
            inner = torch.relu(normalize(params, block.inner, connect(params, block.first, h, hook)))
            kept = stream if block.shortcut is None else connect(params, block.shortcut, h, hook)
            stream = kept + connect(params, block.second, inner, hook)
        h = torch.relu(normalize(params, last_stream, stream, "last"))
        return connect(params, classify, h.mean((2, 3)), hook) + params["output.bias"]

    return Blueprint(tuple(layers), tuple(links), forward)


def _block(group: int, number: int) -> Block:
    target, inner = f"group{group}", f"group{group}.{number}"
    opens = number == 1
    source = target if not opens else ("stem" if group == 1 else f"group{group - 1}")
    stride = 2 if opens and group > 1 else 1
    shortcut = Link(f"{source}-{target}", source, target, kernel=(1, 1), stride=stride) if opens else None
    first = Link(f"{source}-{inner}", source, inner, kernel=(3, 3), stride=stride)
    return Block(source, inner, target, first, Link(f"{inner}-{target}", inner, target, kernel=(3, 3)), shortcut)
