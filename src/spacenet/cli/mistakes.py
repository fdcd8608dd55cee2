"""What the command line says of a mistake in its arguments: a line or two, with what was probably meant."""

import dataclasses
import re
import typing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tyro

from spacenet.config.model import methods_with
from spacenet.errors import SettingsError
from spacenet.registry import METHODS, nearest, unknown

FLAG = re.compile(r"--?[A-Za-z][^=]*")
"""An option without its value. Negative numbers, and - for standard input, are none."""
NOT_A_NUMBER = re.compile(r"(?:invalid literal for int\(\).*|could not convert string to float): ('.*')$", re.MULTILINE)


@contextmanager
def explain_mistakes(arguments: Sequence[str], command: str, *forms: type) -> Iterator[None]:
    """Raise `SettingsError` where tyro, which parses arguments into one of the forms, would print a box and exit."""
    try:
        from tyro._errors import on_parse_error
    except ImportError:  # other versions of tyro: their own messages are shown
        yield
        return

    def explain(event: Any) -> None:
        error = _unknown_flag(arguments, command, forms) or _explain(event)
        if error is not None:
            error.cli = f"(spacenet {command} --help shows all options.)"
            raise error

    with on_parse_error(explain):
        yield


def _unknown_flag(arguments: Sequence[str], command: str, forms: Sequence[type]) -> SettingsError | None:
    """The error for the first option that does not exist. Other mistakes may only follow from it."""
    fields = [field for form in forms for field in _fields(form)]
    places = {_flag(field): field for field in fields if _is_positional(field)}
    known = ["--help", "-h", *(flag for field in fields if not _is_positional(field) for flag in _flags(field))]
    for argument in arguments:
        found = FLAG.match(argument)
        flag = found[0].replace("_", "-") if found else "--help"
        if flag in known:
            continue
        if (setting := _meant_setting(flag, command)) is not None:
            return setting
        near = nearest(flag, [*known, *places])
        if near in places:
            return SettingsError(f"unknown option {flag}; {near.lstrip('-').upper()} is given without an option.")
        hint = f", did you mean {near}?" if near else "."
        return SettingsError(f"unknown option {flag}{hint}")
    return None


def _meant_setting(flag: str, command: str) -> SettingsError | None:
    """The error for a setting that the command takes in another way, or that other methods have."""
    name = flag.lstrip("-").replace("-", "_")
    owners = methods_with(name) if command in ("run", "compare", "sweep") else []
    if not owners:
        return None
    if command == "run":
        return SettingsError(f"{flag} is a setting of {', '.join(owners)}; choose one with --method.")
    return SettingsError(f"unknown option {flag}; give this setting of the methods as --set {name}=VALUE.")


def _fields(form: Any) -> list[dataclasses.Field[Any]]:
    """The fields of a form, those of the forms in it included."""
    groups = [
        _fields(each.type) if dataclasses.is_dataclass(each.type) else [each] for each in dataclasses.fields(form)
    ]
    return [field for group in groups for field in group]


def _is_positional(field: dataclasses.Field[Any]) -> bool:
    return tyro.conf.Positional in typing.get_args(field.type)


def _flag(field: dataclasses.Field[Any]) -> str:
    return f"--{field.name.replace('_', '-')}"


def _flags(field: dataclasses.Field[Any]) -> list[str]:
    return [_flag(field), f"--no-{_flag(field)[2:]}"] if field.default is True else [_flag(field)]


def _explain(event: Any) -> SettingsError | None:
    """Tyro's event as an error; None for one that is not known here."""
    kind = type(event).__name__
    if kind == "UnrecognizedArgs":
        token = event.tokens[0]
        hint = f", did you mean --method {token}?" if token in METHODS else "."
        return SettingsError(f"unexpected argument {token!r}{hint}")
    if kind == "MissingArgs":
        names = [_usage(each.arg) for each in event.missing_arguments]
        return SettingsError(f"missing: {', '.join(names)}.")
    if kind == "MissingSubcommand":
        return SettingsError(f"missing: {' or '.join(event.subcommand_spec.parser_from_name)}.")
    if kind == "InvalidChoice":
        return SettingsError(f"{_name(event.argument)}: {unknown('value', event.value, event.choices)}")
    if kind == "BadValue":
        return SettingsError(f"{_name(event.argument)}: a value is missing.")
    if kind == "InstantiationFailure" and event.argument is not None:
        number = NOT_A_NUMBER.search(event.message)
        words = str(event.argument.lowered.metavar).split("|")[1:]  # NUMBER|auto
        wanted = " or ".join(["an integer" if number and "int()" in event.message else "a number", *words])
        return SettingsError(f"{_name(event.argument)}: {f'{number[1]} is not {wanted}' if number else event.message}.")
    return None


def _name(argument: Any) -> str:
    """An option's flag, or an argument's placeholder."""
    return str(argument.lowered.metavar if argument.is_positional() else argument.lowered.name_or_flags[0])


def _usage(argument: Any) -> str:
    """An option's flag with its placeholder, or an argument's placeholder."""
    return (
        _name(argument) if argument.is_positional() else f"{_name(argument)} {argument.lowered.metavar or ''}".strip()
    )
