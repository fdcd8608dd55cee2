"""The parameters of `SpaceNetClassifier` that are settings: collected from where the settings are declared."""

import dataclasses
import math
import textwrap
import types
import typing
from functools import cache
from typing import Annotated, Any, Literal

from spacenet.config.model import SECTIONS, settings_type
from spacenet.config.presets import ESTIMATOR_PRESET
from spacenet.config.settings import field_docs, field_types

METHODS = ("spacenet-density", "spacenet", "static-sparse", "spacenet-rehearsal")
STEPS, MIN_EPOCHS, MAX_EPOCHS = 600, 4, 100
EXCLUDED = ("devices", "name")
"""Settings of a run that a model does not have."""
AUTOMATIC = {
    "epochs": f"None: enough for about {STEPS} steps, {MIN_EPOCHS} to {MAX_EPOCHS}.",
    "learning_rate": "None: 0.02 for the MLP, 0.1 for other networks.",
    "phantom_classes": "None: 8 for the MLP, 0 for other networks.",
}
"""Settings that follow from the first task's data and the network if they are None."""
WIDTH = 110
"""Characters of a line in the docstring."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One of the estimator's parameters that is a setting."""

    default: Any
    hint: Any
    doc: str
    methods: tuple[str, ...] = ()
    """The methods that have it; empty for all."""

    def belongs_to(self, method: str) -> bool:
        return not self.methods or method in self.methods

    def describe(self, name: str) -> str:
        """The parameter's entry in the docstring."""
        some = 0 < len(self.methods) < len(METHODS)
        doc = f"{self.doc} (Only {', '.join(self.methods)}.)" if some else self.doc
        text = textwrap.indent(textwrap.fill(doc, WIDTH), " " * 8)
        return f"{name} : {_describe_type(self.hint)}, default {self.default!r}\n{text}"


@cache
def setting_parameters() -> dict[str, Parameter]:
    """All settings that the estimator takes, by name."""
    found: dict[str, Parameter] = {}
    kinds: list[tuple[str, type]] = [("", kind) for kind in SECTIONS.values()]
    for method, kind in [*kinds, *((method, settings_type(method)) for method in METHODS)]:
        docs, hints = field_docs(kind), field_types(kind)
        for field in dataclasses.fields(kind):
            name = field.name
            if name in EXCLUDED:
                continue
            methods = (*(found[name].methods if name in found else ()), *([method] if method else []))
            hint = hints[name] | None if name in AUTOMATIC else hints[name]
            doc = f"{docs.get(name, '')} {AUTOMATIC.get(name, '')}".strip()
            found[name] = Parameter(ESTIMATOR_PRESET.get(name, field.default), hint, doc, methods)
    return found


def automatic_settings(samples: int, batch_size: Any, net: str) -> dict[str, Any]:
    """The values of `AUTOMATIC` settings for a task with this number of samples."""
    size = batch_size if isinstance(batch_size, int) else ESTIMATOR_PRESET["batch_size"]
    rate, phantoms = (0.02, 8) if net == "mlp" else (0.1, 0)
    return {"epochs": epochs_for(samples, size), "learning_rate": rate, "phantom_classes": phantoms}


def epochs_for(samples: int, batch_size: int) -> int:
    """Epochs that make about `STEPS` steps: few samples need more of them, many need not all be seen so often."""
    return min(max(STEPS // max(1, math.ceil(samples / max(1, batch_size))), MIN_EPOCHS), MAX_EPOCHS)


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
