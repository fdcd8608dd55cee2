"""Experience replay (ER): every batch is trained together with as many samples from a small memory."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.data.augmentation import CropAndFlip
from spacenet.methods.base import Batch, Samples, Task, Uniform, kept
from spacenet.methods.shared.exemplars import ExemplarMethod


class ER(ExemplarMethod):
    """A dense network that repeats old samples while it learns new ones.

    The memory is balanced by class, like the paper's ring buffer, and holds a random choice of each class's samples.
    The old sample that goes with each new one is drawn at the beginning of an epoch, so a step draws nothing.
    """

    name = "er"
    strategy = "Rehearsal"
    reference = (
        "Chaudhry, Rohrbach, Elhoseiny, Ajanthan, Dokania, Torr, Ranzato: On Tiny Episodic Memories in Continual "
        "Learning. arXiv:1902.10486, 2019"
    )
    settings_from = "The memory's size as iCaRL's; the stream's own training, with six epochs."
    training_space: ClassVar = {
        "training.learning_rate": Uniform(0.01, 0.3, log=True),
        "training.epochs": Uniform(1, 20, integer=True),
    }
    epoch: int = kept("task/epoch", int)
    old: Samples | None = None
    augment: CropAndFlip | None = None
    partners: Tensor
    """The scores of the old samples of a batch, and their classes."""

    def training_data(self, task: Task) -> Samples:
        """Only the new samples; `forward` adds those of the memory."""
        return task.train

    def prepare(self, data: Samples) -> None:
        super().prepare(data)
        self.partners = torch.zeros(len(data), dtype=torch.long, device=self.device)
        self.old = self.memory.samples().to(self.device) if len(self.memory) else None
        # Old samples are augmented where new ones are.
        self.augment = CropAndFlip(self.old) if self.old is not None and data.augmented else None
        self.begin_epoch(self.epoch)  # where a task resumes, recalibration of batch norm may follow, with the last draw

    def begin_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        if self.old is None:
            return
        rng = self.rng("replay", self.tasks_learned, epoch)
        self.partners.copy_(torch.randint(len(self.old), (len(self.partners),), generator=rng))
        if self.augment is not None:
            self.augment.draw(rng)

    def forward(self, batch: Batch) -> Tensor:
        """Scores of the new samples; those of the old ones are left for `loss`."""
        if self.old is None:
            return super().forward(batch)
        rows = self.partners.index_select(0, batch.rows)
        x = self.augment(rows) if self.augment is not None else self.old.x.index_select(0, rows)
        output = self.compute(torch.cat([batch.x, x]))
        batch.saved.update(replayed=output[len(batch.y) :], labels=self.old.y.index_select(0, rows))
        return output[: len(batch.y)]

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """The mean over both halves of the batch."""
        new = F.cross_entropy(output, self.target(batch))
        if self.old is None:
            return new
        return (new + F.cross_entropy(batch.saved["replayed"], batch.saved["labels"])) / 2

    def choose(self, x: Tensor, count: int, number: int) -> Tensor:
        return torch.randperm(len(x), generator=self.rng("memory", number))[:count]

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.old = self.augment = None
