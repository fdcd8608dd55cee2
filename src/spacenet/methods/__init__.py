"""The methods by name: those of this package, and those that other packages bring along."""

from importlib.metadata import EntryPoint, entry_points

from spacenet.errors import SettingsError
from spacenet.methods.ar1 import AR1
from spacenet.methods.base import Method
from spacenet.methods.clnp import CLNP
from spacenet.methods.cwr import CWR
from spacenet.methods.den import DEN
from spacenet.methods.dgr import DGR
from spacenet.methods.er import ER
from spacenet.methods.ewc import EWC
from spacenet.methods.fecam import FeCAM
from spacenet.methods.gaussian import Gaussian
from spacenet.methods.icarl import ICaRL
from spacenet.methods.joint import Joint
from spacenet.methods.lwf import LwF
from spacenet.methods.mas import MAS
from spacenet.methods.naive import Naive
from spacenet.methods.packnet import PackNet
from spacenet.methods.pathnet import PathNet
from spacenet.methods.piggyback import Piggyback
from spacenet.methods.pnn import PNN
from spacenet.methods.si import SI
from spacenet.methods.slda import SLDA
from spacenet.methods.spacenet import SpaceNet
from spacenet.methods.spacenet_density import SpaceNetDensity
from spacenet.methods.spacenet_rehearsal import SpaceNetRehearsal
from spacenet.methods.static_sparse import StaticSparse

GROUP = "spacenet.methods"
"""Packages that bring methods name them in this entry-point group."""

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Naive,
        EWC,
        SI,
        MAS,
        LwF,
        ER,
        DGR,
        ICaRL,
        SpaceNetRehearsal,
        Gaussian,
        SLDA,
        FeCAM,
        DEN,
        PackNet,
        Piggyback,
        PNN,
        PathNet,
        CLNP,
        CWR,
        AR1,
        StaticSparse,
        SpaceNet,
        SpaceNetDensity,
        Joint,
    )
}
"""Those of this package, in the order of the paper's tables: the lower bound first, the upper bound last."""


def method_names() -> list[str]:
    """All there are. Those from outside are not loaded for it."""
    return [*METHODS, *(name for name in _from_outside() if name not in METHODS)]


def get_method(name: str) -> type[Method]:
    if name in METHODS:
        return METHODS[name]
    outside = _from_outside()
    if name not in outside:
        raise SettingsError(f"method: there is no {name!r}; there are {', '.join(method_names())}")
    return _load(outside[name])


def _from_outside() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _load(point: EntryPoint) -> type[Method]:
    where = f"{point.value}, from the package {point.dist.name if point.dist else 'unknown'}"
    try:
        method = point.load()
    except Exception as error:
        raise SettingsError(f"method: {point.name!r} ({where}) cannot be loaded: {error}") from error
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise SettingsError(f"method: {point.name!r} ({where}) is not a subclass of spacenet.methods.base.Method")
    if method.name != point.name:
        raise SettingsError(f"method: {point.name!r} ({where}) calls itself {method.name!r}; the two must be the same")
    return method
