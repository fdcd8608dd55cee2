"""The places of classes in the matrices that predictions are computed with.

Products of matrices of another size are rounded differently. So that the scores of all other classes keep their bits
when a class is removed, the matrices stay as large as they were until the next task is learned. A place without a class
holds the numbers of another one, whose scores there are dropped. Of a removed class nothing is kept but its place, and
which units the network had.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor

from spacenet.space.blueprint import Params
from spacenet.space.pack import Pack
from spacenet.utils.tensors import in_section, section, take_tensors

MORE = 16
"""There may be as many places without a class as there are classes, and this many more."""
DEPTH = 1e5
"""By how much log-densities of places without a class are below all others."""
CLASSES, COUNTS, UNITS, PLACES = "classes", "counts", "units", "places"
WHAT = "the places of classes"


@dataclass
class Places:
    """Nothing, unless classes were removed since the last task was learned."""

    classes: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    """The class that has each place, or -1."""
    counts: tuple[int, ...] = ()
    """How many places each task has."""
    units: dict[str, Tensor] = field(default_factory=dict)
    """The units that were packed, by layer; or by task and layer, where tasks are packed apart."""

    def __bool__(self) -> bool:
        return len(self.classes) > 0

    def remove(self, gone: Tensor, tasks: Sequence[range], units: Mapping[str, Tensor]) -> "Places":
        """The places once classes are removed, given a mark for each. `tasks` and `units` are what there was before:
        what counts if nothing had been removed yet. Nothing if there would be too many places without a class."""
        before = self or Places(torch.arange(len(gone)), tuple(map(len, tasks)), dict(units))
        number = torch.where(gone, -1, (~gone).cumsum(0) - 1)
        held = before.classes
        classes = torch.where(held >= 0, number[held], -1)
        left = int((~gone).sum())
        return Places(classes, before.counts, before.units) if len(classes) <= 2 * left + MORE else Places()

    @property
    def tasks(self) -> list[range]:
        """The places of each task."""
        return [range(start, stop) for start, stop in pairwise(accumulate(self.counts, initial=0))]

    @property
    def kept(self) -> Tensor:
        """The place of each class."""
        return (self.classes >= 0).nonzero().flatten()

    @property
    def fill(self) -> Tensor:
        """The class whose numbers each place holds: its own, or the first that is left of its task or of all."""
        return torch.cat([self.fill_of(task) for task in range(len(self.counts))])

    def fill_of(self, task: int) -> Tensor:
        """The same for the places of a task."""
        here = self._of(task)
        left = here[here >= 0]
        return torch.where(here >= 0, here, left[0] if len(left) else 0)

    def kept_of(self, task: int) -> Tensor:
        """The place of each class of a task, counted from its first one."""
        return (self._of(task) >= 0).nonzero().flatten()

    def _of(self, task: int) -> Tensor:
        own = self.tasks[task]
        return self.classes[own.start : own.stop]

    def sink(self, scores: Tensor) -> Tensor:
        """Scores, (n, places), of which those without a class are so low that they add nothing to sums of
        probabilities."""
        low = scores.amin(1, keepdim=True) - DEPTH
        return torch.where((self.classes >= 0).to(scores.device), scores, low)

    def drop(self, pack: Pack, device: torch.device) -> Pack:
        """A function that returns the scores of classes, from one that returns a score for each place."""
        return drop_places(pack, self.kept, device)

    def tensors(self) -> dict[str, Tensor]:
        if not self:
            return {}
        held = {CLASSES: self.classes, COUNTS: torch.tensor(self.counts)} | in_section(UNITS, self.units)
        return {name: tensor.float() for name, tensor in held.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        held = {name: tensor.long() for name, tensor in tensors.items()}
        none = torch.zeros(0, dtype=torch.long)
        self.classes, self.counts = held.get(CLASSES, none), tuple(held.get(COUNTS, none).tolist())
        self.units = section(held, UNITS)

    @staticmethod
    def check(tensors: Mapping[str, Tensor], tasks: Sequence[range], layers: Mapping[str, int]) -> None:
        """Raise `ValueError` if `tensors` cannot have returned this for these classes of tasks. `layers` are the names
        that units may have, with the number of units that there are."""
        if not tensors:
            return
        classes, most = sum(map(len, tasks)), 2 * sum(map(len, tasks)) + MORE
        size = len(tensors[CLASSES]) if CLASSES in tensors and tensors[CLASSES].dim() else 0
        rest = take_tensors(tensors, {CLASSES: (size,)}, WHAT, least=-1, most=classes - 1)
        rest = take_tensors(rest, {COUNTS: (len(tasks),)}, WHAT, least=0, most=most)
        held, counts = tensors[CLASSES], tensors[COUNTS]
        found = Places(held.long(), tuple(counts.long().tolist()))
        right = classes < size <= most and _are_whole(held, counts) and sum(found.counts) == size
        right = right and torch.equal(found.classes[found.kept], torch.arange(classes))
        if not right or [int((held[own.start : own.stop] >= 0).sum()) for own in found.tasks] != [*map(len, tasks)]:
            raise ValueError(f"{WHAT} are not those of its tasks")
        for name, units in rest.items():
            exist = layers.get(name.removeprefix(f"{UNITS}/"), -1) if name.startswith(f"{UNITS}/") else -1
            take_tensors({name: units}, {name: (units.numel(),)}, WHAT, least=0, most=exist - 1)
            if not _are_whole(units) or bool((units.diff() <= 0).any()):
                raise ValueError(f"{WHAT}: units that are not in order")


def drop_places(pack: Pack, kept: Tensor, device: torch.device) -> Pack:
    """The same function without the scores of places that are not kept."""
    name = f"{PLACES}/kept"
    params = {**pack.params, name: kept.to(device)}

    def forward(params: Params, *inputs: Any) -> Tensor:
        found: Tensor = pack.forward({key: tensor for key, tensor in params.items() if key != name}, *inputs)
        return found.index_select(1, params[name])

    return Pack(forward, params, pack.units)


def take_places(state: Mapping[str, Tensor], tasks: Sequence[range], layers: Mapping[str, int]) -> dict[str, Tensor]:
    """The rest of what a method keeps, once its places are possible; otherwise `ValueError`, see `Places.check`."""
    Places.check(section(state, PLACES), tasks, layers)
    return {name: tensor for name, tensor in state.items() if not name.startswith(f"{PLACES}/")}


def _are_whole(*tensors: Tensor) -> bool:
    return all(torch.equal(tensor, tensor.trunc()) for tensor in tensors)
