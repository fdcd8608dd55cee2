"""Settings that are given as NAME=VALUE, or as METHOD.NAME=VALUE for one of several methods."""

import tomllib
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import tyro

from spacenet.api.settings import check_compared
from spacenet.config.model import SECTIONS, settings_of, settings_type, unknown_setting
from spacenet.config.settings import check_value, field_types, fits
from spacenet.errors import SettingsError

Assignments = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]
"""An option that is given once for each setting."""
WORDS = {"True": True, "False": False}


def parse_assignments(texts: Iterable[str], methods: Sequence[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Settings for all methods by their names, and those of single methods. Values are of the settings' types."""
    common: dict[str, Any] = {}
    own: dict[str, dict[str, Any]] = {}
    for text in texts:
        target, equals, value = text.partition("=")
        method, _, name = target.strip().rpartition(".")
        if not equals or not name:
            raise SettingsError(f"{text!r} is not NAME=VALUE or METHOD.NAME=VALUE", setting="set")
        try:
            if method:
                check_compared(method, methods)
            hint = _find_type(name, [method] if method else methods)
            into = own.setdefault(method, {}) if method else common
            into[name] = _read(name, hint, value.strip())
        except SettingsError as error:
            raise SettingsError(f"{text}: {error}", setting="set") from error
    return common, own


def _find_type(name: str, methods: Sequence[str]) -> Any:
    """The declared type of a setting that one of the methods has."""
    for method in methods:
        section = settings_of(method).get(name)
        if section is not None:
            return field_types(settings_type(method) if section == "method" else SECTIONS[section])[name]
    raise unknown_setting(name, methods, dict.fromkeys(each for method in methods for each in settings_of(method)))


def _read(name: str, hint: Any, text: str) -> Any:
    """The value that a text means: the text itself where that fits, else as TOML writes it; 1,2 is a list."""
    value: Any = text
    if not fits(hint, text):
        forms = [form for form in (text, f"[{text}]") if _as_toml(form) is not None]
        value = WORDS.get(text, _as_toml(forms[0]) if forms else text)
    check_value(name, hint, value)
    return tuple(value) if isinstance(value, list) else value


def _as_toml(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except ValueError:
        return None
    return found["value"] if len(found) == 1 else None
