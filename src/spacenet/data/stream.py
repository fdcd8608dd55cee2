"""A stream: a data set split into tasks that are learned one after another."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch

from spacenet.config.model import PreprocessingConfig
from spacenet.config.stream import CUSTOM, CUT, DEFAULT_CLASSES, DataConfig, StreamConfig
from spacenet.data.dataset import Dataset, check_constants
from spacenet.data.features import encode_dataset
from spacenet.data.kinds import source_name
from spacenet.data.memory import normalize, take_rows, thin
from spacenet.data.preprocessing import CONSTANTS, Array, Normalization, resolve_preprocessing
from spacenet.data.sources import data_settings, read_dataset
from spacenet.data.stream_views import describe_stream, stream_to_html
from spacenet.data.task import (
    Samples,
    SampleSource,
    Task,
    TaskLabels,
    check_tasks,
    format_tasks,
    rows_of,
    split_classes,
)
from spacenet.data.user_data import ItemSource, dataset_from_arrays, dataset_from_items, dataset_from_memory
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.loading import encoder_name, load_encoder
from spacenet.errors import DataError, SettingsError
from spacenet.registry import STREAMS

__all__ = ["SampleSource", "Samples", "Stream", "Task"]

Tasks = str | Sequence[Sequence[object]] | None
"""The labels of each task: as text "0,1/2,3", or as sequences; None for an equal number in each."""


class Stream(Sequence[Task]):
    """A sequence of tasks, learned one after another. Index it, slice it, take its length.

    Use `spacenet.stream` for a stream that is known by name, and `from_arrays`, `from_folder` or `from_dataset` for
    your own data. The samples of a task are normalized when they are first used.

    Parameters
    ----------
    name : str
        The name of the stream.
    dataset : Dataset
        Training and test data of all classes.
    task_labels : tuple of tuples
        For each task the labels of its classes. Classes that are not listed are left out.
    config : StreamConfig, optional
        How the stream was made from its data set; for data in memory only its name.
    preprocessing : PreprocessingConfig, optional
        What is done to raw inputs.

    Attributes
    ----------
    labels : tuple
        The labels of all classes in the order in which they are learned.

    Examples
    --------
    >>> import spacenet
    >>> stream = spacenet.stream("split-digits")
    >>> len(stream), stream[1].labels, stream[1].train.x.shape
    (5, (2, 3), torch.Size([289, 8, 8]))
    >>> stream[:2]
    Stream('split-digits': 2 tasks, 4 classes, 578 training and 142 test samples of shape 8×8)
    """

    def __init__(
        self,
        name: str,
        dataset: Dataset,
        task_labels: TaskLabels,
        *,
        config: StreamConfig | None = None,
        preprocessing: PreprocessingConfig | None = None,
    ) -> None:
        self.name, self.dataset, self.task_labels = name, dataset, task_labels
        self.config = config or StreamConfig(name=name)
        self.preprocessing = preprocessing or PreprocessingConfig()
        self.labels = tuple(label for task in task_labels for label in task)
        check_tasks(dataset, task_labels)
        for setting in ("mean", "std"):
            problem = check_constants(getattr(self.preprocessing, setting), self.input_shape)
            if problem:
                raise SettingsError(problem, setting=setting)

    @classmethod
    def from_data(
        cls,
        source: Any,
        *,
        test: Any = None,
        classes_per_task: int | None = None,
        first_classes: int | None = None,
        tasks: Tasks = None,
        shuffle_classes: int | None = None,
        name: str | None = None,
        progress: bool = False,
        **reading: Any,
    ) -> "Stream":
        """Make a stream from data of any kind; the command line reads files in the same way.

        Parameters
        ----------
        source : path, data frame, tuple of arrays, or data set
            A file (.npz, .npy, .csv, .parquet), a folder with one sub-folder per class, a data frame, the arrays
            (x, y) or (x, y, x_test, y_test), or a `torch.utils.data.Dataset`.
        test : the same, optional
            Test data. Without it, a part of each class is held out from the training data.
        classes_per_task, first_classes, tasks, shuffle_classes
            As in `from_arrays`.
        name : str, optional
            A name for the stream; by default that of the file or folder, else "custom".
        progress : bool, default False
            Show how far reading is.
        **reading
            How it is read: ``label`` (the column of a table that has the labels, by name or number), ``drop`` (columns
            to leave out), ``header`` (whether the first line of a CSV file names the columns), ``image_size``,
            ``test_fraction`` and ``split_seed``; see `spacenet.config.stream.DataConfig`.

        Returns
        -------
        Stream

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from spacenet import Stream
        >>> table = Path(tempfile.mkdtemp()) / "flowers.csv"
        >>> rows = [f"{n % 7},{n % 5},{'rose' if n % 2 else 'iris'}" for n in range(40)]
        >>> _ = table.write_text("\\n".join(["length,width,species", *rows]))
        >>> Stream.from_data(table, label="species", classes_per_task=1)
        Stream('flowers': 2 tasks, 2 classes, 32 training and 8 test samples of shape 2)
        """
        cut = (classes_per_task, first_classes, tasks, shuffle_classes)
        if not isinstance(source, str | Path):
            config = DataConfig(**data_settings(reading))
            return cls._from_user_data(dataset_from_memory(name or CUSTOM, source, test, config), *cut)
        path = Path(source).expanduser().resolve()
        known = StreamConfig(name=name or source_name(path), data=path, **data_settings({**reading, "test": test}))
        return cls._from_user_data(read_dataset(known, progress), *cut, source=known)

    @classmethod
    def from_arrays(
        cls,
        x: Any,
        y: Any,
        x_test: Any = None,
        y_test: Any = None,
        *,
        classes_per_task: int = 2,
        first_classes: int | None = None,
        tasks: Tasks = None,
        shuffle_classes: int | None = None,
        test_fraction: float | None = None,
        split_seed: int | None = None,
        name: str = CUSTOM,
    ) -> "Stream":
        """Make a stream from arrays.

        Parameters
        ----------
        x : array-like of shape (n, …)
            Training inputs: a numpy array, a tensor, a data frame or nested lists. Bytes (uint8) are taken as pixels
            from 0 to 255, other numbers as they are. Images are (n, h, w) or (n, channels, h, w); those of the shape
            (n, h, w, channels) are turned.
        y : array-like of shape (n,)
            The label of each sample: integers or strings.
        x_test, y_test : array-like, optional
            Test data. Without it, a part of each class is held out from the training data.
        classes_per_task : int, default 2
            Classes of each task, in sorted order; the last task may get fewer.
        first_classes : int, optional
            Classes of the first task, if it has more or fewer than the others.
        tasks : str or sequence of sequences, optional
            The labels of each task, as "0,1/2,3" or ((0, 1), (2, 3)). Classes that are not listed are left out.
        shuffle_classes : int, optional
            Shuffle the order of the classes with this seed, by ``numpy.random.RandomState(seed).permutation``.
        test_fraction : float, optional
            The part of each class that is held out when there is no test data; by default 0.2.
        split_seed : int, optional
            Which samples are held out follows from this seed; by default 0.
        name : str, default "custom"
            A name for the stream.

        Returns
        -------
        Stream

        Examples
        --------
        >>> import numpy as np
        >>> from spacenet import Stream
        >>> x, y = np.random.default_rng(0).normal(size=(200, 8)), np.repeat(["a", "b", "c", "d"], 50)
        >>> Stream.from_arrays(x, y)
        Stream('custom': 2 tasks, 4 classes, 160 training and 40 test samples of shape 8)
        >>> [task.labels for task in Stream.from_arrays(x, y, tasks=[["d"], ["a", "b", "c"]])]
        [('d',), ('a', 'b', 'c')]
        """
        dataset = dataset_from_arrays(name, x, y, x_test, y_test, test_fraction, split_seed)
        return cls._from_user_data(dataset, classes_per_task, first_classes, tasks, shuffle_classes)

    @classmethod
    def from_folder(
        cls,
        path: str | Path,
        *,
        test: str | Path | None = None,
        image_size: int | tuple[int, int] | None = None,
        classes_per_task: int = 2,
        first_classes: int | None = None,
        tasks: Tasks = None,
        shuffle_classes: int | None = None,
        test_fraction: float | None = None,
        split_seed: int | None = None,
        name: str | None = None,
    ) -> "Stream":
        """Make a stream from a folder of images with one sub-folder per class.

        Images (png, jpg, bmp, webp) are read with Pillow, sorted by name. They become grayscale samples (h, w) if all
        of them are grayscale, else RGB samples (3, h, w).

        Parameters
        ----------
        path : str or Path
            A folder with one sub-folder per class, or with two folders `train` and `test` that have them.
        test : str or Path, optional
            A second folder, with the test data.
        image_size : int or (int, int), optional
            Resize images to this height and width; without it, all images must have the same size.
        classes_per_task, first_classes, tasks, shuffle_classes, test_fraction, split_seed
            As in `from_arrays`; labels are the names of the folders.
        name : str, optional
            A name for the stream; by default the name of the folder.

        Returns
        -------
        Stream

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from spacenet import Stream
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for label in ("bird", "cat", "dog"):
        ...         (Path(folder) / label).mkdir()
        ...         for number in range(5):
        ...             Image.new("RGB", (48, 40)).save(Path(folder) / label / f"{number}.png")
        ...     Stream.from_folder(folder, image_size=32, classes_per_task=1, name="pets")
        Stream('pets': 3 tasks, 3 classes, 12 training and 3 test samples of shape 3×32×32)
        """
        if not Path(path).expanduser().is_dir():
            raise DataError(f"{path}: no such folder")
        return cls.from_data(
            path,
            test=test,
            image_size=image_size,
            classes_per_task=classes_per_task,
            first_classes=first_classes,
            tasks=tasks,
            shuffle_classes=shuffle_classes,
            test_fraction=test_fraction,
            split_seed=split_seed,
            name=name,
        )

    @classmethod
    def from_dataset(
        cls,
        dataset: ItemSource,
        *,
        test: ItemSource | None = None,
        classes_per_task: int = 2,
        first_classes: int | None = None,
        tasks: Tasks = None,
        shuffle_classes: int | None = None,
        test_fraction: float | None = None,
        split_seed: int | None = None,
        name: str = CUSTOM,
    ) -> "Stream":
        """Make a stream from anything with a length and items (x, y), such as a `torch.utils.data.Dataset`.

        Parameters
        ----------
        dataset : torch.utils.data.Dataset or sequence
            Training data. All inputs must have the same shape; they are read into memory.
        test : torch.utils.data.Dataset or sequence, optional
            Test data. Without it, a part of each class is held out from the training data.
        classes_per_task, first_classes, tasks, shuffle_classes, test_fraction, split_seed, name
            As in `from_arrays`.

        Returns
        -------
        Stream

        Examples
        --------
        >>> import torch
        >>> from spacenet import Stream
        >>> data = torch.utils.data.TensorDataset(torch.rand(40, 3, 8, 8), torch.arange(40) % 4)
        >>> Stream.from_dataset(data)
        Stream('custom': 2 tasks, 4 classes, 32 training and 8 test samples of shape 3×8×8)
        """
        stacked = dataset_from_items(name, dataset, test, test_fraction, split_seed)
        return cls._from_user_data(stacked, classes_per_task, first_classes, tasks, shuffle_classes)

    @classmethod
    def _from_user_data(
        cls,
        dataset: Dataset,
        classes_per_task: int | None,
        first_classes: int | None,
        tasks: Tasks,
        shuffle_classes: int | None,
        source: StreamConfig | None = None,
    ) -> "Stream":
        """`source` says where the data can be read again, if it was read from a file."""
        name = dataset.name
        if name in STREAMS:
            raise SettingsError(f"{name!r} is the name of another stream; choose a different one", setting="name")
        as_text = tasks if tasks is None or isinstance(tasks, str) else ""
        size = classes_per_task if tasks is None else None
        cut: dict[str, Any] = {
            "classes_per_task": size,
            "first_classes": first_classes,
            "shuffle_classes": shuffle_classes,
        }
        config = StreamConfig(name=name, tasks=as_text, **cut)
        if tasks is None or isinstance(tasks, str):
            labels = split_classes(dataset.labels, config, classes_per_task or DEFAULT_CLASSES)
        else:
            plain = {label: label for label in dataset.labels}  # numpy's numbers become Python's
            labels = tuple(tuple(plain.get(label, label) for label in task) for task in tasks)
        if source is not None:
            texts = as_text or (None if tasks is None else format_tasks(labels))
            source = dataclasses.replace(source, tasks=texts, **cut)
        return cls(name, dataset, labels, config=source)

    def with_preprocessing(self, preprocessing: PreprocessingConfig) -> "Stream":
        """The same data with another normalization.

        Parameters
        ----------
        preprocessing : PreprocessingConfig
            Values that are None follow from the data set and from the first task.

        Returns
        -------
        Stream

        Examples
        --------
        >>> import spacenet
        >>> from spacenet.config.model import PreprocessingConfig
        >>> preprocessing = PreprocessingConfig(mean=0.0, std=1.0, centering=0.0)
        >>> spacenet.stream("split-digits").with_preprocessing(preprocessing)[0].train.x.max()
        tensor(1.)
        """
        encoded = self.with_encoder(preprocessing.encoder) if preprocessing.encoder else self
        return encoded._with(preprocessing=preprocessing)

    def with_encoder(
        self, encoder: "str | Encoder | Callable[[torch.Tensor], torch.Tensor]", progress: bool = False
    ) -> "Stream":
        """The same stream with features of its samples in place of the samples.

        Parameters
        ----------
        encoder : str, Encoder or torch.nn.Module
            A frozen pretrained network: "efficientnet-lite0", "timm:NAME", "torchvision:NAME", a file, or a module.
        progress : bool, default False
            Show how far it is.

        Returns
        -------
        Stream

        Examples
        --------
        >>> import torch, spacenet
        >>> def brightness(images):
        ...     return images.mean((2, 3))
        >>> spacenet.stream("split-digits")[:2].with_encoder(brightness)
        Stream('split-digits': 2 tasks, 4 classes, 578 training and 142 test samples of shape 3)
        """
        name = encoder_name(encoder)
        assert name is not None
        dataset = encode_dataset(self.dataset, load_encoder(name), progress)
        preprocessing = dataclasses.replace(self.preprocessing, encoder=name)
        return self if dataset is self.dataset else self._with(dataset=dataset, preprocessing=preprocessing)

    def with_validation(self, fraction: float) -> "Stream":
        """The same stream with this fraction of the training data held out in place of the test set."""
        config = dataclasses.replace(self.config, validation=fraction)
        return self._with(dataset=self.dataset.hold_out(fraction), config=config)

    def _with(self, **changes: Any) -> "Stream":
        now = {key: getattr(self, key) for key in ("name", "dataset", "task_labels", "config", "preprocessing")}
        return Stream(**(now | changes))

    def __len__(self) -> int:
        return len(self.task_labels)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> "Stream": ...
    def __getitem__(self, index: int | slice) -> "Task | Stream":
        if isinstance(index, slice):
            chosen, config = self.task_labels[index], self.config
            if config.name in STREAMS or config.data is not None:  # so that it can be made again from its configuration
                cut: dict[str, Any] = {**dict.fromkeys(CUT), "tasks": format_tasks(chosen)}
                config = dataclasses.replace(config, **cut)
            return self._with(task_labels=chosen, config=config)
        index = range(len(self))[index]
        first, labels = sum(map(len, self.task_labels[:index])), self.task_labels[index]
        return Task(index, labels, range(first, first + len(labels)), self)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return tuple(self.dataset.x_train.shape[1:])

    def samples(self, task: Task, *, train: bool) -> Samples:
        """The samples of a task, normalized."""
        x, y = (self.dataset.x_train, self.dataset.y_train) if train else (self.dataset.x_test, self.dataset.y_test)
        rows = rows_of(y, task.labels)
        sorted_labels, places = np.unique(y[rows], return_inverse=True)
        numbers = dict(zip(task.labels, task.classes, strict=True))
        of_sorted = torch.tensor([numbers[label] for label in sorted_labels.tolist()], dtype=torch.long)
        classes = of_sorted[torch.from_numpy(places.reshape(-1))]
        return Samples(normalize(self.normalization, take_rows(x, rows)), classes, value_bytes=x.dtype.itemsize)

    def raw_test_sample(self, task: Task, position: int) -> tuple[int, Array]:
        """The test sample at this position among those of a task: its row in the data set, and its raw values."""
        row = int(rows_of(self.dataset.y_test, task.labels)[position])
        return row, np.asarray(self.dataset.x_test[row])

    @property
    def resolved_preprocessing(self) -> PreprocessingConfig:
        """The preprocessing with what the data set says in place of None."""
        known = {key: getattr(self.dataset, key) for key in CONSTANTS}
        return resolve_preprocessing(self.preprocessing, self.dataset.x_train, known)

    @cached_property
    def normalization(self) -> Normalization:
        """What is done to the inputs of all tasks, fitted on the training data of the first one."""
        rows = rows_of(self.dataset.y_train, self.task_labels[0])
        return Normalization.fit(thin(take_rows(self.dataset.x_train, rows)), self.resolved_preprocessing)

    def __repr__(self) -> str:
        return describe_stream(self)

    def _repr_html_(self) -> str:
        return stream_to_html(self)
