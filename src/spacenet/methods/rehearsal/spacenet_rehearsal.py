"""SpaceNet-Rehearsal: the paper's hybrid that replays the data of all earlier tasks."""

from spacenet.methods.shared.sparse import AdaptiveMethod
from spacenet.streams.stream import Task


class SpaceNetRehearsal(AdaptiveMethod):
    """SpaceNet while old data is replayed; the old classifiers stay connected, frozen."""

    name = "spacenet-rehearsal"
    strategy = "Rehearsal"
    keeps_classifiers = True

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.memory.keep(task)
