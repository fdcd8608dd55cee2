"""How a task is trained, and on what hardware."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt

from spacenet.config.settings import Settings
from spacenet.errors import SettingsError

STEPS, MIN_EPOCHS, MAX_EPOCHS = 600, 4, 100
"""Of a task, unless the number of epochs is given."""
DEFAULT_RATE = 0.01
WARM_UP, FIRST_RATE = 0.2, 0.04
"""The part of a task's epochs in which a one-cycle learning rate rises, and its least fraction there."""
EVERY_TASK = 100
"""With up to this many tasks, all are evaluated after each."""


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """How a task is trained, and on what hardware."""

    epochs: Annotated[int, Ge(1)] | None = None
    """Passes over the task's data. Default: enough for about 600 steps, 4 to 100."""
    first_epochs: Annotated[int, Ge(1)] | None = None
    """Passes over the first task's data, if they differ from the other tasks'."""
    batch_size: Annotated[int, Ge(1), Le(1_000_000_000)] = 128
    """Samples per step."""
    learning_rate: Annotated[float, Gt(0), Le(1000)] | None = None
    """Learning rate. Default: 0.1 in this package's networks for images, otherwise 0.05. With SGD, SpaceNet multiplies
    it by a hundredth of a task's classes if there are more than 100."""
    schedule: Literal["constant", "cosine", "one-cycle"] = "constant"
    """Learning rate schedule within a task, epoch by epoch: constant; cosine, half a cosine wave down to 0; one-cycle,
    up from a small one during the first fifth of the epochs, then half a cosine wave down."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """Optimizer."""
    momentum: Annotated[float, Ge(0), Lt(1)] = 0.0
    """Momentum of SGD."""
    nesterov: bool = False
    """Use Nesterov's form of momentum."""
    weight_decay: Annotated[float, Ge(0), Le(1000)] = 0.0
    """L2 penalty on the weights that the task may change."""
    augment: Literal["none", "crop-flip"] = "none"
    """Augmentation of images: random crops with a padding of 4 pixels, and random horizontal flips."""
    bn_recalibration_epochs: Annotated[int, Ge(0)] = 1
    """Passes over the data after a task's last epoch that only recompute the running statistics of batch norm."""
    evaluate_every: Annotated[int, Ge(1)] | None = None
    """Evaluate on the test data of all tasks only after every so many tasks, and after the last one. After the others,
    only the accuracy on the task just learned is measured. By default after every task; in streams of more than 100,
    so rarely that evaluation takes time in proportion to the number of tasks."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device; auto uses a GPU if there is one."""
    precision: Literal["32", "bf16"] = "32"
    """Precision of training; weights and predictions are always 32-bit."""
    devices: Annotated[int, Ge(1), Le(1024)] = 1
    """Processes that share every batch, each with its own GPU or on the CPU (needs the extra "distributed")."""
    threads: Annotated[int, Ge(1), Le(1024)] = 1
    """CPU threads of one run. More than one may change the last bits of a result."""

    def validate(self) -> None:
        if self.nesterov and not self.momentum:
            raise SettingsError("it needs a momentum above 0", setting="nesterov")
        if self.devices > self.batch_size:
            raise SettingsError(
                f"{self.devices} processes cannot share batches of {self.batch_size} samples", setting="devices"
            )

    def evaluates_after(self, task: int, tasks: int) -> bool:
        """Whether all test data is evaluated after the task with this index."""
        # Test samples and, where it grows, the network are in proportion to the tasks so far: an evaluation takes time
        # in proportion to their square.
        every = self.evaluate_every or math.ceil((tasks / EVERY_TASK) ** 2)
        return (task + 1) % every == 0 or task == tasks - 1

    def epochs_of(self, task: int, samples: int) -> int:
        """Epochs of the task with this index and number of samples."""
        if task == 0 and self.first_epochs is not None:
            return self.first_epochs
        return self.epochs or epochs_for(samples, self.batch_size)

    @property
    def initial_rate(self) -> float:
        """The learning rate; that of an unknown network if none is given."""
        return DEFAULT_RATE if self.learning_rate is None else self.learning_rate

    def rate(self, epoch: int, epochs: int) -> float:
        """The learning rate of an epoch of `epochs`."""
        if self.schedule == "constant":
            return self.initial_rate
        if self.schedule == "cosine":
            return self.initial_rate * _cosine(epoch / epochs)
        progress = (epoch + 0.5) / epochs  # the middle of the epoch, so that the first rate is above 0
        if progress < WARM_UP:
            return self.initial_rate * max(FIRST_RATE, progress / WARM_UP)
        return self.initial_rate * _cosine((progress - WARM_UP) / (1 - WARM_UP))


def _cosine(progress: float) -> float:
    """From 1 down to 0."""
    return (1 + math.cos(math.pi * progress)) / 2


def epochs_for(samples: int, batch_size: int) -> int:
    """Epochs that make about `STEPS` steps: few samples need more of them, many need not all be seen so often."""
    return min(max(STEPS // max(1, math.ceil(samples / batch_size)), MIN_EPOCHS), MAX_EPOCHS)
