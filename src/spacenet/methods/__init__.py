"""Continual-learning methods, one file each; `get_method` finds one by name."""

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch, Method, MethodSettings, kept
from spacenet.registry import METHODS

__all__ = ["Batch", "Method", "MethodSettings", "get_method", "kept", "register_method"]


def get_method(name: str) -> type[Method]:
    """The method with this name: a built-in one, a registered one, or one from an installed package."""
    return _check(name, METHODS[name])


def register_method(method: type[Method]) -> type[Method]:
    """Make a method available by its name, in Python and on the command line of this process.

    A package makes its method available everywhere with an entry point in the group ``spacenet.methods``.

    Parameters
    ----------
    method : subclass of spacenet.methods.Method
        Its `name` is the name to use.

    Returns
    -------
    The method, so that this can be used as a decorator.

    Examples
    --------
    >>> import spacenet
    >>> from spacenet.methods.naive import Naive
    >>> @spacenet.register_method
    ... class Lazy(Naive):
    ...     '''Fine-tuning for one epoch.'''
    ...     name = "lazy"
    ...     def epochs(self, planned):
    ...         return 1
    >>> spacenet.run("split-digits", "lazy", progress=False).method
    'lazy'
    """
    _check(getattr(method, "name", ""), method)
    METHODS.register(method.name, method)
    return method


def _check(name: str, method: object) -> type[Method]:
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise SettingsError(f"the method {name!r} is not a subclass of spacenet.methods.Method: {method!r}")
    if getattr(method, "name", None) != name or not name:
        raise SettingsError(f"the method {name!r} calls itself {getattr(method, 'name', None)!r}; the two must agree")
    return method
