"""The methods by name."""

from spacenet.errors import SettingsError
from spacenet.methods.base import Method
from spacenet.methods.dense import Joint, Naive
from spacenet.methods.spacenet import SpaceNet, SpaceNetRehearsal, StaticSparse

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (SpaceNet, StaticSparse, SpaceNetRehearsal, Naive, Joint)
}


def method_named(name: str) -> type[Method]:
    if name not in METHODS:
        raise SettingsError(f"method: there is no {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]
