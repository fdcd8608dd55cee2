"""Class-incremental learning in a network of fixed size, by adaptive sparse training (SpaceNet).

>>> import spacenet
>>> stream = spacenet.stream("split-digits")
>>> result = spacenet.run(stream, "spacenet", epochs=3, progress=False)
>>> len(result.matrix)
5
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacenet.api.description import describe as describe
    from spacenet.api.evaluation import evaluate as evaluate
    from spacenet.api.functions import compare as compare
    from spacenet.api.functions import run as run
    from spacenet.api.functions import sweep as sweep
    from spacenet.api.tuning import tune_encoder as tune_encoder
    from spacenet.data.stream import Stream as Stream
    from spacenet.data.streams import register_dataset as register_dataset
    from spacenet.data.streams import register_stream as register_stream
    from spacenet.data.streams import stream as stream
    from spacenet.experiments.callbacks import Callback as Callback
    from spacenet.methods import register_method as register_method
    from spacenet.model.estimator import SpaceNetClassifier as SpaceNetClassifier
    from spacenet.model.estimator import load as load
    from spacenet.nets import register_net as register_net

__version__ = version("spacenet-cl")

_HOMES = {
    "stream": "spacenet.data.streams",
    "Stream": "spacenet.data.stream",
    "run": "spacenet.api.functions",
    "compare": "spacenet.api.functions",
    "sweep": "spacenet.api.functions",
    "evaluate": "spacenet.api.evaluation",
    "describe": "spacenet.api.description",
    "tune_encoder": "spacenet.api.tuning",
    "Callback": "spacenet.experiments.callbacks",
    "SpaceNetClassifier": "spacenet.model.estimator",
    "load": "spacenet.model.estimator",
    "register_method": "spacenet.methods",
    "register_net": "spacenet.nets",
    "register_dataset": "spacenet.data.streams",
    "register_stream": "spacenet.data.streams",
}
__all__ = ["Callback", "SpaceNetClassifier", "Stream", "compare", "describe", "evaluate", "load"]
__all__ += ["register_dataset", "register_method", "register_net", "register_stream", "run", "stream", "sweep"]
__all__ += ["tune_encoder"]


def __getattr__(name: str) -> Any:
    # Imported when asked for: `spacenet --version` needs neither torch nor scikit-learn.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
