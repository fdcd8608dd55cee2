"""How a task is trained, and on what hardware."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt

from spacenet.config.settings import Settings
from spacenet.errors import SettingsError


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """How a task is trained, and on what hardware."""

    epochs: Annotated[int, Ge(1)] = 4
    """Passes over the task's data."""
    first_epochs: Annotated[int, Ge(1)] | None = None
    """Passes over the first task's data, if they differ from the other tasks'."""
    batch_size: Annotated[int, Ge(1), Le(1_000_000_000)] = 128
    """Samples per step."""
    learning_rate: Annotated[float, Gt(0), Le(1000)] = 0.01
    """Learning rate. With SGD, SpaceNet multiplies it by a hundredth of a task's classes if there are more than 100."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Learning rate schedule within a task: constant, or half a cosine wave down to 0, epoch by epoch."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """Optimizer."""
    momentum: Annotated[float, Ge(0), Lt(1)] = 0.0
    """Momentum of SGD."""
    weight_decay: Annotated[float, Ge(0), Le(1000)] = 0.0
    """L2 penalty on the weights that the task may change."""
    augment: Literal["none", "crop-flip"] = "none"
    """Augmentation of images: random crops with a padding of 4 pixels, and random horizontal flips."""
    bn_recalibration_epochs: Annotated[int, Ge(0)] = 1
    """Passes over the data after a task's last epoch that only recompute the running statistics of batch norm."""
    evaluate_every: Annotated[int, Ge(1)] = 1
    """Evaluate on the test data of all tasks only after every so many tasks, and after the last one. After the others,
    only the accuracy on the task just learned is measured. With very many tasks, evaluation takes most of the time."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device; auto uses a GPU if there is one."""
    precision: Literal["32", "bf16"] = "32"
    """Precision of training; weights and predictions are always 32-bit."""
    devices: Annotated[int, Ge(1), Le(1024)] = 1
    """Processes that share every batch, each with its own GPU or on the CPU (needs the extra "distributed")."""
    threads: Annotated[int, Ge(1), Le(1024)] = 1
    """CPU threads of one run. More than one may change the last bits of a result."""

    def validate(self) -> None:
        if self.devices > self.batch_size:
            raise SettingsError(
                f"{self.devices} processes cannot share batches of {self.batch_size} samples", setting="devices"
            )

    def evaluates_after(self, task: int, tasks: int) -> bool:
        """Whether all test data is evaluated after the task with this index."""
        return (task + 1) % self.evaluate_every == 0 or task == tasks - 1

    def epochs_of(self, task: int) -> int:
        """Epochs of the task with this index."""
        return self.first_epochs if task == 0 and self.first_epochs is not None else self.epochs

    def rate(self, epoch: int, epochs: int) -> float:
        """The learning rate of an epoch of `epochs`."""
        factor = 1.0 if self.schedule == "constant" else (1 + math.cos(math.pi * epoch / epochs)) / 2
        return self.learning_rate * factor
