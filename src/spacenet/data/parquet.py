"""Parquet tables, read in chunks with pyarrow."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.data.arrays import samples_per_chunk
from spacenet.data.parts import Batch, Part, Shape, Target
from spacenet.data.preprocessing import Array
from spacenet.data.tables import Columns, choose_columns, missing_label, target_shape, to_numbers
from spacenet.errors import DataError, SpacenetError
from spacenet.utils.extras import require_extra

INDEX = "__index_level_"
"""How pandas names the columns of a data frame's index."""


def parquet_part(path: Path, label: str | None, drop: Sequence[str] = (), target: Target | None = None) -> Part:
    """The labeled samples of a parquet file."""
    columns, count = _find_columns(path, label, drop)
    if columns.label is None:
        raise missing_label(str(path), columns)
    shape = target_shape(str(path), columns, target)

    def read() -> Iterator[Batch]:
        for x, labels in _read_batches(path, columns, samples_per_chunk(shape)):
            yield x.reshape(-1, *shape), labels

    return Part(str(path), count, shape, np.dtype(np.float32), read, "rows", columns.input_names)


def read_parquet(path: Path, shape: Shape, label: str | None = None, drop: Sequence[str] = ()) -> Iterator[Array]:
    """The samples of a table in chunks, for a model that takes this shape. A column of labels is left out."""
    columns, _ = _find_columns(path, label, drop)
    target_shape(str(path), columns, Target(shape))
    for x, _ in _read_batches(path, replace(columns, label=None), samples_per_chunk(shape)):  # labels may be missing
        yield x.reshape(-1, *shape)


def _find_columns(path: Path, label: str | None, drop: Sequence[str]) -> tuple[Columns, int]:
    with _open(path) as file:
        names = ["" if name.startswith(INDEX) else name for name in file.schema_arrow.names]
        return choose_columns(str(path), names, len(names), label, drop), int(file.metadata.num_rows)


def _read_batches(path: Path, columns: Columns, step: int) -> Iterator[tuple[Array, list[Any]]]:
    row = 0
    with _open(path) as file:
        for batch in file.iter_batches(step):
            x = np.empty((batch.num_rows, len(columns.inputs)), np.float32)
            for place, number in enumerate(columns.inputs):
                values = batch.column(number).to_numpy(zero_copy_only=False)
                x[:, place] = to_numbers(values, f"{path}, {columns.describe(number)}", row)
            labels = [] if columns.label is None else batch.column(columns.label).to_pylist()
            if None in labels:
                where = f"{path}, row {row + labels.index(None)}, {columns.describe(columns.label or 0)}"
                raise DataError(f"{where}: the label is missing; fill it in or remove the row")
            yield x, [_to_label(label) for label in labels]
            row += batch.num_rows


def _to_label(label: Any) -> Any:
    """Whole numbers that are stored as floats become integers."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


class _open:  # noqa: N801
    """Open a parquet file; errors of reading it become a `DataError`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Any:
        library = require_extra("parquet files", "tables", "pyarrow.parquet")
        if not self.path.is_file():
            raise DataError(f"{self.path}: no such file")
        try:
            self.file = library.ParquetFile(self.path, pre_buffer=False)
        except Exception as error:
            raise self._damaged(error) from error
        return self.file

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.file.close()
        if isinstance(error, Exception) and not isinstance(error, SpacenetError):  # pyarrow raises many kinds
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> DataError:
        return DataError(f"{self.path}: not a parquet file that can be read ({str(error).splitlines()[0][:200]})")
