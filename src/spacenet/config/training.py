"""How a task is trained, and on what."""

import math
from dataclasses import dataclass
from typing import Literal

from spacenet.errors import SettingsError
from spacenet.option_types import OptionalInt


@dataclass(frozen=True)
class TrainingSettings:
    """How a task is trained, and on what."""

    epochs: int = 4
    """Passes over the task's data."""
    first_epochs: OptionalInt = None
    """Passes over the first task's data, where it is to be learned for another time than the others."""
    batch_size: int = 128
    """Samples per step."""
    learning_rate: float = 0.01
    """Step size."""
    schedule: Literal["constant", "cosine"] = "constant"
    """How the step size goes on within a task: the same in all epochs, or from epoch to epoch down to 0 as half a
    cosine wave."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """The optimiser."""
    momentum: float = 0.0
    """Momentum of SGD."""
    weight_decay: float = 0.0
    """Decay of the weights that the task may change."""
    augment: Literal["none", "crop-flip"] = "none"
    """Vary images in every epoch: crop them at random out of a frame of 4 pixels, and flip them at random."""
    bn_recalibration_epochs: int = 1
    """Passes over the data after a task's last epoch in which only batch norm's statistics follow the final weights."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; auto takes a GPU if there is one."""
    precision: Literal["32", "bf16"] = "32"
    """Numbers that training computes with; weights and predictions are always 32 bits."""
    devices: int = 1
    """Processes that share every batch, each with its own GPU or on the CPU (needs the extra "distributed")."""
    threads: int = 1
    """Processor threads of one run. More may change the last bits of a result."""

    def __post_init__(self) -> None:
        for name in ("epochs", "first_epochs", "batch_size", "devices", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"{name.replace('_', '-')}: {value} is too small (need 1 or more)")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise SettingsError(f"learning-rate: {self.learning_rate} is not a step size (need more than 0)")
        if not 0 <= self.momentum < 1:
            raise SettingsError(f"momentum: {self.momentum} is out of range (need 0 ≤ momentum < 1)")
        if self.weight_decay < 0:
            raise SettingsError(f"weight-decay: {self.weight_decay} is negative")
        if self.bn_recalibration_epochs < 0:
            raise SettingsError(
                f"bn_recalibration_epochs: {self.bn_recalibration_epochs} is not a number of passes (need 0 or more)"
            )
        if self.devices > self.batch_size:
            raise SettingsError(f"devices: {self.devices} processes cannot share batches of {self.batch_size} samples")

    def epochs_of(self, task: int) -> int:
        """Passes over the data of the task of this number."""
        return self.first_epochs if task == 0 and self.first_epochs is not None else self.epochs

    def rate(self, epoch: int, epochs: int) -> float:
        """The step size of an epoch of so many."""
        part = 1.0 if self.schedule == "constant" else (1 + math.cos(math.pi * epoch / epochs)) / 2
        return self.learning_rate * part
