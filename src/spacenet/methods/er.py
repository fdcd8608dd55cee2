"""Experience replay (ER): every batch is learned together with as many samples from a small memory."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.ranges import Uniform
from spacenet.data.augmentation import CropAndFlip
from spacenet.data.stream import Samples, Task
from spacenet.methods.base import Batch, MethodSettings
from spacenet.methods.shared.exemplars import ExemplarMethod
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.utils.seeding import generator


class ER(ExemplarMethod):
    """A plain network that repeats old samples while it learns new ones.

    The memory is balanced by class, like the paper's ring buffer; which samples of a class it holds is left to chance.
    For each epoch every new sample draws the old one that comes with it, so a step draws nothing.
    """

    name = "er"
    strategy = "Rehearsal"
    reference = (
        "Chaudhry, Rohrbach, Elhoseiny, Ajanthan, Dokania, Torr, Ranzato: On Tiny Episodic Memories in Continual "
        "Learning. arXiv:1902.10486, 2019"
    )
    settings_from = "The memory's size as iCaRL's; the stream's own training, with six epochs."
    presets: ClassVar = {
        "split-mnist": {"training": {"epochs": 6}},
        "split-fashion-mnist": {"training": {"epochs": 6}},
    }
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.01, 0.3, log=True),
        "training.epochs": Uniform(1, 20, integer=True),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.old: Samples | None = None
        self.varied: CropAndFlip | None = None
        self.partners = torch.zeros(0, dtype=torch.long)
        self.replayed = self.replayed_y = torch.zeros(0)
        self.epoch = 0

    def training_data(self, task: Task) -> Samples:
        """Only the new samples; those of the memory come with the batches."""
        return task.train

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        self._open(data)

    def _open(self, data: Samples) -> None:
        self.partners = torch.zeros(len(data), dtype=torch.long, device=self.device)
        self.old = self.memory.samples().to(self.device) if len(self.memory) else None
        # Where new samples vary from epoch to epoch, so do the old ones.
        self.varied = CropAndFlip(self.old) if self.old is not None and data.augmented else None

    def begin_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        if self.old is None:
            return
        rng = generator(self.seed, "replay", self.tasks_learned, epoch)
        self.partners.copy_(torch.randint(len(self.old), (len(self.partners),), generator=rng))
        if self.varied is not None:
            self.varied.draw(rng)

    def forward(self, batch: Batch) -> Tensor:
        """Scores of the new samples; those of the old ones wait for `loss`."""
        if self.old is None:
            return super().forward(batch)
        rows = self.partners.index_select(0, batch.rows)
        x = self.varied(rows) if self.varied is not None else self.old.x.index_select(0, rows)
        output = self.blueprint.forward({**self.values, **self.uses_batch_stats}, torch.cat([batch.x, x]))
        self.replayed, self.replayed_y = output[len(batch.y) :], self.old.y.index_select(0, rows)
        return output[: len(batch.y)]

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """The mean over both halves of the joined batch."""
        new = F.cross_entropy(output, self.target(batch))
        return new if self.old is None else (new + F.cross_entropy(self.replayed, self.replayed_y)) / 2

    def choose(self, x: Tensor, count: int, number: int) -> Tensor:
        return torch.randperm(len(x), generator=generator(self.seed, "memory", number))[:count]

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.old = self.varied = None

    def task_state(self) -> dict[str, Tensor]:
        return {"epoch": torch.tensor(self.epoch)}

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self._open(data)
        self.begin_epoch(int(tensors["epoch"]))  # bn_recalibration_epochs goes on with what the last epoch drew
