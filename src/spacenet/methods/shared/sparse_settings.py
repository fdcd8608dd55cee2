"""Settings of methods that give each task a part of a network of fixed size."""

from dataclasses import dataclass
from typing import Literal

from spacenet.errors import SettingsError
from spacenet.methods.base import MethodSettings
from spacenet.methods.shared.balance import Kind
from spacenet.option_types import Flag, Integers, Numbers, OptionalText
from spacenet.space.expansion import Plan


@dataclass(frozen=True)
class SparseSettings(MethodSettings):
    """How much of the network a task may use."""

    expected_tasks: int = 5
    """Tasks to expect; what a task may use follows from it and from the network, where the next three are not given."""
    selected: Integers = ()
    """Free units a task selects in each hidden layer (0: all of them); one number stands for all layers."""
    reserved: Integers = ()
    """Selected units that become the task's own in each hidden layer; one number stands for all layers."""
    connections: Numbers = ()
    """Connections a task gets in each layer, the classifier's last; below 1 a share of all the layer could hold.
    Where less than a share is left, the task takes what there is; with less than half of it the layer is full (the
    first layer only if units are left without any)."""
    first_selected: Integers = ()
    """Units that the first task selects, where it is to get another part of the space than the others."""
    first_reserved: Integers = ()
    """Units that the first task reserves, likewise."""
    first_connections: Numbers = ()
    """Connections that the first task gets, likewise."""
    unused_first: Flag = False
    """Whether a task gets the free units that the fewest connections enter, instead of any: tasks overlap later."""
    phantom_classes: int = 8
    """Outputs of other tasks in the loss. They have no connections during the task, so their score is 0."""
    label_smoothing: float = 0.0
    """Part of every sample's probability that is spread over all outputs: keeps scores of different tasks alike."""
    balance: Kind = "none"
    """Make the classifiers of different tasks speak alike in prediction: by the length of their weights, or by logits,
    the scores that the right classes of each task's own samples got when it was learned."""
    rotations: Literal["none", "first", "all"] = "none"
    """Learn square images in four positions, each class in each as a class of its own: in the first task, or in all.
    Features become more general, and a step takes four times as long."""
    expand: OptionalText = None
    """Add units: 6:conv2=8,conv3=8 before task 6 to these layers, or auto where the next task does not fit."""
    masked_dense: Flag = False
    """Train in the whole network behind masks instead of a compact workspace: same result, slower. For comparison."""

    def __post_init__(self) -> None:
        if self.expected_tasks < 1:
            raise SettingsError(f"expected-tasks: {self.expected_tasks} is not a number of tasks (need 1 or more)")
        if self.phantom_classes < 0:
            raise SettingsError(f"silent-outputs: {self.phantom_classes} is not a number of outputs (need 0 or more)")
        if not 0.0 <= self.label_smoothing < 1.0:
            raise SettingsError(f"label-smoothing: {self.label_smoothing} is not a part (need 0 ≤ it < 1)")
        Plan.parse(self.expand)


@dataclass(frozen=True)
class AdaptiveSettings(SparseSettings):
    """How much of the network a task may use, and how much its connections move."""

    rewire_fraction: float = 0.2
    """Part of the task's connections that is dropped and grown elsewhere after each epoch (the paper's r)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.rewire_fraction <= 1.0:
            raise SettingsError(f"rewire-fraction: {self.rewire_fraction} is not a part (need 0 to 1)")
