"""Adding units to the network: before given tasks, or whenever the next task does not fit."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spacenet.errors import SettingsError
from spacenet.registry import unknown
from spacenet.space.blueprint import Blueprint
from spacenet.space.ledger import Ledger

AUTO = "auto"
MOST_UNITS = 10_000_000
"""That are added to a layer before a task; no layer begins with more either."""
FORM = f"6:conv2=8,conv3=8 (before task 6, this many units to these layers; separate several tasks by /), or {AUTO}"


@dataclass(frozen=True)
class Plan:
    """When the network grows: by these units of each layer before these tasks, or automatically."""

    before: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    auto: bool = False

    @classmethod
    def parse(cls, text: str | None) -> "Plan":
        """Read the setting; it counts tasks from 1, a plan from 0."""
        if text is None or text == AUTO:
            return cls(auto=text == AUTO)
        before: dict[int, dict[str, int]] = {}
        try:
            for part in text.split("/"):
                task, layers = part.split(":")
                pairs = [layer.split("=") for layer in layers.split(",")]
                before[int(task) - 1] = {name.strip(): int(units) for name, units in pairs}
        except ValueError as error:
            raise SettingsError(f"{text!r} is not a plan; write {FORM}", setting="expand") from error
        if min(before) < 0 or any(units < 1 for layers in before.values() for units in layers.values()):
            raise SettingsError(f"{text!r} names a task or a number of units below 1", setting="expand")
        if any(units > MOST_UNITS for layers in before.values() for units in layers.values()):
            raise SettingsError(f"{text!r} adds more than {MOST_UNITS:,} units", setting="expand")
        return cls(before)

    def check_layers(self, blueprint: Blueprint) -> None:
        """Raise `SettingsError` if it names a layer that does not exist."""
        layers = [layer.name for layer in blueprint.hidden]
        for name in (name for wanted in self.before.values() for name in wanted):
            if name not in layers:
                raise unknown("layer", name, layers, setting="expand")

    def check_tasks(self, tasks: int) -> None:
        """Raise `SettingsError` if it names a task that a stream of this many does not have."""
        for task in self.before:
            if task >= tasks:
                raise SettingsError(f"task {task + 1} does not exist, the stream has {tasks}", setting="expand")

    def planned_sizes(self, ledger: Ledger, task: int) -> dict[str, int]:
        """The units of each hidden layer at this task, without those that were added because a task did not fit."""
        sizes = {layer.name: layer.size for layer in ledger.blueprint.hidden}
        for layers in (layers for before, layers in self.before.items() if before <= task):
            sizes |= {name: sizes[name] + units for name, units in layers.items()}
        return {name: min(size, ledger.size(name)) for name, size in sizes.items()}

    def carry_out(self, ledger: Ledger, task: int) -> None:
        """Add the units that the plan gives before a task."""
        for name, units in self.before.get(task, {}).items():
            ledger.grow(name, units)
