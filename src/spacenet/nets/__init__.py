"""Networks by name, described once and built at any width."""

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import cast

from spacenet.config.model import NetConfig
from spacenet.errors import SettingsError
from spacenet.registry import NETS, unknown
from spacenet.space.blueprint import Blueprint

__all__ = ["build_net", "register_net"]

Build = Callable[..., Blueprint]
WIDE_RESNET = re.compile(r"wrn-(\d{1,3})-(\d{1,3})")


def build_net(config: NetConfig, input_shape: tuple[int, ...]) -> Blueprint:
    build = _find(config.name)
    if config.hidden and len(_positional(build)) < 2:
        raise SettingsError(f"{config.name} does not take widths of hidden layers", setting="hidden")
    try:
        blueprint = build(input_shape, config.hidden) if config.hidden else build(input_shape)
    except SettingsError as error:
        if error.setting == "net" and not error.message.startswith(config.name):
            raise SettingsError(f"{config.name} {error.message}", setting="net") from None
        raise
    if not isinstance(blueprint, Blueprint):
        raise SettingsError(f"{config.name} built {type(blueprint).__name__}, not a Blueprint", setting="net")
    return blueprint


def register_net(name: str, build: Build) -> Build:
    """Make a network available by its name, in Python and on the command line of this process.

    A package makes its network available everywhere with an entry point in the group ``spacenet.nets``.

    Parameters
    ----------
    name : str
        The name to use.
    build : callable
        Takes the shape of a sample, and optionally the widths of the hidden layers as a second argument with a
        default; returns a `spacenet.space.blueprint.Blueprint`.

    Returns
    -------
    The function `build`.

    Examples
    --------
    An MLP with tanh:

    >>> import math, torch
    >>> from spacenet.nets import register_net
    >>> from spacenet.space.blueprint import Blueprint, Layer, Link
    >>> from spacenet.space.operations import connect
    >>> def build_tanh(input_shape, hidden=(50,)):
    ...     pixels = Layer("input", math.prod(input_shape), unit_values=())
    ...     enter, classify = Link("enter", "input", "hidden"), Link("classify", "hidden", "output")
    ...     def forward(params, x, hook=None):
    ...         h = torch.tanh(connect(params, enter, x.flatten(1), hook) + params["hidden.bias"])
    ...         return connect(params, classify, h, hook) + params["output.bias"]
    ...     return Blueprint((pixels, Layer("hidden", hidden[0]), Layer("output", 0)), (enter, classify), forward)
    >>> build = register_net("tanh", build_tanh)
    >>> from spacenet.config.model import NetConfig
    >>> from spacenet.nets import build_net
    >>> [layer.size for layer in build_net(NetConfig("tanh", hidden=(30,)), (8, 8)).layers]
    [64, 30, 0]
    """
    if not callable(build) or not _positional(build):
        raise SettingsError(f"the net {name!r} must be a function of the shape of a sample: {build!r}")
    NETS.register(name, build)
    return build


def _find(name: str) -> Build:
    wide = WIDE_RESNET.fullmatch(name)
    if wide is not None:
        from spacenet.nets.residual import build_wide_resnet

        return partial(build_wide_resnet, depth=int(wide[1]), widen=int(wide[2]))
    if name not in NETS:
        raise unknown("net", name, [*NETS, "wrn-DEPTH-WIDTH"], setting="net")
    return cast(Build, NETS[name])


def _positional(build: Build) -> list[inspect.Parameter]:
    """The parameters that a function can be given by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter for parameter in inspect.signature(build).parameters.values() if parameter.kind in kinds]
