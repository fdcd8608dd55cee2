"""Which stream of tasks is learned, and how it is cut; for data of one's own, how it is read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt

from spacenet.config.settings import Settings
from spacenet.errors import SettingsError

CUSTOM = "custom"
"""The name of a stream made from the user's own data, unless it is given another."""
DEFAULT_CLASSES = 2
"""Classes of each task of such a stream."""
MAX_SEED = 2**32 - 1
"""Of numpy.random.RandomState."""
CUT = ("classes_per_task", "first_classes", "tasks", "shuffle_classes")
"""Settings that say how classes are cut into tasks."""


@dataclass(frozen=True, kw_only=True)
class TableConfig(Settings):
    """Which columns of a table are inputs."""

    label: str | None = None
    """The column of a CSV or parquet file that has the labels, by its name or its number from 0 (-1: the last one); for
    an .npy file, a second one with the labels."""
    drop: str | None = None
    """Columns of a table to leave out, by name or number, separated by commas."""
    header: bool | None = None
    """Whether the first line of a CSV file names its columns (default: found from the first two lines)."""

    @property
    def dropped(self) -> list[str]:
        """The columns to leave out."""
        return [name.strip() for name in (self.drop or "").split(",") if name.strip()]


@dataclass(frozen=True, kw_only=True)
class DataConfig(TableConfig):
    """How labeled data of one's own is read, and what of it is for the test."""

    test: Path | None = None
    """A second file or folder, with the test data."""
    test_fraction: Annotated[float, Gt(0), Lt(1)] | None = None
    """Hold out this part of each class for the test."""
    split_seed: Annotated[int, Ge(0)] | None = None
    """Which samples are held out follows from this seed (default: 0)."""
    damaged: Literal["refuse", "skip"] | None = None
    """Image files that cannot be read: refuse the data (default), or skip and report them."""

    def validate(self) -> None:
        if self.test is not None and self.test_fraction is not None:
            raise SettingsError("goes with data that has no test part, and --test gives one", setting="test_fraction")


@dataclass(frozen=True)
class StreamConfig(DataConfig):
    """What the stream is made from and how it is cut into tasks."""

    name: str = "split-digits"
    """Name of the stream."""
    data: Path | None = None
    """Your own data: a file or a folder."""
    image_size: tuple[int, ...] | None = None
    """Resize images to this height and width in pixels, or one number for both."""
    classes_per_task: Annotated[int, Ge(1)] | None = None
    """Classes of each task (the last one may get fewer)."""
    first_classes: Annotated[int, Ge(1)] | None = None
    """Classes of the first task, if it has more or fewer than the others."""
    tasks: str | None = None
    """The classes of each task, e.g. 0,1/2,3,4/5; classes that are not listed are left out."""
    shuffle_classes: Annotated[int, Ge(0), Le(MAX_SEED)] | None = None
    """Shuffle the order of the classes with this seed before cutting, by numpy.random.RandomState(SEED).permutation;
    1993 gives the order that many papers have for CIFAR-100. Default: the order of the labels."""
    validation: Annotated[float, Ge(0), Lt(1)] = 0.0
    """Evaluate on this fraction of the training data, held out, instead of on the test set (to choose settings)."""
    data_dir: Path | None = None
    """Look for data sets here first (default: the environment variable SPACENET_DATA)."""

    def validate(self) -> None:
        super().validate()
        others = [setting for setting in CUT if setting != "tasks" and getattr(self, setting) is not None]
        if self.tasks is not None and others:
            raise SettingsError(
                f"lists the classes of every task; {' and '.join(others)} can not be given with it", setting="tasks"
            )
        if self.data is None:
            for setting in DATA_SETTINGS:
                if getattr(self, setting) is not None:
                    raise SettingsError(f"is for data of your own; {self.name} is known by name", setting=setting)


DATA_SETTINGS = ("data", "image_size", *DataConfig.__dataclass_fields__)
"""Settings of streams that are made from data of one's own."""
