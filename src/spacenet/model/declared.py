"""The argument `classes` of `partial_fit`: all labels that may ever come, as in scikit-learn."""

from typing import Any

import numpy as np

from spacenet.data.preprocessing import Array
from spacenet.errors import DataError
from spacenet.methods.shared.sparse_settings import EXPECTED_TASKS
from spacenet.model.labels import Label


def declare_classes(before: list[Label] | None, given: Any, labels: Array, *, first: bool) -> list[Label] | None:
    """The declared classes: those given in the first call, otherwise those of before. Raises `DataError` for others,
    and for labels that are not among them."""
    wanted = None if given is None else np.unique(np.asarray(given)).tolist()
    if not first and wanted is not None and wanted != before:
        what = "nothing was declared in the first call" if before is None else f"it was {before}"
        raise DataError(f"classes={wanted} is not the same as in the first call of partial_fit: {what}")
    declared: list[Label] | None = wanted if first else before
    if declared is not None:
        unknown = sorted(set(np.unique(labels).tolist()) - set(declared), key=str)
        if unknown:
            raise DataError(f"y contains labels {unknown} that are not in classes={declared} of the first call")
    return declared


def expected_tasks(declared: list[Label] | None, labels: Array) -> int | None:
    """How many tasks the declared classes may make at most, if each one that is not among the first labels comes alone;
    None if that is not more than usual."""
    tasks = 0 if declared is None else 1 + len(declared) - len(np.unique(labels))
    return tasks if tasks > EXPECTED_TASKS else None
