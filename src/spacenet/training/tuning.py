"""Training of an encoder's network on images, by the training loop of all methods."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.config.model import MethodSettings
from spacenet.config.training import TrainingConfig
from spacenet.data.preprocessing import Array
from spacenet.data.stream import Samples, Task
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput
from spacenet.encoders.networks import FrozenNetwork
from spacenet.encoders.tuned import copy_network
from spacenet.errors import DataError
from spacenet.methods.base import Batch, LayerUsage, Method
from spacenet.space.blueprint import Blueprint, Hook, Params
from spacenet.training.hardware import find_hardware
from spacenet.training.loop import Epoch, learn_task
from spacenet.utils.optimizers import Optimizer

BYTE = 255
START = 0.01
"""The standard deviation of the first weights of the outputs."""


@dataclass(frozen=True)
class Tuned:
    """A tuned network, and the figures of its last epoch."""

    network: FrozenNetwork
    last: Epoch


def tune(
    encoder: Encoder,
    x: Array,
    y: Array,
    *,
    size: int,
    training: TrainingConfig,
    seed: int = 0,
    on_batch: Callable[[int, int], None] = lambda done, total: None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> Tuned:
    """Train a copy of an encoder's network to tell classes apart, all of its layers and a linear layer behind them.

    Parameters
    ----------
    encoder : Encoder
        An encoder of images. It stays as it is.
    x : array of bytes (n, h, w) or (n, channels, h, w)
        The images.
    y : array of int
        The number of each image's class, from 0.
    size : int
        The side of the images that the network gets; others are resized.
    training : TrainingConfig
        How it is trained, and on what hardware.
    on_batch, on_epoch : callable
        Called while it is trained, see `learn_task`.

    Raises
    ------
    SettingsError
        If the encoder cannot be trained.
    DataError
        If these are no images, or there is only one class.
    """
    encoder.check(x)
    if len(np.unique(y)) < 2:
        raise DataError("an encoder is tuned to tell classes apart, and there is only one")
    network, hardware = copy_network(encoder), find_hardware(training)
    images = encoder.images
    assert images is not None
    method = EncoderTuning(Blueprint((), (), _no_network), MethodSettings(), seed, hardware.device)
    method.use(network, images, size, encoder.features)
    data = Samples(_fit(x, images, size), torch.as_tensor(y, dtype=torch.long))
    classes = range(int(data.y.max()) + 1)
    epochs: list[Epoch] = []

    def note(epoch: Epoch, optimizer: Optimizer) -> None:
        epochs.append(epoch)
        on_epoch(epoch)

    task = Task(0, tuple(classes), classes, _Given(data))
    learn_task(method, task, training, hardware=hardware, on_batch=on_batch, on_epoch=note)
    return Tuned(method.network, epochs[-1])


class EncoderTuning(Method):
    """An encoder's network and a linear layer behind it, for the training loop. It is no method for streams: it learns
    one task, and nothing is kept of it but the network."""

    name = "encoder-tuning"
    strategy = "Bound"
    cuda_graph_safe = False  # networks of other libraries may copy from the CPU in each step

    def use(self, network: FrozenNetwork, images: ImageInput, size: int, features: int) -> None:
        """Set what is trained: the network, which takes images of this size, normalized so."""
        self.network, self.size = network.to(self.device), size
        mean, std = (torch.tensor(each, device=self.device).view(3, 1, 1) for each in (images.mean, images.std))
        self.mean, self.std, self.features = mean, std, features

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        linear = nn.Linear(self.features, len(task.classes))
        nn.init.normal_(linear.weight, std=START, generator=self.rng("outputs"))
        nn.init.zeros_(linear.bias)
        # Features of some networks are a hundred times as large as those of others.
        self.outputs = nn.Sequential(nn.BatchNorm1d(self.features, affine=False), linear)
        self.outputs.to(self.device)
        self.both = nn.ModuleDict({"network": self.network, "outputs": self.outputs}).train()

    def named_parameters(self) -> dict[str, nn.Parameter]:
        return dict(self.both.named_parameters())

    def statistics(self) -> list[Tensor]:
        return [buffer for buffer in self.both.buffers() if buffer.is_floating_point()]

    def forward(self, batch: Batch) -> Tensor:
        return self.score(batch.x)

    def score(self, x: Tensor) -> Tensor:
        """One score for each class, of images as bytes, (n, h, w) or (n, channels, h, w)."""
        x = (x[:, None] if x.dim() == 3 else x).float() / BYTE
        if x.shape[-1] != self.size:  # as Pillow does it
            x = F.interpolate(x, size=(self.size, self.size), mode="bicubic", antialias=True)
        features = self.network.compute((x.expand(-1, 3, -1, -1) - self.mean) / self.std)
        found: Tensor = self.outputs(features)
        return found.float()

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.both.eval()

    def predict(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return self.score(x)

    def layer_usage(self) -> list[LayerUsage]:
        return []


@dataclass(frozen=True)
class _Given:
    """Samples as the source of a task."""

    data: Samples

    def samples(self, task: Task, *, train: bool) -> Samples:
        return self.data


def _fit(x: Array, images: ImageInput, size: int) -> Tensor:
    """Images as bytes: squares that are no larger than the network's input as they are, others prepared for it."""
    small = x.shape[-1] == x.shape[-2] <= size
    return torch.from_numpy(np.ascontiguousarray(x if small else ImageInput(size, crop=images.crop).prepare(x)))


def _no_network(params: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
    raise NotImplementedError("the network is the encoder's, not a blueprint")
