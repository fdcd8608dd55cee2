"""Forms: the flags of a command are the fields of a dataclass, with their texts, bounds and defaults."""

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import make_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro
from tyro.conf import arg

from spacenet.cli.mistakes import explain_mistakes
from spacenet.config.settings import check, describe_bounds, field_docs, field_types, is_union

T = TypeVar("T")
MARKERS = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff, tyro.conf.HelptextFromCommentsOff)
ModelArgument = Annotated[tyro.conf.Positional[Path], arg(metavar="MODEL", help="A model file.")]
UNKNOWN_HELP = (
    "Call inputs that are like no class unknown, at a threshold where this fraction of inputs of known classes, e.g. "
    "0.05, is called so too."
)
UnknownOption = Annotated[float | None, arg(metavar="RATE", help=UNKNOWN_HELP, help_behavior_hint="")]
LABELED_HELP = (
    "Samples with labels: .npz (x_train and y_train, or x and y; x_test and y_test are for the test), .csv or .parquet "
    "with --label, .npy with --label FILE, or a folder of images with one sub-folder per class."
)
LabeledArgument = Annotated[tyro.conf.Positional[Path], arg(metavar="DATA", help=LABELED_HELP)]
METAVARS: dict[Any, str] = {int: "INT", float: "NUMBER", str: "TEXT", Path: "PATH"}


def parse(kind: type[T], arguments: Sequence[str], command: str) -> T:
    """A command's options as the command line gives them, within their bounds; --help and mistakes end the program."""
    options = kind(**vars(fill(form_type(kind), arguments, command, describe(kind))))
    check(options)
    return options


def parse_groups(kind: type[T], arguments: Sequence[str], command: str) -> T:
    """Like `parse`, for a dataclass whose fields are options themselves: the help shows each as a group."""
    groups = typing.get_type_hints(kind)
    form = make_dataclass("Form", [(name, form_type(group, doc="")) for name, group in groups.items()])
    filled = fill(form, arguments, command, describe(kind))
    found = {name: group(**vars(getattr(filled, name))) for name, group in groups.items()}
    for options in found.values():
        check(options)
    return kind(**found)


def describe(kind: type) -> str:
    """The description of a command: the docstring of its options."""
    return " ".join((kind.__doc__ or "").split())


def fill(form: type[Any], arguments: Sequence[str], command: str, description: str, default: Any = None) -> Any:
    """Fill a form from the command line, with `default` where nothing is given. Bounds are not checked."""
    extra = {} if default is None else {"default": default}
    prog = f"spacenet {command}"
    with explain_mistakes(arguments, command, form):
        return tyro.cli(form, prog=prog, description=description, args=list(arguments), config=MARKERS, **extra)


def form_type(
    kind: type, skip: Sequence[str] = (), doc: str | None = None, docs: Mapping[str, str] | None = None
) -> type:
    """The options that a dataclass declares: each field's flag, with its text, bounds and placeholder.

    Texts come from the source of the dataclass, or are given as `docs`.
    """
    docs, hints, plain = docs or field_docs(kind), field_types(kind), typing.get_type_hints(kind)
    fields = [
        (field.name, _annotated(hints[field.name], plain[field.name], docs.get(field.name, "")), copy(field))
        for field in dataclasses.fields(kind)
        if field.name not in skip
    ]
    return make_dataclass(
        kind.__name__, fields, namespace={"__doc__": kind.__doc__ if doc is None else doc}, frozen=True
    )


def _annotated(hint: Any, plain: Any, doc: str) -> Any:
    """A field's type with what the help says of it. A type that says so itself (tyro's markers) is left as it is."""
    if typing.get_origin(hint) is Annotated and any("tyro" in type(each).__module__ for each in typing.get_args(hint)):
        return hint
    bounds = describe_bounds(hint)
    text = f"{doc.removesuffix('.')} ({bounds})." if bounds and doc else doc
    return Annotated[plain, arg(help=text or None, metavar=_metavar(plain), help_behavior_hint=_default_hint)]


def _metavar(plain: Any) -> str | None:
    members = [each for each in typing.get_args(plain) if each is not types.NoneType]
    if is_union(plain) and members == [bool]:
        return "{True,False}"
    if is_union(plain) and len(members) == 1:
        return _metavar(members[0])
    if is_union(plain) and any(typing.get_origin(each) is tuple for each in members):
        return "NUMBER …"
    if is_union(plain):
        return "|".join(_metavar(each) or "|".join(map(str, typing.get_args(each))) for each in members)
    if typing.get_origin(plain) is tuple:
        return f"{METAVARS.get(members[0], 'VALUE')} …"
    return METAVARS.get(plain)


def _default_hint(default: str) -> str:
    return "" if default in ("", "None", "False") else f"(default: {default})"
