"""Small streams in memory, and what two runs are compared by."""

from typing import Any

from spacenet.api import RunResult
from spacenet.data.stream import Stream
from spacenet.model.file import to_bytes
from tests.support import clouds

QUICK: dict[str, Any] = {"epochs": 2, "batch_size": 10, "hidden": (30, 30), "progress": False}
SPACE: dict[str, Any] = {"selected": (10,), "reserved": (5,), "connections": (40, 40, 16)}


def cloud_stream(**options: Any) -> Stream:
    """Three tasks of two classes."""
    data = clouds()
    return Stream.from_arrays(data.x_train, data.y_train, data.x_test, data.y_test, **options)


def bits(result: RunResult) -> tuple[Any, bytes]:
    """The accuracy matrix and the bytes of the model."""
    return result.matrix.tolist(), to_bytes(result.model) if result.model else b""
