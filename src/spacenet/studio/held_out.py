"""Examples that are set aside and never learned: how many of each class a model gets right, before and after a task.

They are in memory only, as the model sees them, and gone when the studio ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spacenet.data.preprocessing import Array
from spacenet.model.labels import Label
from spacenet.model.model import Model

MOST = 200
"""Of a class; later ones take the place of the first."""


HELD_OUT, FEWEST = 0.2, 5
"""The fraction of each class's examples that is set aside, at least one of so many or more."""


def choose_held_out(y: Array) -> Array:
    """Which examples to set aside, given their labels, as booleans."""
    held = np.zeros(len(y), bool)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        count = max(round(HELD_OUT * len(rows)), len(rows) >= FEWEST)
        held[np.random.default_rng(len(rows)).permutation(rows)[: min(count, len(rows) - 1)]] = True
    return held


@dataclass(frozen=True)
class Count:
    """Of so many examples, so many are right."""

    right: int
    of: int


Samples = dict[Label, Array]
Counts = dict[Label, Count]


class HeldOut:
    """The samples of each class, and what the model made of them after the last change and before it."""

    def __init__(self) -> None:
        self.samples: Samples = {}
        self.before: Counts = {}
        self.after: Counts = {}
        self._undo: tuple[Samples, Counts] | None = None

    def learned(self, x: Array, y: Sequence[Label], model: Model) -> None:
        """The model has learned a task, of which these samples were set aside."""
        self._keep()
        for label in dict.fromkeys(y):
            new = np.stack([each for each, own in zip(x, y, strict=True) if own == label])
            self.samples[label] = np.concatenate([self.samples[label], new] if label in self.samples else [new])[-MOST:]
        self.before, self.after = self.after, self._measure(model)

    def edited(self, action: str, labels: Sequence[Label], into: Label | None, model: Model) -> None:
        """Classes were renamed, merged or forgotten, or the last change was undone."""
        if action == "undo" and self._undo is not None:
            (self.samples, self.before), self._undo = self._undo, None
        elif action in ("rename", "merge") and into is not None:
            self._keep()
            parts = [self.samples.pop(label) for label in dict.fromkeys([*labels, into]) if label in self.samples]
            if parts:
                self.samples[into] = np.concatenate(parts)[-MOST:]
            known_before = [self.before.pop(label) for label in dict.fromkeys([*labels, into]) if label in self.before]
            if action == "rename" and known_before:
                self.before[into] = known_before[0]
        elif action == "forget":
            self._undo = None
        known = set(model.classes)
        self.samples = {label: x for label, x in self.samples.items() if label in known}
        self.before = {label: count for label, count in self.before.items() if label in known}
        self.after = self._measure(model)

    def counts(self) -> Mapping[Label, tuple[Count | None, Count | None]]:
        """For each class what was right before the last task and after it; None where it was not measured."""
        return {label: (self.before.get(label), self.after.get(label)) for label in self.samples}

    def _keep(self) -> None:
        self._undo = dict(self.samples), dict(self.before)

    def _measure(self, model: Model) -> Counts:
        if not self.samples:
            return {}
        found = model.predict(np.concatenate([*self.samples.values()]))
        counts, first = Counts(), 0
        for label, x in self.samples.items():
            counts[label] = Count(found[first : first + len(x)].count(label), len(x))
            first += len(x)
        return counts
