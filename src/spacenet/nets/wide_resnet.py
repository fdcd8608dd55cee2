"""Wide residual networks (Zagoruyko and Komodakis 2016), e.g. WRN-28-10.

Feature maps that an addition joins are one layer: each group has a *stream* that its blocks add to, and each block
a layer of its own between its two convolutions. Batch norm and ReLU come before a convolution, so a stream is
normalised once for every block that reads it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from spacenet.errors import SettingsError
from spacenet.nets.batch_norm import norm_values, normalize
from spacenet.space.blueprint import Blueprint, Hook, Layer, Link, Params, as_images, connect

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


def wide_resnet(channels: int, depth: int = 28, widen: int = 10, stem: int = 16) -> Blueprint:
    """Describe WRN-depth-widen for images of so many channels, of any size that can be halved twice."""
    if depth < 10 or (depth - 4) % 6:
        raise SettingsError(f"depth: a wide residual network has 6 n + 4 layers (10, 16, 22, 28, …), not {depth}")
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

    def forward(values: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
        stream = connect(values, first, as_images(x), hook)
        for block in blocks:
            h = torch.relu(normalize(values, block.source, stream, block.inner))
            inner = torch.relu(normalize(values, block.inner, connect(values, block.first, h, hook)))
            kept = stream if block.shortcut is None else connect(values, block.shortcut, h, hook)
            stream = kept + connect(values, block.second, inner, hook)
        h = torch.relu(normalize(values, last_stream, stream, "last"))
        return connect(values, classify, h.mean((2, 3)), hook) + values["output.bias"]

    return Blueprint(tuple(layers), tuple(links), forward)


def _block(group: int, number: int) -> Block:
    target, inner = f"group{group}", f"group{group}.{number}"
    opens = number == 1
    source = target if not opens else ("stem" if group == 1 else f"group{group - 1}")
    stride = 2 if opens and group > 1 else 1
    shortcut = Link(f"{source}-{target}", source, target, kernel=(1, 1), stride=stride) if opens else None
    first = Link(f"{source}-{inner}", source, inner, kernel=(3, 3), stride=stride)
    return Block(source, inner, target, first, Link(f"{inner}-{target}", inner, target, kernel=(3, 3)), shortcut)
