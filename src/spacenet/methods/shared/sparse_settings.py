"""The settings of methods that learn each task in a part of a sparse network."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from annotated_types import Ge, Le, Lt

from spacenet.config.model import MethodSettings
from spacenet.config.ranges import Choice, Uniform
from spacenet.config.settings import WIDE
from spacenet.errors import SettingsError
from spacenet.methods.shared.balance import Kind
from spacenet.space.expansion import Plan

EXPECTED_TASKS = 5
"""Tasks to expect where there is no stream."""
Rotations = Literal["none", "first", "all", "auto"]


@dataclass(frozen=True)
class SparseSettings(MethodSettings):
    """How much of the network a task may use."""

    expected_tasks: Annotated[int, Ge(1)] | None = None
    """Tasks to expect; default: as many as the stream has, 5 where there is no stream. The next three settings follow
    from it and the network's size, unless they are given."""
    selected: tuple[Annotated[int, Ge(0), Le(WIDE)], ...] = ()
    """Free units that a task selects in each hidden layer (0: all of them); one number applies to all layers."""
    reserved: tuple[Annotated[int, Ge(0), Le(WIDE)], ...] = ()
    """Selected units that a task reserves for itself in each hidden layer; one number applies to all layers."""
    connections: tuple[Annotated[float, Ge(0)], ...] = ()
    """Connections of a task in each layer, the classifier last; below 1, a fraction of all that the layer can hold.
    Where less than a fraction is left, the task takes what is left; with less than half of it the layer is full (the
    first layer only if units would have no connection)."""
    first_selected: tuple[Annotated[int, Ge(0), Le(WIDE)], ...] = ()
    """Units that the first task selects, if different from the other tasks."""
    first_reserved: tuple[Annotated[int, Ge(0), Le(WIDE)], ...] = ()
    """Units that the first task reserves, if different."""
    first_connections: tuple[Annotated[float, Ge(0)], ...] = ()
    """Connections of the first task, if different."""
    sized_for: tuple[Annotated[int, Ge(1)], ...] = ()
    """How many tasks, and classes of each, the sizes above are meant for; with more tasks to expect, each gets less.
    Default: the sizes are taken as they are."""
    unused_first: bool = False
    """Select the free units with the fewest incoming connections instead of random ones, so that tasks overlap less."""
    phantom_classes: Annotated[int, Ge(0), Uniform(0, 20, integer=True)] | None = None
    """Classes of other tasks that take part in the loss, as in the authors' code. They have no connections during the
    task: their score is 0. Default: none in this package's networks for images, otherwise 8."""
    phantom_scores: Literal["zero", "bias"] = "zero"
    """Scores of phantom classes: 0, or for classes of earlier tasks the bias that their output has learned, as in the
    authors' code. Then all earlier classes take part, even if they are more than `phantom_classes`."""
    label_smoothing: Annotated[float, Ge(0), Lt(1), Choice((0.0, 0.1, 0.2))] = 0.0
    """Part of every sample's probability that is distributed over all outputs. Keeps the scores of tasks comparable."""
    balance: Kind = "none"
    """Make the classifiers of different tasks comparable in prediction: by the norm of their weights, or by logits, the
    scores of the right classes on each task's own samples when it was learned."""
    rotations: Rotations = "none"
    """Learn square images in four orientations, with each class in each orientation as a class of its own: in the first
    task, or in all; auto is all for square images, otherwise none. Features become more general, and a step takes four
    times as long."""
    expand: str | None = None
    """Add units: 6:conv2=8,conv3=8 adds them to these layers before task 6, auto whenever a task does not fit."""
    masked_dense: bool = False
    """Train in the whole network with masks instead of a compact workspace: same result, slower. For comparison."""
    known_classes: Literal["update", "task"] = "update"
    """What more samples of known classes do. update: they join the statistics of their class (spacenet-density), or
    train the connections into the outputs of their task (spacenet, static-sparse); no space is used. task: they are
    learned as a new task, which takes space; so do methods that can update nothing."""

    def validate(self) -> None:
        super().validate()
        Plan.parse(self.expand)
        if len(self.sized_for) not in (0, 2):
            raise SettingsError("give the number of tasks and that of each one's classes", setting="sized_for")

    def for_tasks(self, tasks: int) -> Self:
        return self if self.expected_tasks is not None else replace(self, expected_tasks=tasks)


@dataclass(frozen=True)
class AdaptiveSettings(SparseSettings):
    """How much of the network a task may use, and how many of its connections are rewired."""

    rewire_fraction: Annotated[float, Ge(0), Le(1), Uniform(0.1, 0.7)] = 0.2
    """Fraction of the task's connections that is dropped and grown elsewhere after each epoch (the paper's r)."""
