"""Deep generative replay (DGR): a generator produces samples of earlier tasks, so that none have to be kept."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from annotated_types import Ge, Le
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch, MethodSettings, Samples, Task, Uniform, kept
from spacenet.methods.shared.dense import DenseMethod
from spacenet.methods.shared.vae import VAE
from spacenet.utils.tensors import take_tensors

WHAT, LEAST_SPAN = "the generator", 1e-6
TEMPERATURE = 2.0
"""Of soft labels, as in van de Ven and Tolias."""


@dataclass(frozen=True)
class DGRSettings(MethodSettings):
    """The generator, and how its samples are labeled."""

    generator_hidden: tuple[Annotated[int, Ge(1), Le(1_000_000)], ...] = (400, 400)
    """Units in each hidden layer of the generator's encoder; its decoder has them in reverse."""
    latent: Annotated[int, Ge(1), Le(1_000_000), Uniform(10, 100, integer=True)] = 20
    """Size of the code that the generator produces a sample from. The published 100 takes far longer to train."""
    soft_labels: bool = False
    """Label generated samples with the old classifier's probabilities instead of its decision."""

    def validate(self) -> None:
        super().validate()
        if not self.generator_hidden:
            raise SettingsError("at least one hidden layer is needed", setting="generator_hidden")


class DGR(DenseMethod):
    """A classifier and a generator are trained together; copies of both from before the task produce and label what is
    replayed.

    As in van de Ven and Tolias (Three scenarios for continual learning, 2018), the generator is a variational
    auto-encoder on flat samples, whatever the classifier is, and both are trained further with every task. The noise of
    every sample is drawn at the beginning of an epoch, so a step draws nothing.
    """

    name = "dgr"
    strategy = "Rehearsal"
    reference = "Shin, Lee, Kim, Kim: Continual Learning with Deep Generative Replay. NIPS, 2017"
    settings_from = (
        "Layers, optimizer and losses of van de Ven and Tolias 2018; a smaller code (20 numbers, not 100) and fewer "
        "steps than their 2000 a task, chosen on held-out data."
    )
    settings: DGRSettings
    epoch: int = kept("task/epoch", int)
    vae: VAE = kept("generator", VAE)
    low: Tensor = kept("low", Tensor)
    span: Tensor = kept("span", Tensor)
    """The first task's minimum of each feature, and the largest distance from it: they become 0 and 1."""
    old: dict[str, Tensor] = kept("task/classifier", dict)
    old_vae: VAE = kept("task/generator", VAE)
    """Classifier and generator before the task; empty in the first task."""
    noise: Tensor
    training_space: ClassVar = {
        "training.learning_rate": Uniform(0.0003, 0.003, log=True),
        "training.epochs": Uniform(2, 20, integer=True),
    }

    def begin_task(self, task: Task, data: Samples) -> None:
        settings = self.settings
        if self.tasks_learned:
            self.old, self.old_vae = self.copy_params(), self.vae.copy()
        else:
            self.low = data.x.amin(0)
            self.span = (data.x - self.low).amax().clamp(min=LEAST_SPAN)
            rng = self.rng("generator")
            self.vae = VAE.initialize(self.low.numel(), settings.generator_hidden, settings.latent, rng, self.device)
        super().begin_task(task, data)

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        shapes = VAE.shapes(math.prod(input_shape), self.settings.generator_hidden, self.settings.latent)
        rest = take_tensors(state, {f"generator/{name}": shape for name, shape in shapes.items()}, WHAT)
        rest = take_tensors(rest, {"low": input_shape}, WHAT)
        super().check_state(take_tensors(rest, {"span": ()}, WHAT, least=LEAST_SPAN), input_shape)

    def prepare(self, data: Samples) -> None:
        super().prepare(data)
        parts = 3 if self.old else 1
        self.noise = torch.zeros(len(data), parts * self.settings.latent, device=self.device)
        self.begin_epoch(self.epoch)  # where a task resumes, recalibration of batch norm may follow, with the last draw

    def named_parameters(self) -> dict[str, nn.Parameter]:
        return super().named_parameters() | {f"generator/{name}": param for name, param in self.vae.params.items()}

    def begin_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        rng = self.rng("replay", self.tasks_learned, epoch)
        self.noise.copy_(torch.randn(self.noise.shape, generator=rng))

    def forward(self, batch: Batch) -> Tensor:
        """Scores of the new samples; those of the generated ones are left for `loss`."""
        x = self._normalize(batch.x)
        if not self.old:
            return self.compute(x)
        codes = self.noise.index_select(0, batch.rows)[:, : self.settings.latent]
        with torch.no_grad():
            generated = self.old_vae.sample(codes).float()
            old_x = generated.view_as(x)
            labels = self.blueprint.forward(self.old, old_x).float()
        output = self.compute(torch.cat([x, old_x]))
        batch.saved.update(generated=generated, replayed=output[len(batch.y) :], labels=labels)
        return output[: len(batch.y)]

    def _normalize(self, x: Tensor) -> Tensor:
        """Inputs on the generator's scale, where those of the first task lie between 0 and 1."""
        return (x - self.low) / self.span

    def predict(self, x: Tensor) -> Tensor:
        return super().predict(self._normalize(x))

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """Classifier plus generator; of t tasks, the new one counts 1/t and the replayed ones the rest (eq. 1)."""
        noise, latent = self.noise.index_select(0, batch.rows), self.settings.latent
        x = self._normalize(batch.x).flatten(1).clamp(0, 1)
        new = F.cross_entropy(output, self.target(batch))
        if not self.old:
            return new + self.vae.loss(x, noise).mean()
        noise = torch.cat([noise[:, latent:-latent], noise[:, -latent:]])
        both = self.vae.loss(torch.cat([x, batch.saved["generated"]]), noise)
        part = 1 / (self.tasks_learned + 1)
        new = new + both[: len(x)].mean()
        old = self._replay_loss(batch.saved["replayed"], batch.saved["labels"]) + both[len(x) :].mean()
        return part * new + (1 - part) * old

    def _replay_loss(self, replayed: Tensor, labels: Tensor) -> Tensor:
        if not self.settings.soft_labels:
            return F.cross_entropy(replayed, labels.argmax(1))
        target = (labels / TEMPERATURE).softmax(1)
        given = (replayed / TEMPERATURE).log_softmax(1)[:, : target.shape[1]]
        return -(TEMPERATURE**2) * (target * given).sum(1).mean()
