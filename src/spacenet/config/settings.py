"""Settings: frozen dataclasses whose bounds stand beside the field, checked in one place.

    @dataclass(frozen=True)
    class MySettings(Settings):
        strength: Annotated[float, Ge(0)] = 1.0
        \"\"\"What the docs, the command line's help and the estimator's docstring say of it.\"\"\"

`check` reads the bounds, `describe_bounds` puts them into words, `field_docs` finds the texts, and `to_plain` and
`from_plain` turn settings into what TOML and JSON hold, and back.
"""

import ast
import dataclasses
import inspect
import math
import sys
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import dacite
from annotated_types import Ge, Gt, Le, Lt

from spacenet.errors import SettingsError
from spacenet.registry import unknown

T = TypeVar("T")
Bound = Ge | Gt | Le | Lt


@dataclass(frozen=True)
class Settings:
    """Base of all settings: values are checked against the declared bounds when an instance is made."""

    def __post_init__(self) -> None:
        check(self)
        self.validate()

    def validate(self) -> None:
        """Raise `SettingsError` for a combination of values that cannot work. Each value alone is checked already."""


def check(settings: Any) -> None:
    """Raise `SettingsError` for the first value outside its declared type's choices or bounds."""
    for name, hint in field_types(type(settings)).items():
        _check_value(name, hint, getattr(settings, name))


def _check_value(name: str, hint: Any, value: Any) -> None:
    if typing.get_origin(hint) is Annotated:
        inner, *bounds = typing.get_args(hint)
        _check_value(name, inner, value)
        _check_bounds(name, [bound for bound in bounds if isinstance(bound, Bound)], value)
    elif isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        if value is not None:
            for inner in _matching(hint, value):
                _check_value(name, inner, value)
    elif typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        if value not in choices:
            raise unknown("value", str(value), [str(choice) for choice in choices], setting=name)
    elif typing.get_origin(hint) is tuple and isinstance(value, tuple):
        for each in value:
            _check_value(name, typing.get_args(hint)[0], each)
    elif isinstance(value, float) and not math.isfinite(value):
        raise SettingsError(f"{value} is not a finite number", setting=name)


def _matching(hint: Any, value: Any) -> Iterable[Any]:
    """The members of a union that a value may belong to: by its type where that is plain."""
    members = [member for member in typing.get_args(hint) if member is not types.NoneType]
    plain = [member for member in members if _accepts(member, value)]
    return plain[:1] or members[:1]


def _accepts(hint: Any, value: Any) -> bool:
    if typing.get_origin(hint) is Annotated:
        return _accepts(typing.get_args(hint)[0], value)
    kind = typing.get_origin(hint) or hint
    if kind is Literal:
        return value in typing.get_args(hint)
    return isinstance(value, (int, float) if kind is float else kind)


def _check_bounds(name: str, bounds: list[Bound], value: Any) -> None:
    if value is None or not bounds:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SettingsError(f"{value!r} is not a number", setting=name)
    if not all(_holds(bound, value) for bound in bounds):
        raise SettingsError(f"{value} is out of range ({describe_bounds(bounds)})", setting=name)


def _holds(bound: Bound, value: float) -> bool:
    match bound:
        case Ge(ge=limit):
            return bool(value >= limit)  # type: ignore[operator]
        case Gt(gt=limit):
            return bool(value > limit)  # type: ignore[operator]
        case Le(le=limit):
            return bool(value <= limit)  # type: ignore[operator]
        case Lt(lt=limit):
            return bool(value < limit)  # type: ignore[operator]


def describe_bounds(bounds: Iterable[Any]) -> str:
    """Bounds in words: "1 or more", "0 to 1", "more than 0, less than 1"; nothing for none."""
    low = next((bound for bound in bounds if isinstance(bound, Ge | Gt)), None)
    high = next((bound for bound in bounds if isinstance(bound, Le | Lt)), None)
    if isinstance(low, Ge) and isinstance(high, Le):
        return f"{low.ge} to {high.le}"
    words = []
    if low is not None:
        words.append(f"{low.ge} or more" if isinstance(low, Ge) else f"more than {low.gt}")
    if high is not None:
        words.append(f"at most {high.le}" if isinstance(high, Le) else f"less than {high.lt}")
    return ", ".join(words)


def bounds_of(hint: Any) -> str:
    """The bounds of a field's type in words, also where it is optional or a tuple."""
    if typing.get_origin(hint) is Annotated:
        inner, *bounds = typing.get_args(hint)
        return describe_bounds([bound for bound in bounds if isinstance(bound, Bound)]) or bounds_of(inner)
    found = [bounds_of(inner) for inner in typing.get_args(hint) if inner is not Ellipsis]
    return next((text for text in found if text), "")


def field_types(kind: type) -> dict[str, Any]:
    """The declared type of each field, with its bounds."""
    return _field_types(cast(Any, kind))


@cache
def _field_types(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def field_docs(kind: type) -> dict[str, str]:
    """The text that stands below each field in the source, inherited ones included, on one line."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if dataclasses.is_dataclass(base):
            docs |= _docs_in_module(base.__module__).get(base.__name__, {})
    return docs


@cache
def _docs_in_module(module: str) -> dict[str, dict[str, str]]:
    """For each class of a module the texts below its fields."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, SyntaxError, KeyError):  # there is no source to read
        return {}
    found: dict[str, dict[str, str]] = {}
    for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for before, after in pairwise(kind.body):
            match before, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found.setdefault(kind.name, {})[name] = " ".join(text.split())
    return found


def to_plain(value: Any) -> Any:
    """Dataclasses, tuples and paths as mappings, lists and texts; what is None is left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if getattr(value, field.name) is not None
        }
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def from_plain(kind: type[T], values: Mapping[str, Any], where: str = "settings") -> T:
    """The settings that a mapping describes. A name or a type that does not belong there is an error."""
    known = field_types(kind)
    for name in values:
        if name not in known:
            raise SettingsError(f"{where}: {unknown('setting', name, list(known))}")
        if typing.get_origin(known[name]) is Literal:
            _check_value(name, known[name], values[name])
    try:
        return dacite.from_dict(kind, values, _STRICT)
    except (dacite.DaciteError, TypeError) as error:
        raise SettingsError(f"{where}: {error}") from error


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _numbers(value: Any) -> Any:
    return tuple(map(_number, value)) if isinstance(value, (list, tuple)) else (_number(value),)


def _integers(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


_STRICT = dacite.Config(
    strict=True,
    cast=[Path],
    type_hooks={float: _number, tuple[float, ...]: _numbers, tuple[int, ...]: _integers},
)
