"""Which stream of tasks is learned, and how it is cut."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Lt

from spacenet.config.settings import Settings
from spacenet.errors import SettingsError

CUSTOM = "custom"
"""The name of a stream made from the user's own data, unless it is given another."""


@dataclass(frozen=True)
class StreamConfig(Settings):
    """What the stream is made from and how it is cut into tasks."""

    name: str = "split-digits"
    """Name of the stream."""
    npz: Path | None = None
    """Your own data: an .npz file with x_train, y_train, x_test and y_test."""
    classes_per_task: Annotated[int, Ge(1)] | None = None
    """Classes of each task (the last one may get fewer)."""
    tasks: str | None = None
    """The classes of each task, e.g. 0,1/2,3,4/5; classes that are not listed are left out."""
    shuffle_classes: Annotated[int, Ge(0)] | None = None
    """Shuffle the order of the classes with this seed before cutting."""
    validation: Annotated[float, Ge(0), Lt(1)] = 0.0
    """Evaluate on this fraction of the training data, held out, instead of on the test set (to choose settings)."""
    data_dir: Path | None = None
    """Look for data sets here first (default: the environment variable SPACENET_DATA)."""

    def validate(self) -> None:
        if self.tasks is not None and (self.classes_per_task is not None or self.shuffle_classes is not None):
            raise SettingsError(
                "lists the classes of every task; classes_per_task and shuffle_classes do not go with it",
                setting="tasks",
            )
