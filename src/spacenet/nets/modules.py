"""Modules of the user's own: traced, proven and kept as text."""

from functools import lru_cache

from torch import nn

from spacenet.nets.graph import Graph
from spacenet.nets.populations import build_blueprint
from spacenet.nets.proof import prove
from spacenet.nets.trace import trace
from spacenet.space.blueprint import Blueprint


def trace_module(module: nn.Module, input_shape: tuple[int, ...], initialization: bool = True) -> str:
    """The graph of a module as text, once it is proven that its blueprint computes the same.

    With `initialization`, new connections are distributed as the module's own weights are.
    """
    graph = trace(module, input_shape, initialization=initialization)
    prove(module, graph, input_shape)
    return graph.to_text()


@lru_cache(maxsize=32)
def build_from_text(text: str) -> Blueprint:
    """The blueprint of a graph that was kept as text. The text is not trusted."""
    return build_blueprint(Graph.from_text(text))
