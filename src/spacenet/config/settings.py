"""Settings: frozen dataclasses whose bounds stand beside the field, checked in one place.

    @dataclass(frozen=True)
    class MySettings(Settings):
        strength: Annotated[float, Ge(0)] = 1.0
        \"\"\"What the docs, the command line's help and the estimator's docstring say of it.\"\"\"

`check` reads the bounds, `describe_bounds` puts them into words, `field_docs` finds the texts, and `to_plain` and
`from_plain` turn settings into what TOML and JSON hold, and back.
"""

import dataclasses
import math
import operator
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import dacite
from annotated_types import Ge, Gt, Le, Lt

from spacenet.errors import SettingsError
from spacenet.registry import unknown

T = TypeVar("T")
HOLDS: dict[type, Any] = {Ge: operator.ge, Gt: operator.gt, Le: operator.le, Lt: operator.lt}
WORDS: dict[type, str] = {Ge: "{} or more", Gt: "more than {}", Le: "at most {}", Lt: "less than {}"}
TYPE_WORDS: dict[Any, str] = {int: "an integer", float: "a number", bool: "true or false", str: "text", Path: "a path"}
MOST_WHOLE, MOST_NUMBER = 2**63 - 1, 1e15
"""The magnitude that integers and other numbers may have whatever is declared: TOML and torch take no larger integers,
and squares of larger numbers, added up, would not fit into 32 bits."""
MOST_DIGITS, MOST_LEVELS, MOST_ITEMS = 300, 20, 10_000
"""Of a number, of lists and sections within each other, and of values in one setting, in what a file holds. Beyond that
Python's own conversions and recursions fail, or reading takes seconds."""
LARGEST = 10**MOST_DIGITS
WIDE = 10_000_000
"""The bound for units of a layer."""
SHOWN = 300
"""Characters of a value that a message shows."""


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


def _check_value(name: str, hint: Any, value: Any, bounded: bool = False) -> None:
    origin, members = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        _check_value(name, members[0], value, bounded=True)
        _check_bounds(name, hint, value)
        _check_magnitude(name, members[0], value)
    elif is_union(hint):
        kinds = [member for member in members if member is not types.NoneType]
        accepting = [kind for kind in kinds if _accepts(kind, value)]
        if value is not None and not accepting and len(kinds) > 1:
            raise SettingsError(f"{show(value)} is not {describe_type(hint)}", setting=name)
        if value is not None:
            _check_value(name, (accepting or kinds)[0], value)
    elif origin is Literal:
        if value not in members:
            text = value if isinstance(value, str) else show(value)
            raise unknown("value", text, list(map(str, members)), setting=name)
    elif origin is tuple and isinstance(value, tuple):
        for each in value:
            _check_value(name, members[0], each)
    elif isinstance(value, float) and not math.isfinite(value):
        raise SettingsError(f"{value} is not a finite number", setting=name)
    elif not bounded:  # else a bound that is declared comes first
        _check_magnitude(name, hint, value)


def _check_magnitude(name: str, hint: Any, value: Any) -> None:
    most = MOST_WHOLE if hint is int else MOST_NUMBER
    if isinstance(value, (int, float)) and abs(value) > most:
        raise SettingsError(f"{show(value)} is out of range (a magnitude of at most {most:.3g})", setting=name)


def is_union(hint: Any) -> bool:
    """Whether a type is a union: int | None, or Annotated[int, …] | None, which is of another class."""
    return typing.get_origin(hint) in (types.UnionType, typing.Union)


def _accepts(hint: Any, value: Any) -> bool:
    if typing.get_origin(hint) is Annotated:
        return _accepts(typing.get_args(hint)[0], value)
    kind = typing.get_origin(hint) or hint
    if kind is Literal:
        return value in typing.get_args(hint)
    return isinstance(value, (int, float) if kind is float else kind)


def _check_bounds(name: str, hint: Any, value: Any) -> None:
    bounds = _bounds(hint)
    if value is None or not bounds:
        return
    kind, word = (int, "an integer") if hint.__origin__ is int else ((int, float), "a number")
    if isinstance(value, bool) or not isinstance(value, kind):
        raise SettingsError(f"{show(value)} is not {word}", setting=name)
    if not all(HOLDS[kind](value, limit) for kind, limit in bounds):
        raise SettingsError(f"{show(value)} is out of range ({describe_bounds(hint)})", setting=name)


def _bounds(hint: Any) -> list[tuple[type, Any]]:
    """The bounds of an annotated type: of which kind, and where."""
    return [(type(each), *dataclasses.astuple(each)) for each in hint.__metadata__ if type(each) in HOLDS]


def describe_bounds(hint: Any) -> str:
    """The bounds of a field's type in words, also where it is optional or a tuple; nothing if there are none.

    "1 or more", "0 to 1", "more than 0, less than 1".
    """
    if typing.get_origin(hint) is not Annotated or not _bounds(hint):
        found = [describe_bounds(inner) for inner in typing.get_args(hint) if inner is not Ellipsis]
        return next(filter(None, found), "")
    kinds, limits = zip(*_bounds(hint), strict=True)
    texts = [f"{limit:g}" if isinstance(limit, float) else str(limit) for limit in limits]
    if kinds == (Ge, Le):
        return " to ".join(texts)
    return ", ".join(WORDS[kind].format(text) for kind, text in zip(kinds, texts, strict=True))


def field_types(kind: Any) -> dict[str, Any]:
    """The declared type of each field, with its bounds."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def field_docs(kind: type) -> dict[str, str]:
    """The text that stands below each field in the source, inherited ones included, on one line."""
    docs: dict[str, str] = {}
    for base in filter(dataclasses.is_dataclass, reversed(kind.__mro__)):
        docs |= _own_docs(base)
    return docs


@cache
def _own_docs(kind: type) -> dict[str, str]:
    """Kept, because each look parses the whole file of the class."""
    from docstring_parser import parse_from_object

    try:
        return {each.arg_name: " ".join(str(each.description).split()) for each in parse_from_object(kind).params}
    except TypeError:  # defined where there is no source to read
        return {}


def to_plain(value: Any) -> Any:
    """Dataclasses, tuples and paths as mappings, lists and texts; what is None is left out."""
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def from_plain(kind: type[T], values: Mapping[str, Any], where: str = "settings") -> T:
    """The settings that a mapping describes. A name or a type that does not belong there is an error."""
    check_section(where, values)
    known = field_types(kind)
    for name, value in values.items():
        if name not in known:
            raise SettingsError(f"{where}: {unknown('setting', name, known)}")
        check_plain(f"{where}: {name}", [value])
        if known[name] is not Any and isinstance(value, (list, tuple, Mapping)) and len(value) > MOST_ITEMS:
            raise SettingsError(f"{where}: {name} has more than {MOST_ITEMS:,} values")
        if typing.get_origin(known[name]) is Literal:
            _check_value(name, known[name], values[name])
        if not fits(known[name], value):
            raise SettingsError(f"{where}: {name} must be {describe_type(known[name])}, not {show(value)}")
    try:
        return dacite.from_dict(kind, values, _STRICT)
    except (dacite.DaciteError, TypeError) as error:
        raise SettingsError(f"{where}: {_shorten(str(error))}") from error


def check_value(name: str, hint: Any, value: Any) -> None:
    """Raise `SettingsError` for a value of a setting, as a file holds it, of a wrong type or out of range."""
    if typing.get_origin(hint) is not Literal and not fits(hint, value):
        raise SettingsError(f"must be {describe_type(hint)}, not {show(value)}", setting=name)
    _check_value(name, hint, tuple(value) if isinstance(value, list) else value)


def fits(hint: Any, value: Any) -> bool:
    """Whether a value as files hold it is of a declared type. Bounds are not checked."""
    origin, members = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return fits(members[0], value)
    if is_union(hint):
        return any(fits(member, value) for member in members)
    if origin is Literal:
        return value in members
    if dataclasses.is_dataclass(hint):
        return isinstance(value, Mapping)
    if origin is tuple and Ellipsis in members:  # one value stands for a list of it
        return all(fits(members[0], each) for each in (value if isinstance(value, (list, tuple)) else [value]))
    if hint in (int, float):
        return isinstance(value, (int, float) if hint is float else int) and not isinstance(value, bool)
    if hint is Path:
        return isinstance(value, (str, Path))
    return hint is Any or not isinstance(hint, type) or isinstance(value, hint)


def describe_type(hint: Any) -> str:
    """A declared type in words: "an integer", "a list of numbers"."""
    origin, members = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return describe_type(members[0])
    if is_union(hint):
        return " or ".join(describe_type(member) for member in members if member is not types.NoneType)
    if origin is Literal:
        return f"one of {', '.join(map(str, members))}" if len(members) > 1 else str(members[0])
    if origin is tuple:
        return f"a list, each {describe_type(members[0])}"
    return TYPE_WORDS.get(hint, getattr(hint, "__name__", str(hint)))


def check_section(where: str, values: Any) -> None:
    """Raise `SettingsError` unless this is a mapping."""
    if not isinstance(values, Mapping):
        raise SettingsError(f"{where} must be a section with settings, not {show(values)}")


def check_plain(where: str, values: Iterable[Any], levels: int = MOST_LEVELS) -> None:
    """Raise `SettingsError` for numbers and nested values that are too large for any setting."""
    if not levels:
        raise SettingsError(f"{where} has more than {MOST_LEVELS} levels")
    for value in values:
        if isinstance(value, (list, tuple)):
            check_plain(where, value, levels - 1)
        elif isinstance(value, Mapping):
            check_plain(where, value.values(), levels - 1)
        elif isinstance(value, int) and not -LARGEST < value < LARGEST:
            raise SettingsError(f"{where} has a number with more than {MOST_DIGITS} digits")


def show(value: Any) -> str:
    """A value in a message: shortened if it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # too many digits, or too many levels
        return f"a value of the type {type(value).__name__}, too large to show,"
    return _shorten(text)


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


_STRICT = dacite.Config(
    strict=True,
    cast=[Path],
    type_hooks={float: _number, tuple[float, ...]: _listed, tuple[int, ...]: _listed},
)
