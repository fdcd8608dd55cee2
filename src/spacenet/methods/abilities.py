"""What a method can do in a model, which learns on, is edited, exported, and tells what is unknown.

By default nothing of this: a method overrides what it can do; elsewhere the error says why not, and what to do instead.
"""

from functools import cached_property
from typing import ClassVar

from torch import Tensor

from spacenet.config.training import TrainingConfig
from spacenet.data.stream import Samples
from spacenet.errors import SettingsError
from spacenet.space.allocation import LIMIT
from spacenet.space.ledger import Ledger
from spacenet.space.pack import Pack


class Abilities:
    """The defaults."""

    name: ClassVar[str]
    uses_weights: ClassVar[bool] = False
    """Whether samples may have weights of their own."""
    divides_network: ClassVar[bool] = False
    """Whether each task gets a part of one network, which `ledger` records."""

    @property
    def ledger(self) -> Ledger:
        """Whose the units and connections of the network are, for methods that divide it among tasks."""
        raise SettingsError(f"{self.name} does not divide a network among tasks")

    @property
    def needs_old_data(self) -> bool:
        """Whether learning another task requires the data of all earlier ones."""
        return False

    @property
    def can_update(self) -> bool:
        """Whether more samples of known classes can be added without a new task."""
        return False

    @property
    def why_no_update(self) -> str:
        """Why not, where they cannot."""
        return f"{self.name} cannot add samples to a class"

    @property
    def grows(self) -> bool:
        """Whether units are added where a task does not fit."""
        return False

    @property
    def relearns_known(self) -> bool:
        """Whether more samples of known classes are meant to be learned as a new task."""
        return False

    @property
    def chosen_settings(self) -> dict[str, float]:
        """The values of settings that are auto, where the method chose them from what it has learned."""
        return {}

    def update(self, samples: Samples, training: TrainingConfig) -> None:
        """Add more samples of known classes."""
        raise NotImplementedError(f"{self.name} cannot add samples to classes that it knows")

    def space_left(self, classes: int, most: int = LIMIT) -> int | None:
        """How many more tasks with this number of classes fit, at most `most`; None for methods that have no
        share of the network for each task, so that there is nothing to count."""
        return None

    def remove_classes(self, outputs: Tensor) -> None:
        """Remove these outputs and what else is kept of their classes alone. All that belongs to others keeps its
        bits."""
        raise SettingsError(
            f"{self.name} cannot remove a class: what it learned of one is in numbers that all classes share. Train a "
            "new model without the class; spacenet, spacenet-density and methods that only keep class statistics can "
            "remove one."
        )

    def compact(self) -> None:
        """Drop what no output reads."""
        raise SettingsError(f"{self.name} does not divide a network among tasks, so there is nothing to drop")

    @cached_property
    def predictor(self) -> Pack:
        """What predicts, as one function and its parameters, for methods where that is possible."""
        raise SettingsError(
            f"what {self.name} predicts with is not a plain network, so it cannot be written for other programs.",
            cli="spacenet serve MODEL answers over HTTP; --to mlflow keeps the model file as it is.",
            python="The service answers over HTTP; MLflow takes the model file as it is.",
        )

    @property
    def detector(self) -> Pack:
        """The function that computes `typicality`, for methods that keep class statistics."""
        raise SettingsError(f"{self.name} cannot tell unknown classes; choose spacenet-density", setting="unknown")

    @property
    def open_set_predictor(self) -> Pack:
        """The function that computes scores and typicality, for these methods."""
        return self.detector
