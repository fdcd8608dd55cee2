"""Learning a small stream with a method, in memory."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from spacenet.config.model import PreprocessingConfig
from spacenet.config.training import TrainingConfig
from spacenet.data.stream import Stream, Task
from spacenet.methods.base import Method, MethodSettings
from spacenet.nets.mlp import build_mlp
from spacenet.training.loop import Epoch, learn_task
from spacenet.utils.optimizers import Optimizer
from tests.support import clouds

TRAINING = TrainingConfig(epochs=6, batch_size=10, learning_rate=0.1)
CUT = ((0, 1), (2, 3), (4, 5))


def small_stream(cut: tuple[tuple[object, ...], ...] = CUT) -> Stream:
    return Stream("clouds", clouds(), cut, preprocessing=PreprocessingConfig(centering=0.0, standardize="all"))


def reordered_streams() -> tuple[Stream, Stream]:
    """The same tasks, first to last and last to first, with inputs that do not depend on the first task."""
    preprocessing = PreprocessingConfig(mean=0.0, std=1.0, centering=0.0)
    there, back = (Stream("clouds", clouds(), cut, preprocessing=preprocessing) for cut in (CUT, CUT[::-1]))
    return there, back


LIGHT: Mapping[str, Mapping[str, object]] = {"acil": {"buffer_size": 40}, "ranpac": {"random_features": 40}}
"""Settings of methods whose defaults take long, for tests of all methods."""


def make(
    kind: type[Method], settings: Mapping[str, object] | None = None, seed: int = 0, hidden: tuple[int, ...] = (30, 30)
) -> Method:
    chosen: MethodSettings = kind.Settings(**(settings or {}))
    return kind(build_mlp((8,), hidden), chosen, seed)


def learn(method: Method, stream: Sequence[Task], training: TrainingConfig = TRAINING) -> list[Epoch]:
    """Learn every task; returns what the loop reported."""
    epochs: list[Epoch] = []

    def on_epoch(epoch: Epoch, optimizer: Optimizer) -> None:
        epochs.append(epoch)

    for task in stream:
        learn_task(method, task, training, on_batch=lambda done, total: None, on_epoch=on_epoch)
    return epochs


def copy_state(method: Method) -> dict[str, Tensor]:
    """The method's state as a file returns it: copies, in alphabetical order."""
    return {name: tensor.clone() for name, tensor in sorted(method.state().items())}


def task_state(method: Method) -> dict[str, Tensor]:
    """The part of the state that only an unfinished task needs."""
    return {name: tensor for name, tensor in method.state().items() if name.startswith("task/")}


def accuracy(method: Method, stream: Stream) -> list[float]:
    """Accuracy on each task's test samples among all classes seen, from 0 to 1."""
    right = [method.predict_all(task.test.x).argmax(1) == task.test.y for task in stream]
    return [float(hits.float().mean()) for hits in right]
