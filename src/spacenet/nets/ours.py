"""The blueprints of this package's own networks, which are plain modules."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import nn

from spacenet.nets.graph import Graph
from spacenet.nets.populations import build_blueprint
from spacenet.nets.trace import NoInitialization, trace_ours
from spacenet.space.blueprint import Blueprint


def blueprint_of(
    module: Callable[..., nn.Module],
    input_shape: tuple[int, ...],
    narrow: Mapping[str, Any],
    **options: Any,
) -> Blueprint:
    """The blueprint of a network for samples of this shape. It is traced with the options `narrow` laid over its own,
    which make it narrow and change nothing else, so that the widest network costs no more than the narrowest."""
    pairs = (tuple(sorted(each.items())) for each in (options, {**options, **narrow}))
    return _blueprint(module, tuple(input_shape), *pairs)


@lru_cache(maxsize=64)
def _blueprint(
    module: Callable[..., nn.Module],
    input_shape: tuple[int, ...],
    options: tuple[tuple[str, Any], ...],
    narrow: tuple[tuple[str, Any], ...],
) -> Blueprint:
    with NoInitialization(), torch.device("meta"):  # its sizes alone, without memory
        widths = {
            path: each.out_channels if isinstance(each, nn.Conv2d) else each.out_features
            for path, each in module(input_shape, **dict(options)).named_modules()
            if isinstance(each, (nn.Conv2d, nn.Linear))
        }
    graph = trace_ours(lambda: module(input_shape, **dict(narrow)), input_shape)
    return build_blueprint(Graph(tuple(replace(node, out=widths.get(node.name, node.out)) for node in graph.nodes)))
