"""The blueprints of this package's own networks, which are plain modules."""

from functools import lru_cache
from typing import Any

from torch import nn

from spacenet.nets.populations import build_blueprint
from spacenet.nets.trace import trace_ours
from spacenet.space.blueprint import Blueprint


def blueprint_of(module: type[nn.Module], input_shape: tuple[int, ...], *args: Any, **options: Any) -> Blueprint:
    """The blueprint of a network for samples of this shape; `args` and `options` are those of the module."""
    return _blueprint(module, tuple(input_shape), args, tuple(sorted(options.items())))  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def _blueprint(
    module: type[nn.Module], input_shape: tuple[int, ...], args: tuple[Any, ...], options: tuple[tuple[str, Any], ...]
) -> Blueprint:
    return build_blueprint(trace_ours(lambda: module(input_shape, *args, **dict(options)), input_shape))
