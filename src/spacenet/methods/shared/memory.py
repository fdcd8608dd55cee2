"""Samples of earlier tasks that a method keeps."""

from collections.abc import Sequence

import torch
from torch import Tensor

from spacenet.data.stream import Samples, Stream, Task


class Memory:
    """Kept samples and their positions in the stream, so that a checkpoint does not have to contain them."""

    def __init__(self) -> None:
        self.rows: dict[int, Tensor] = {}
        self._samples: dict[int, Samples] = {}

    def __len__(self) -> int:
        return sum(len(rows) for rows in self.rows.values())

    @property
    def nbytes(self) -> int:
        """What storing the samples takes: raw inputs, or normalized ones if these are smaller, and class numbers."""
        each = self._samples.values()
        return sum(s.x.numel() * min(s.value_bytes, s.x.element_size()) + s.y.nbytes for s in each)

    @classmethod
    def of(cls, samples: Samples, classes: Sequence[range]) -> "Memory":
        """A memory of these samples, given the classes of each task."""
        memory = cls()
        for task, own in enumerate(classes):
            rows = ((samples.y >= own.start) & (samples.y < own.stop)).nonzero().flatten()
            if len(rows):
                memory.rows[task], memory._samples[task] = torch.arange(len(rows)), samples.take(rows)
        return memory

    def copy(self) -> "Memory":
        """Another memory of the same samples."""
        memory = Memory()
        memory.rows, memory._samples = dict(self.rows), dict(self._samples)
        return memory

    def keep(self, task: Task, rows: Tensor | None = None) -> None:
        """Keep the given rows of the task's training data in their order, by default all of them."""
        train = task.train
        self.rows[task.index] = torch.arange(len(train)) if rows is None else rows
        self._samples[task.index] = train if rows is None else train.take(rows)

    def trim(self, per_class: int) -> None:
        """Drop all but the first `per_class` samples of each class."""
        for task, samples in self._samples.items():
            numbers = samples.y.unique().tolist()
            first = torch.cat([(samples.y == number).nonzero().flatten()[:per_class] for number in numbers])
            self.rows[task] = self.rows[task][first]
            self._samples[task] = samples.take(first)

    def samples(self) -> Samples:
        """All kept samples; there must be at least one."""
        parts = list(self._samples.values())
        x, y = torch.cat([part.x for part in parts]), torch.cat([part.y for part in parts])
        return Samples(x, y, value_bytes=max(part.value_bytes for part in parts))

    def concat(self, new: Samples) -> Samples:
        """All kept samples, then the new ones."""
        parts = [*self._samples.values(), new]
        return new if len(parts) == 1 else Samples(torch.cat([p.x for p in parts]), torch.cat([p.y for p in parts]))

    def restore(self, stream: Stream, rows: dict[int, Tensor]) -> None:
        """Take the kept samples from the stream again, in the order of their tasks."""
        for index in sorted(rows):
            self.keep(stream[index], rows[index])
