"""Settings of methods that give each task a part of a network of fixed size."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le, Lt

from spacenet.methods.base import MethodSettings
from spacenet.methods.shared.balance import Kind
from spacenet.space.expansion import Plan


@dataclass(frozen=True)
class SparseSettings(MethodSettings):
    """How much of the network a task may use."""

    expected_tasks: Annotated[int, Ge(1)] = 5
    """Tasks to expect. Where the next three settings are not given, they follow from it and the network's size."""
    selected: tuple[Annotated[int, Ge(0)], ...] = ()
    """Free units that a task selects in each hidden layer (0: all of them); one number applies to all layers."""
    reserved: tuple[Annotated[int, Ge(0)], ...] = ()
    """Selected units that a task reserves for itself in each hidden layer; one number applies to all layers."""
    connections: tuple[Annotated[float, Ge(0)], ...] = ()
    """Connections of a task in each layer, the classifier last; below 1, a fraction of all that the layer can hold.
    Where less than a fraction is left, the task takes what is left; with less than half of it the layer is full (the
    first layer only if units would have no connection)."""
    first_selected: tuple[Annotated[int, Ge(0)], ...] = ()
    """Units that the first task selects, if different from the other tasks."""
    first_reserved: tuple[Annotated[int, Ge(0)], ...] = ()
    """Units that the first task reserves, if different."""
    first_connections: tuple[Annotated[float, Ge(0)], ...] = ()
    """Connections of the first task, if different."""
    unused_first: bool = False
    """Select the free units with the fewest incoming connections instead of random ones, so that tasks overlap less."""
    phantom_classes: Annotated[int, Ge(0)] = 8
    """Classes of other tasks that take part in the loss. They have no connections during the task: their score is 0."""
    label_smoothing: Annotated[float, Ge(0), Lt(1)] = 0.0
    """Part of every sample's probability that is distributed over all outputs. Keeps the scores of tasks comparable."""
    balance: Kind = "none"
    """Make the classifiers of different tasks comparable in prediction: by the norm of their weights, or by logits, the
    scores of the right classes on each task's own samples when it was learned."""
    rotations: Literal["none", "first", "all"] = "none"
    """Learn square images in four orientations, with each class in each orientation as a class of its own: in the first
    task, or in all. Features become more general, and a step takes four times as long."""
    expand: str | None = None
    """Add units: 6:conv2=8,conv3=8 adds them to these layers before task 6, auto whenever a task does not fit."""
    masked_dense: bool = False
    """Train in the whole network with masks instead of a compact workspace: same result, slower. For comparison."""

    def validate(self) -> None:
        super().validate()
        Plan.parse(self.expand)


@dataclass(frozen=True)
class AdaptiveSettings(SparseSettings):
    """How much of the network a task may use, and how many of its connections are rewired."""

    rewire_fraction: Annotated[float, Ge(0), Le(1)] = 0.2
    """Fraction of the task's connections that is dropped and grown elsewhere after each epoch (the paper's r)."""
