"""ResNet-18 for small images (He et al. 2016): a 3×3 stem, four stages of two blocks, norm after each convolution.

Feature maps that are added to each other are one layer: each stage has a *stream*, and each block a layer of its own
between its two convolutions. What enters a stream is normalized before it is added, once for each link to it.
"""

import torch
from torch import Tensor

from spacenet.nets.shapes import image_shape
from spacenet.space.blueprint import Blueprint, Hook, Layer, Link, Params
from spacenet.space.operations import as_images, connect, norm_values, normalize

STAGES, BLOCKS = 4, 2


def build_resnet18(input_shape: tuple[int, ...], *, width: int = 64) -> Blueprint:
    """The network for images of this shape; the first stage has `width` maps, each further one twice as many."""
    channels = image_shape(input_shape)[0]
    stem = Link("input-stage1", "input", "stage1", kernel=(3, 3))
    blocks = [_block(stage, number) for stage in range(1, STAGES + 1) for number in range(1, BLOCKS + 1)]
    classify = Link(f"stage{STAGES}-output", f"stage{STAGES}", "output")
    links = (stem, *(link for block in blocks for link in block if link is not None), classify)
    layers = [Layer("input", channels, unit_values=())]
    for stage in range(1, STAGES + 1):
        name, size = f"stage{stage}", width << (stage - 1)
        entering = [norm_values(link.source) for link in links if link.target == name]
        layers.append(Layer(name, size, sum(entering, ()), group=name))
        layers += [Layer(f"{name}.{n}", size, norm_values(), group=name) for n in range(1, BLOCKS + 1)]
    layers.append(Layer("output", 0))

    def forward(params: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
        def enter(link: Link, h: Tensor) -> Tensor:
            norm = link.source if "." not in link.target else "norm"
            return normalize(params, link.target, connect(params, link, h, hook), norm)

        stream = torch.relu(enter(stem, as_images(x)))
        for first, second, shortcut in blocks:
            inner = torch.relu(enter(first, stream))
            stream = torch.relu(enter(second, inner) + (stream if shortcut is None else enter(shortcut, stream)))
        return connect(params, classify, stream.mean((2, 3)), hook) + params["output.bias"]

    return Blueprint(tuple(layers), links, forward)


def _block(stage: int, number: int) -> tuple[Link, Link, Link | None]:
    """Its two convolutions, and the shortcut where it leads from one stage to the next."""
    target, inner = f"stage{stage}", f"stage{stage}.{number}"
    opens = number == 1 and stage > 1
    source, stride = (f"stage{stage - 1}", 2) if opens else (target, 1)
    shortcut = Link(f"{source}-{target}", source, target, kernel=(1, 1), stride=stride) if opens else None
    first = Link(f"{source}-{inner}", source, inner, kernel=(3, 3), stride=stride)
    return first, Link(f"{inner}-{target}", inner, target, kernel=(3, 3)), shortcut
