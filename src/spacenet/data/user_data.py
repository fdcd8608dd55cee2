"""Data sets made from what is in memory already: arrays, data frames, and data sets of other libraries."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from spacenet.config.stream import DataConfig
from spacenet.data.checks import check_labels, check_samples, move_channels
from spacenet.data.dataset import Dataset
from spacenet.data.memory import allocate
from spacenet.data.preprocessing import Array
from spacenet.data.tables import choose_columns, missing_label, to_numbers
from spacenet.errors import DataError, SettingsError

DEFAULT_FRACTION = 0.2
"""The part of each class that is held out for the test, if there is no test data."""
SOURCES = "give a path, a data frame, arrays (x, y), or a data set with a length and items (x, y)"


class ItemSource(Protocol):
    """Anything with a length and items (x, y), such as a `torch.utils.data.Dataset`."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


def dataset_from_arrays(
    name: str,
    x: Any,
    y: Any,
    x_test: Any = None,
    y_test: Any = None,
    test_fraction: float | None = None,
    split_seed: int | None = None,
) -> Dataset:
    """The data set in these arrays. Bytes are taken as pixels (0 to 255), other numbers as they are.

    Without test data, a fraction of each class is held out.
    """
    if (x_test is None) != (y_test is None):
        raise DataError(f"{name}: x_test and y_test belong together; pass both or neither")
    x, y = to_samples(x, f"{name}: x"), to_labels(y, f"{name}: y")
    if x_test is None:
        fraction = DEFAULT_FRACTION if test_fraction is None else test_fraction
        if not 0 < fraction < 1:
            raise SettingsError(f"{fraction} is out of range (more than 0, less than 1)", setting="test_fraction")
        return make_dataset(name, x, y, x, y).hold_out(fraction, split_seed or 0)
    return make_dataset(name, x, y, to_samples(x_test, f"{name}: x_test"), to_labels(y_test, f"{name}: y_test"))


def dataset_from_memory(name: str, source: Any, test: Any, config: DataConfig) -> Dataset:
    """The data set in a data frame, in arrays (x, y) or (x, y, x_test, y_test), or in a data set of another library."""
    if is_frame(source):
        return dataset_from_frame(name, source, test, config)
    if config.label is not None:
        raise SettingsError(f"is for tables; {type(source).__name__} has no columns", setting="label")
    split = config.test_fraction, config.split_seed
    if isinstance(source, tuple | list) and len(source) in (2, 4) and hasattr(source[0], "shape"):
        x, y, x_test, y_test = (*source, *(test or (None, None)))[:4]
        return dataset_from_arrays(name, x, y, x_test, y_test, *split)
    if not (hasattr(source, "__len__") and hasattr(source, "__getitem__")):
        raise DataError(f"{name}: cannot make a stream from {type(source).__name__}; {SOURCES}")
    return dataset_from_items(name, source, test, *split)


def dataset_from_frame(name: str, frame: Any, test: Any, config: DataConfig) -> Dataset:
    """The data set in a data frame, one of whose columns has the labels."""
    x, y = _split_frame(frame, name, config)
    x_test, y_test = (None, None) if test is None else _split_frame(test, f"{name}: test", config)
    return dataset_from_arrays(name, x, y, x_test, y_test, config.test_fraction, config.split_seed)


def arrays_from_memory(name: str, source: Any, config: DataConfig) -> tuple[Array, Array]:
    """The samples and labels in a data frame, in arrays (x, y), or in a data set of another library."""
    x: Any
    y: Any
    if is_frame(source):
        x, y = _split_frame(source, name, config)
    elif isinstance(source, tuple | list) and len(source) == 2 and hasattr(source[0], "shape"):
        x, y = source
    elif hasattr(source, "__len__") and hasattr(source, "__getitem__"):
        x, y = _stack(source, name)
    else:
        raise DataError(f"{name}: {type(source).__name__} cannot be read; {SOURCES}")
    return to_samples(x, f"{name}: x"), to_labels(y, f"{name}: y")


def is_frame(source: Any) -> bool:
    """Whether this is a data frame of pandas or of a library like it."""
    return hasattr(source, "columns") and hasattr(source, "to_numpy")


def frame_inputs(source: Any, config: DataConfig) -> Sequence[str]:
    """The names of a data frame's inputs; none if this is no data frame."""
    if not is_frame(source):
        return ()
    names = [str(name) for name in source.columns]
    return choose_columns("data", names, len(names), config.label, config.dropped).input_names or ()


def _split_frame(frame: Any, where: str, config: DataConfig) -> tuple[Array, Any]:
    names = [str(name) for name in frame.columns]
    columns = choose_columns(where, names, len(names), config.label, config.dropped)
    if columns.label is None:
        raise missing_label(where, columns)
    series = [frame[name] for name in frame.columns]
    x = np.empty((len(frame), len(columns.inputs)), np.float32)
    for place, number in enumerate(columns.inputs):
        x[:, place] = to_numbers(series[number].to_numpy(), f"{where}, {columns.describe(number)}")
    labels = series[columns.label].to_numpy()
    missing = [row for row, label in enumerate(labels.tolist()) if label is None or label != label]
    if missing:
        found = f"{where}, row {missing[0]}, {columns.describe(columns.label)}"
        raise DataError(f"{found}: the label is missing; fill it in or remove the row")
    return x, labels


def dataset_from_items(
    name: str, source: ItemSource, test: ItemSource | None, test_fraction: float | None, split_seed: int | None = None
) -> Dataset:
    """The items (x, y) of a source, stacked into arrays."""
    x, y = _stack(source, name)
    x_test, y_test = (None, None) if test is None else _stack(test, f"{name}: test")
    return dataset_from_arrays(name, x, y, x_test, y_test, test_fraction, split_seed)


def to_samples(values: Any, where: str) -> Array:
    """Arrays, tensors, data frames and lists as an array of finite numbers."""
    x = _to_array(values, where)
    if x.dtype.kind == "O":  # columns of several types, or one array for each sample
        x = _to_array(x.tolist(), where)
    return move_channels(check_samples(x, where), where)


def to_labels(values: Any, where: str) -> Array:
    """One label per sample, as integers or strings; whole numbers that are stored as floats become integers."""
    # As objects first: numpy would turn a list of numbers and strings into strings.
    y = np.array(values, dtype=object) if isinstance(values, list | tuple) else _to_array(values, where)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    y = check_labels(y, where)
    if y.dtype.kind == "f":
        if not (y == np.floor(y)).all():
            raise DataError(f"{where} holds {y.dtype} labels; integers or strings are needed, e.g. y.astype(int)")
        y = y.astype(np.int64)
    return y


def _to_array(values: Any, where: str) -> Array:
    if hasattr(values, "detach"):  # a tensor, which may be on a GPU or part of a graph
        values = values.detach().cpu()
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError(f"{where} cannot be converted to an array ({error})") from error


def make_dataset(
    name: str, x_train: Array, y_train: Array, x_test: Array, y_test: Array, checksum: str = ""
) -> Dataset:
    """The data set of these arrays, if they go together; bytes get the scale of pixels."""
    are_bytes = x_train.dtype == np.uint8
    if are_bytes != (x_test.dtype == np.uint8):
        raise DataError(
            f"{name}: x_train holds {x_train.dtype} values and x_test {x_test.dtype}; bytes are scaled and others are "
            "not, so both must have the same type"
        )
    if (y_train.dtype.kind == "U") != (y_test.dtype.kind == "U"):
        raise DataError(f"{name}: y_train holds {y_train.dtype} labels and y_test {y_test.dtype}; use one type")
    return Dataset(name, x_train, y_train, x_test, y_test, scale=1 / 255 if are_bytes else 1.0, checksum=checksum)


# Other libraries' data sets


def _stack(source: ItemSource, where: str) -> tuple[Array, list[Any]]:
    try:
        count = len(source)
    except TypeError as error:
        raise DataError(f"{where}: the data set has no length, so its samples cannot be counted") from error
    if not count:
        raise DataError(f"{where}: the data set is empty")
    x, y = None, []
    for row in range(count):
        try:
            sample, label = source[row]
        except (TypeError, ValueError) as error:
            raise DataError(f"{where}: item {row} is not a pair (x, y)") from error
        values = _to_array(sample, f"{where}: item {row}")
        if hasattr(sample, "getbands") and values.ndim == 3:  # Pillow's images come as height, width, channels
            values = values.transpose(2, 0, 1)
        if x is None:
            x = allocate((count, *values.shape), values.dtype, where)
        if values.shape != x.shape[1:]:
            raise DataError(f"{where}: item {row} has the shape {values.shape}, item 0 {x.shape[1:]}; they must agree")
        if values.dtype != x.dtype:
            x = x.astype(np.promote_types(x.dtype, values.dtype))
        x[row] = values
        y.append(label.item() if hasattr(label, "item") else label)
    assert x is not None
    return x, y
