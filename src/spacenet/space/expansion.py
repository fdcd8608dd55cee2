"""Adding units to a network that is full: before named tasks, or whenever the next task does not fit."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spacenet.errors import SettingsError
from spacenet.space.ledger import Ledger

AUTO = "auto"
FORM = f"6:conv2=8,conv3=8 (before task 6 so many units to these layers; several tasks with / between them), or {AUTO}"


@dataclass(frozen=True)
class Plan:
    """When the network grows: units for each layer by the task before which they come; or by itself."""

    before: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    auto: bool = False

    @classmethod
    def parse(cls, text: str | None) -> "Plan":
        """Read what the user wrote; tasks count from 1 there, from 0 here."""
        if text is None or text == AUTO:
            return cls(auto=text == AUTO)
        before: dict[int, dict[str, int]] = {}
        try:
            for part in text.split("/"):
                task, layers = part.split(":")
                pairs = [layer.split("=") for layer in layers.split(",")]
                before[int(task) - 1] = {name.strip(): int(units) for name, units in pairs}
        except ValueError as error:
            raise SettingsError(f"expand: {text!r} cannot be understood; write {FORM}") from error
        if min(before) < 0 or any(units < 1 for layers in before.values() for units in layers.values()):
            raise SettingsError(f"expand: {text!r} names a task or a number of units below 1")
        return cls(before)

    def check(self, ledger: Ledger, tasks: int) -> None:
        """Raise `SettingsError` if it names a layer or a task that is not there."""
        layers = [p.name for p in ledger.blueprint.hidden]
        for task, wanted in self.before.items():
            if task >= tasks:
                raise SettingsError(f"expand: there is no task {task + 1}, the stream has {tasks}")
            for name in wanted:
                if name not in layers:
                    raise SettingsError(f"expand: there is no layer {name!r}; there are {', '.join(layers)}")

    def carry_out(self, ledger: Ledger, task: int) -> None:
        """Add the units that are due before a task."""
        for name, units in self.before.get(task, {}).items():
            ledger.grow(name, units)
