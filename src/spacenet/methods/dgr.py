"""Deep generative replay (DGR): a generator makes samples of earlier tasks, so that none have to be kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import ANY, Batch, MethodSettings
from spacenet.methods.shared.dense import DenseMethod
from spacenet.methods.shared.vae import VAE
from spacenet.option_types import Flag
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.utils.seeding import generator
from spacenet.utils.tensors import section

TEMPERATURE = 2.0
"""Of soft labels, as van de Ven and Tolias have it."""


@dataclass(frozen=True)
class DGRSettings(MethodSettings):
    """The generator, and how its samples are labelled."""

    generator_hidden: tuple[int, ...] = (400, 400)
    """Units in each hidden layer of the generator's encoder; its decoder has them in reverse."""
    latent: int = 20
    """Numbers in the code from which the generator makes a sample; 100, as published, take far longer to train."""
    soft_labels: Flag = False
    """Label generated samples with the old classifier's probabilities instead of its decision."""

    def __post_init__(self) -> None:
        if not self.generator_hidden or min(self.generator_hidden) < 1:
            raise SettingsError(f"generator-hidden: {list(self.generator_hidden)} are not layers of 1 or more units")
        if self.latent < 1:
            raise SettingsError(f"latent: {self.latent} is too small (need 1 or more)")


class DGR(DenseMethod):
    """A classifier and a generator that learn together; old copies of both make and label what is replayed.

    As van de Ven and Tolias (Three scenarios for continual learning, 2018) did it: the generator is a variational
    auto-encoder on flat samples, whatever network classifies, and both go on learning from task to task. For each
    epoch every sample gets noise of its own in advance, so a step draws nothing.
    """

    name = "dgr"
    strategy = "Rehearsal"
    reference = "Shin, Lee, Kim, Kim: Continual Learning with Deep Generative Replay. NIPS, 2017"
    settings_from = (
        "Layers, optimiser and losses of van de Ven and Tolias 2018; a smaller code (20 numbers, not 100) and fewer "
        "steps than their 2000 a task, chosen on held-out data."
    )
    Settings = DGRSettings
    settings: DGRSettings
    presets: ClassVar = {
        ANY: {"training": {"optimizer": "adam", "learning_rate": 0.001}},
        "split-mnist": {"training": {"epochs": 8}},
        "split-fashion-mnist": {"training": {"epochs": 8}},
    }
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.0003, 0.003, log=True),
        "training.epochs": Uniform(2, 20, integer=True),
        "method.latent": Uniform(10, 100, integer=True),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.vae: VAE | None = None
        self.low = self.span = torch.zeros(0)
        """The first task's least value of each feature, and its greatest distance from that: what is 0 and 1."""
        self.old: tuple[dict[str, Tensor], VAE] | None = None
        """Classifier and generator as they were before the task."""
        self.noise = torch.zeros(0)
        self.dreams = self.replayed = self.labels = torch.zeros(0)
        self.epoch = 0

    def begin_task(self, task: Task, data: Samples) -> None:
        settings = self.settings
        if self.vae is None:
            self.low = data.x.amin(0)
            self.span = (data.x - self.low).amax().clamp(min=1e-6)
            rng = generator(self.seed, "generator")
            self.vae = VAE.new(self.low.numel(), settings.generator_hidden, settings.latent, rng, self.device)
        else:
            self.old = ({name: value.detach().clone() for name, value in self.values.items()}, self.vae.copy())
        super().begin_task(task, data)
        self._open(data)

    def _open(self, data: Samples) -> None:
        parts = 1 if self.old is None else 3
        self.noise = torch.zeros(len(data), parts * self.settings.latent, device=self.device)

    def parameters(self) -> list[nn.Parameter]:
        return super().parameters() + (self.vae.parameters() if self.vae else [])

    def begin_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        rng = generator(self.seed, "replay", self.tasks_learned, epoch)
        self.noise.copy_(torch.randn(self.noise.shape, generator=rng))

    def forward(self, batch: Batch) -> Tensor:
        """Scores of the new samples; what belongs to the generated ones waits for `loss`."""
        x = self._unit(batch.x)
        if self.old is None:
            return self.blueprint.forward({**self.values, **self.uses_batch_stats}, x)
        classifier, dreamer = self.old
        codes = self.noise.index_select(0, batch.rows)[:, : self.settings.latent]
        with torch.no_grad():
            self.dreams = dreamer.sample(codes).float()
            made = self.dreams.view_as(x)
            self.labels = self.blueprint.forward(classifier, made).float()
        output = self.blueprint.forward({**self.values, **self.uses_batch_stats}, torch.cat([x, made]))
        self.replayed = output[len(batch.y) :]
        return output[: len(batch.y)]

    def _unit(self, x: Tensor) -> Tensor:
        """Inputs on the scale of the generator, where the first task's lie between 0 and 1."""
        return (x - self.low) / self.span

    def predict(self, x: Tensor) -> Tensor:
        return super().predict(self._unit(x))

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """Classifier's and generator's; of t tasks, the new one counts 1/t and the replayed ones the rest (eq. 1)."""
        assert self.vae is not None
        noise, latent = self.noise.index_select(0, batch.rows), self.settings.latent
        x = self._unit(batch.x).flatten(1).clamp(0, 1)
        new = F.cross_entropy(output, self.target(batch))
        if self.old is None:
            return new + self.vae.loss(x, noise).mean()
        both = self.vae.loss(torch.cat([x, self.dreams]), torch.cat([noise[:, latent:-latent], noise[:, -latent:]]))
        part = 1 / (self.tasks_learned + 1)
        new = new + both[: len(x)].mean()
        return part * new + (1 - part) * (self._replay_loss() + both[len(x) :].mean())

    def _replay_loss(self) -> Tensor:
        if not self.settings.soft_labels:
            return F.cross_entropy(self.replayed, self.labels.argmax(1))
        target = (self.labels / TEMPERATURE).softmax(1)
        given = (self.replayed / TEMPERATURE).log_softmax(1)[:, : target.shape[1]]
        return -(TEMPERATURE**2) * (target * given).sum(1).mean()

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.old = None

    def extra(self) -> dict[str, Tensor]:
        if self.vae is None:
            return {}
        kept = {f"generator/{name}": value for name, value in self.vae.tensors().items()}
        return {**kept, "low": self.low, "span": self.span}

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self.vae = VAE(self._section(tensors, "generator"))
        self.low, self.span = tensors["low"].to(self.device), tensors["span"].to(self.device)

    def task_state(self) -> dict[str, Tensor]:
        state = {"epoch": torch.tensor(self.epoch)}
        if self.old is not None:
            classifier, dreamer = self.old
            state |= {f"classifier/{name}": value for name, value in classifier.items()}
            state |= {f"dreamer/{name}": value for name, value in dreamer.tensors().items()}
        return state

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        if self.tasks_learned:
            self.old = (self._section(tensors, "classifier"), VAE(self._section(tensors, "dreamer")))
        self._open(data)
        self.begin_epoch(int(tensors["epoch"]))  # bn_recalibration_epochs goes on with what the last epoch drew

    def _section(self, tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
        return {name: value.to(self.device, copy=True) for name, value in section(tensors, prefix).items()}
