"""Residual networks: ResNet-18 for small images (He et al. 2016), and wide ones (Zagoruyko and Komodakis 2016).

Feature maps that are added to each other are one layer: each stage has a *stream* that its blocks add to, and each
block a layer of its own between its two convolutions.
"""

import torch
from torch import Tensor

from spacenet.errors import SettingsError
from spacenet.nets import image_shape
from spacenet.space.blueprint import Blueprint, Hook, Layer, Link, Params
from spacenet.space.operations import as_images, connect, norm_values, normalize

Block = tuple[Link, Link, Link | None]
"""Two convolutions, and the shortcut around them where they lead from one stream to another."""


def build_resnet18(input_shape: tuple[int, ...], *, width: int = 64) -> Blueprint:
    """ResNet-18 for images of this shape: a 3×3 stem, then four stages of two blocks.

    The first stage has `width` maps, each further one twice as many. Batch norm follows each convolution, so what
    enters a stream is normalized before it is added, once for each link to it.
    """
    streams = {f"stage{stage}": width << (stage - 1) for stage in range(1, 5)}
    stem = Link("input-stage1", "input", "stage1", kernel=(3, 3))
    blocks = _blocks(list(streams), 2, source="stage1")
    classify = Link("stage4-output", "stage4", "output")
    links = (stem, *(link for block in blocks for link in block if link is not None), classify)
    layers = [Layer("input", image_shape(input_shape)[0], unit_values=())]
    for name, size in streams.items():
        entering = [norm_values(link.source) for link in links if link.target == name]
        layers.append(Layer(name, size, sum(entering, ()), group=name))
        layers += [Layer(f"{name}.{n}", size, norm_values(), group=name) for n in (1, 2)]
    layers.append(Layer("output", 0))

    def forward(params: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
        def enter(link: Link, h: Tensor) -> Tensor:
            norm = link.source if link.target in streams else "norm"
            return normalize(params, link.target, connect(params, link, h, hook), norm)

        stream = torch.relu(enter(stem, as_images(x)))
        for first, second, shortcut in blocks:
            inner = torch.relu(enter(first, stream))
            stream = torch.relu(enter(second, inner) + (stream if shortcut is None else enter(shortcut, stream)))
        return connect(params, classify, stream.mean((2, 3)), hook) + params["output.bias"]

    return Blueprint(tuple(layers), links, forward)


def build_wide_resnet(input_shape: tuple[int, ...], *, depth: int = 28, widen: int = 10, stem: int = 16) -> Blueprint:
    """WRN-depth-widen for images of this shape.

    Batch norm and ReLU come before a convolution, so a stream is normalized once for every block that reads it.
    """
    channels = image_shape(input_shape)[0]
    if depth < 10 or (depth - 4) % 6:
        raise SettingsError(f"a wide residual network has 6 n + 4 layers (10, 16, 22, …), not {depth}", setting="net")
    streams = {"stem": stem} | {f"group{g}": stem * widen << (g - 1) for g in (1, 2, 3)}
    enter = Link("input-stem", "input", "stem", kernel=(3, 3))
    blocks = _blocks(list(streams)[1:], (depth - 4) // 6, source="stem")
    classify = Link("group3-output", "group3", "output")
    layers = [Layer("input", channels, unit_values=())]
    for name, size in streams.items():
        norms = [norm_values(first.target) for first, _, _ in blocks if first.source == name]
        if name == "group3":
            norms.append(norm_values("last"))
        layers.append(Layer(name, size, sum(norms, ()), group=name))
        inner = [second.source for _, second, _ in blocks if second.target == name]
        layers += [Layer(each, size, norm_values(), group=name) for each in inner]
    layers.append(Layer("output", 0))

    def forward(params: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
        stream = connect(params, enter, as_images(x), hook)
        for first, second, shortcut in blocks:
            h = torch.relu(normalize(params, first.source, stream, first.target))
            inner = torch.relu(normalize(params, first.target, connect(params, first, h, hook)))
            kept = stream if shortcut is None else connect(params, shortcut, h, hook)
            stream = kept + connect(params, second, inner, hook)
        h = torch.relu(normalize(params, "group3", stream, "last"))
        return connect(params, classify, h.mean((2, 3)), hook) + params["output.bias"]

    links = (enter, *(link for block in blocks for link in block if link is not None), classify)
    return Blueprint(tuple(layers), links, forward)


def _blocks(streams: list[str], count: int, source: str) -> list[Block]:
    """`count` blocks for each stream. The first reads the stream before and, except in the first one, halves images."""
    blocks: list[Block] = []
    for target in streams:
        for number in range(1, count + 1):
            inner, stride = f"{target}.{number}", 2 if number == 1 and target != streams[0] else 1
            first = Link(f"{source}-{inner}", source, inner, kernel=(3, 3), stride=stride)
            shortcut = Link(f"{source}-{target}", source, target, kernel=(1, 1), stride=stride)
            second = Link(f"{inner}-{target}", inner, target, kernel=(3, 3))
            blocks.append((first, second, shortcut if source != target else None))
            source = target
    return blocks
