"""Attributes that belong to a method's state: declared once, then saved, restored and reset by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spacenet.space.blueprint import CPU
from spacenet.utils.tensors import in_section, section


@dataclass(frozen=True)
class _Kept:
    """What `kept` declares."""

    name: str
    create: Callable[[], Any] | None
    on_cpu: bool


def kept(name: str, create: Callable[[], Any] | None = None, *, on_cpu: bool = False) -> Any:
    """Declare, in a method's class, an attribute that belongs to its state, with its name there.

    It may be a tensor, an integer, a dictionary of tensors, a list with one such dictionary per task learned, or an
    object with `tensors()` and `load(tensors)`. `create` gives the initial value; without it, `setup` creates one. What
    begins with "task/" is in the state only while a task is being learned, and gets its initial value back when the
    task ends. What is not `on_cpu` is restored to the method's device.
    """
    return _Kept(name, create, on_cpu)


class Keeper:
    """The base of a class that declares attributes with `kept`."""

    device: torch.device

    @classmethod
    def declared(cls) -> dict[str, _Kept]:
        """What the class and its bases declare, by attribute."""
        found = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
        return {name: value for name, value in found.items() if isinstance(value, _Kept)}

    @classmethod
    def unchecked_names(cls) -> tuple[str, ...]:
        """The names that classes declare which have no `check_state` of their own, each with a slash."""
        classes = [vars(base) for base in cls.__mro__ if "check_state" not in vars(base)]
        names = [each.name for own in classes for each in own.values() if isinstance(each, _Kept)]
        return tuple(f"{name}/" for name in names if not name.startswith("task/"))

    def initialize_kept(self, prefix: str = "") -> None:
        """Give what is kept under names with this prefix its initial value."""
        for attribute, each in self.declared().items():
            if each.create is not None and each.name.startswith(prefix):
                setattr(self, attribute, each.create())

    def kept_tensors(self, without: str | None = None) -> dict[str, Tensor]:
        """Everything that is kept, by name, apart from names with this prefix."""
        state: dict[str, Tensor] = {}
        for attribute, each in self.declared().items():
            if without is None or not each.name.startswith(without):
                state |= _to_tensors(each.name, getattr(self, attribute))
        return state

    def load_kept(self, state: Mapping[str, Tensor], tasks: int) -> None:
        """Restore what `kept_tensors` returned after this number of tasks."""
        self.initialize_kept()
        for attribute, each in self.declared().items():
            setattr(self, attribute, self._restore(getattr(self, attribute), each, state, tasks))

    def _restore(self, old: Any, each: _Kept, state: Mapping[str, Tensor], tasks: int) -> Any:
        """The new value of an attribute; a tensor or number that is not in the state keeps its old one."""
        device = CPU if each.on_cpu else self.device
        copies = {key: t.to(device, copy=True) for key, t in state.items() if f"{key}/".startswith(f"{each.name}/")}
        if isinstance(old, Tensor):
            return copies.get(each.name, old)
        if isinstance(old, int):
            return type(old)(int(copies.get(each.name, old)))
        if isinstance(old, list):
            return [section(copies, f"{each.name}/{task}") for task in range(tasks)]
        if isinstance(old, dict):
            return section(copies, each.name)
        old.load(section(copies, each.name))
        return old


def _to_tensors(name: str, value: Any) -> dict[str, Tensor]:
    """The value of a declared attribute as part of a state; an empty tensor is left out."""
    if isinstance(value, Tensor):
        return {name: value} if value.numel() else {}
    if isinstance(value, int):
        return {name: torch.tensor(int(value))}
    if isinstance(value, list):
        return {key: t for task, own in enumerate(value) for key, t in in_section(f"{name}/{task}", own).items()}
    return in_section(name, value if isinstance(value, dict) else value.tensors())
