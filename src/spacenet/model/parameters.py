"""The parameters of the estimator: the settings of `ModelConfig` and of the methods that a model can have."""

import textwrap
import types
import typing
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Literal

from spacenet.config.model import SECTIONS, settings_type
from spacenet.config.presets import default_method, preset_config
from spacenet.config.settings import field_docs, field_types
from spacenet.config.stream import CUSTOM

METHODS = ("spacenet-density", "spacenet", "static-sparse", "spacenet-rehearsal", "spacenet-experts")
"""Whose settings are parameters of the estimator; those of all other methods are its `method_settings`."""
EXCLUDED = ("devices", "evaluate_every", "name", "graph", "encoder_checksum", "encoder_version")
"""Settings of a run that a model does not have."""
WIDTH = 110
"""Characters of a line in the docstring."""


@dataclass(frozen=True)
class Parameter:
    """One of the estimator's parameters that is a setting."""

    default: Any
    hint: Any
    doc: str
    methods: tuple[str, ...] = ()  # the methods that have it; empty for all

    def belongs_to(self, method: str) -> bool:
        return not self.methods or method in self.methods

    def describe(self, name: str) -> str:
        some = 0 < len(self.methods) < len(METHODS)
        doc = f"{self.doc} (Only {', '.join(self.methods)}.)" if some else self.doc
        text = textwrap.indent(textwrap.fill(doc, WIDTH), " " * 8)
        return f"{name} : {_describe_type(self.hint)}, default {self.default!r}\n{text}"


@cache
def setting_parameters() -> dict[str, Parameter]:
    """All settings that the estimator takes, by name."""
    found: dict[str, Parameter] = {}
    preset = preset_config(CUSTOM, default_method(CUSTOM)).model.flat()
    kinds: list[tuple[str, type]] = [("", kind) for kind in SECTIONS.values()]
    for method, kind in [*kinds, *((method, settings_type(method)) for method in METHODS)]:
        docs, hints = field_docs(kind), field_types(kind)
        for field in fields(kind):
            name = field.name
            if name in EXCLUDED:
                continue
            methods = (*(found[name].methods if name in found else ()), *([method] if method else []))
            default = preset.get(name, field.default) if field.default is not None else None
            found[name] = Parameter(default, hints[name], docs.get(name, ""), methods)
    return found


def parameters_of(method: str) -> dict[str, Parameter]:
    """All settings that a model of this method takes, by name."""
    found = {name: each for name, each in setting_parameters().items() if each.belongs_to(method)}
    if method in METHODS:
        return found
    kind, preset = settings_type(method), preset_config(CUSTOM, method).model.flat()
    docs, hints = field_docs(kind), field_types(kind)
    own = {f.name: Parameter(preset[f.name], hints[f.name], docs.get(f.name, ""), (method,)) for f in fields(kind)}
    return found | own


def _describe_type(hint: Any) -> str:
    """A field's type as numpydoc writes it: int or None, {"sgd", "adam"}, tuple of int."""
    origin, members = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _describe_type(members[0])
    if origin is Literal:
        return "{" + ", ".join(f'"{each}"' for each in members) + "}"
    if origin is tuple:
        return f"tuple of {_describe_type(members[0])}"
    if members:
        return " or ".join(map(_describe_type, members))
    return {types.NoneType: "None", str: "str"}.get(hint, getattr(hint, "__name__", str(hint)))
