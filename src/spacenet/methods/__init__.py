"""The methods by name."""

from spacenet.errors import SettingsError
from spacenet.methods.base import Method
from spacenet.methods.joint import Joint
from spacenet.methods.naive import Naive
from spacenet.methods.spacenet import SpaceNet
from spacenet.methods.spacenet_rehearsal import SpaceNetRehearsal
from spacenet.methods.static_sparse import StaticSparse

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (SpaceNet, StaticSparse, SpaceNetRehearsal, Naive, Joint)
}


def method_named(name: str) -> type[Method]:
    if name not in METHODS:
        raise SettingsError(f"method: there is no {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]
