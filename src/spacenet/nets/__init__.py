"""Networks by name, described once and built at any width."""

import importlib
import inspect
import re
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from torch import nn

from spacenet.config.model import NetConfig
from spacenet.errors import SettingsError
from spacenet.nets.modules import build_from_text, trace_module
from spacenet.registry import NETS, unknown
from spacenet.space.blueprint import Blueprint

__all__ = ["Net", "build_net", "net_name", "register_net", "resolve_net"]

Build = Callable[..., Any]
"""Makes a `torch.nn.Module` or a `Blueprint`."""
Net = str | Build
"""A name, a `torch.nn.Module`, or a function that makes one."""
OURS = ("mlp", "small-cnn", "resnet-18")
WIDE_RESNET = re.compile(r"wrn-(\d{1,3})-(\d{1,3})")


def build_net(config: NetConfig, input_shape: tuple[int, ...]) -> Blueprint:
    """The blueprint of a network for samples of this shape."""
    config = resolve_net(config, input_shape)
    return build_from_text(config.graph) if config.graph else cast(Blueprint, _build(config, input_shape))


def resolve_net(config: NetConfig, input_shape: tuple[int, ...]) -> NetConfig:
    """The same network; where it is a module of the user's own, with its graph, which needs the module no more."""
    if config.graph or _is_ours(config.name):
        return config
    built = _build(config, input_shape)
    if isinstance(built, Blueprint):
        return config
    return replace(config, graph=trace_module(built, input_shape, config.init == "module"))


def _build(config: NetConfig, input_shape: tuple[int, ...]) -> "Blueprint | nn.Module":
    build = _find(config.name)
    if config.hidden and len(_positional(build)) < 2:
        raise SettingsError(f"{config.name} does not take widths of hidden layers", setting="hidden")
    try:
        built = build(input_shape, config.hidden) if config.hidden else build(*[input_shape] * takes_shape(build))
    except SettingsError as error:
        if error.setting == "net" and not error.message.startswith(config.name):
            raise SettingsError(f"{config.name} {error.message}", setting="net") from None
        raise
    if not isinstance(built, (Blueprint, nn.Module)):
        raise SettingsError(f"{config.name} built {type(built).__name__}, not a torch.nn.Module", setting="net")
    return built


def register_net(name: str, build: Build) -> Build:
    """Make a network available by its name, in Python and on the command line of this process.

    A package makes its network available everywhere with an entry point in the group ``spacenet.nets``.

    Parameters
    ----------
    name : str
        The name to use.
    build : callable
        Returns a `torch.nn.Module`. If it takes an argument without a default, that is the shape of a sample; a
        second one with a default are the widths of the hidden layers.

    Returns
    -------
    The function `build`.

    Examples
    --------
    An MLP with tanh:

    >>> import math
    >>> from torch import nn
    >>> from spacenet.nets import register_net
    >>> def build_tanh(input_shape, hidden=(50,)):
    ...     inputs = math.prod(input_shape)
    ...     return nn.Sequential(nn.Flatten(), nn.Linear(inputs, hidden[0]), nn.Tanh(), nn.Linear(hidden[0], 2))
    >>> build = register_net("tanh", build_tanh)
    >>> from spacenet.config.model import NetConfig
    >>> from spacenet.nets import build_net
    >>> [layer.size for layer in build_net(NetConfig("tanh", hidden=(30,)), (8, 8)).layers]
    [64, 30, 0]
    """
    if not callable(build):
        raise SettingsError(f"the net {name!r} must be a function that returns a module: {build!r}")
    NETS.register(name, build)
    return build


def net_name(net: Net | None) -> str | None:
    """The name of a network; a module, or a function that makes one, is registered under its own name."""
    if net is None or isinstance(net, str):
        return net
    name = getattr(net, "__name__", type(net).__name__).replace("_", "-")
    if isinstance(net, nn.Module):
        given = _Given(net)
        NETS.register(name, given, replace=True)  # another module of the same class takes its place
        weakref.finalize(net, _forget, name, given)
    elif NETS.get(name) is not net:
        register_net(name, net)
    return name


class _Given:
    """A module as a function that returns it, as long as somebody else holds it. Other processes get a copy."""

    def __init__(self, module: nn.Module) -> None:
        self.module = weakref.ref(module)

    def __call__(self) -> nn.Module:
        module = self.module()
        assert module is not None, "an entry is removed together with its module"
        return module

    def __reduce__(self) -> tuple[Any, ...]:
        return partial, (_same, self())


def _same(module: nn.Module) -> nn.Module:
    return module


def _forget(name: str, given: _Given) -> None:
    if NETS.registered.get(name) is given:
        NETS.unregister(name)


def _is_ours(name: str) -> bool:
    return name in OURS or WIDE_RESNET.fullmatch(name) is not None


def _find(name: str) -> Build:
    wide = WIDE_RESNET.fullmatch(name)
    if wide is not None:
        from spacenet.nets.residual import build_wide_resnet

        return partial(build_wide_resnet, depth=int(wide[1]), widen=int(wide[2]))
    if name in NETS:
        return cast(Build, NETS[name])
    if ":" in name:
        return _import(name)
    raise unknown("net", name, [*NETS, "wrn-DEPTH-WIDTH", "PACKAGE.MODULE:FUNCTION"], setting="net")


def _import(name: str) -> Build:
    """The function, or class, that makes a module: package.module:function."""
    place, _, attribute = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))  # as python -m does
    try:
        found = getattr(importlib.import_module(place), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"{name} cannot be imported ({error})", setting="net") from error
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise SettingsError(f"{name} is not a function that makes a network", setting="net")
    return cast(Build, found)


def takes_shape(build: Build) -> bool:
    """Whether a function wants the shape of a sample: if it cannot do without an argument."""
    return any(parameter.default is parameter.empty for parameter in _positional(build))


def _positional(build: Build) -> list[inspect.Parameter]:
    """The parameters that a function can be given by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter for parameter in inspect.signature(build).parameters.values() if parameter.kind in kinds]
