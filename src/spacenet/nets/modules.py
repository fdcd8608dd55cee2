"""Modules of the user's own: traced, proven and kept as text."""

import math
from functools import lru_cache
from itertools import zip_longest

import torch
from torch import nn

from spacenet.errors import SettingsError
from spacenet.nets.graph import Graph, Node, unsupported
from spacenet.nets.populations import build_blueprint
from spacenet.nets.proof import prove
from spacenet.nets.trace import trace
from spacenet.space.blueprint import Blueprint
from spacenet.space.ledger import Ledger
from spacenet.space.pack import cut

LARGEST = 4096
"""Of the sizes of kernels, strides, paddings and maps in a graph that comes from a file."""
MAX_NUMBERS = 2**24
"""Of one map."""


def trace_module(module: nn.Module, input_shape: tuple[int, ...], initialization: bool = True) -> str:
    """The graph of a module as text, once it is proven that its blueprint computes the same.

    With `initialization`, new connections are distributed as the module's own weights are.
    """
    graph = trace(module, input_shape, initialization=initialization)
    prove(module, graph, input_shape)
    return graph.to_text()


@lru_cache(maxsize=32)
def build_from_text(text: str) -> Blueprint:
    """The blueprint of a graph that was kept as text. The text is not trusted: the network is tried, one unit wide."""
    graph = Graph.from_text(text)
    for node in graph.nodes:
        _check_sizes(node)
    try:
        blueprint = build_blueprint(graph)
        _try(graph, blueprint)
    except SettingsError:
        raise
    except Exception as error:  # of any kind: arguments are handed to PyTorch as they are
        raise unsupported(f"the network's graph cannot be computed ({type(error).__name__}: {error})") from error
    return blueprint


def _check_sizes(node: Node) -> None:
    numbers = [*node.kernel, *node.stride, *node.padding, *node.dilation]
    numbers += node.args[1:] if node.op == "input" else node.args  # type: ignore[arg-type]
    flat = [each for number in numbers for each in (number if isinstance(number, list) else [number])]
    if any(isinstance(each, int) and abs(each) > LARGEST for each in flat) or not all(map(_is_finite, flat)):
        raise unsupported(f"{node.op} {node.name} has sizes that are not possible")


def _is_finite(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _try(graph: Graph, blueprint: Blueprint) -> None:
    """Compute with one unit of each layer; what is wrong with operations or their arguments shows."""
    ledger = Ledger(blueprint)
    ledger.grow(blueprint.output.name, 1)
    params = cut(ledger, {layer.name: torch.zeros(1, dtype=torch.long) for layer in blueprint.layers})
    if _largest_map(graph) > MAX_NUMBERS:
        raise unsupported("the network's maps are too large")
    with torch.no_grad():
        result = blueprint.forward(params, torch.zeros(2, 1, *graph.input_shape[1:]))
    if result.shape != (2, 1):
        raise unsupported(f"the network's output has the shape {tuple(result.shape[1:])}, not one score for each class")


def _largest_map(graph: Graph) -> int:
    """More numbers than any map can have: every padding along each of its sides, whatever makes maps smaller again."""
    shapes, padding = [graph.input_shape[1:]], 0
    for node in graph.nodes:
        numbers = [each for each in node.args if isinstance(each, list)]
        if node.op == "reshape":
            shapes.append(tuple(node.args))  # type: ignore[arg-type]
        elif node.op.startswith("adaptive"):
            shapes += map(tuple, numbers)
        else:
            pads = numbers if node.op == "pad" or "pool" in node.op else []
            padding += 2 * max([0, *node.padding, *(pad for each in pads for pad in each)])
    sides = zip_longest(*map(reversed, shapes), fillvalue=1)
    return math.prod(max(side) + padding for side in sides)
