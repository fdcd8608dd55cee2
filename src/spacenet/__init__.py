"""Class-incremental learning in a network of fixed size, by adaptive sparse training (SpaceNet)."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacenet.data.stream import Stream as Stream
    from spacenet.data.streams import stream as stream
    from spacenet.model.estimator import SpaceNetClassifier as SpaceNetClassifier
    from spacenet.model.estimator import load as load

__version__ = version("spacenet-cl")


def __getattr__(name: str) -> Any:
    # Imported only when asked for: they bring scikit-learn and torch, and `spacenet --version` needs neither.
    if name in ("SpaceNetClassifier", "load"):
        from spacenet.model import estimator

        return getattr(estimator, name)
    if name in ("Stream", "stream"):
        from spacenet.data import streams

        return getattr(streams, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
