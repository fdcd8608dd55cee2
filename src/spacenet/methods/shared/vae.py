"""A variational auto-encoder: a network that learns to make samples like those it sees.

Kingma, Welling: Auto-Encoding Variational Bayes. ICLR, 2014.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F


class VAE:
    """Two multilayer perceptrons: the encoder gives the latent code's mean and log-variance, the decoder the sample.

    Samples are flat, of features between 0 and 1, each a probability. Noise is given, never drawn here.
    """

    def __init__(self, values: Mapping[str, Tensor]) -> None:
        """From what `new` or `tensors` gave."""
        self.values = {name: nn.Parameter(value) for name, value in values.items()}

    @classmethod
    def new(cls, features: int, hidden: Sequence[int], latent: int, rng: Generator, device: torch.device) -> "VAE":
        """Untrained: Glorot-uniform, biases at zero. The decoder has the encoder's layers in reverse."""
        values: dict[str, Tensor] = {}
        for name, sizes in (
            ("encoder", (features, *hidden, 2 * latent)),
            ("decoder", (latent, *reversed(hidden), features)),
        ):
            for number, (sources, targets) in enumerate(pairwise(sizes), 1):
                bound = math.sqrt(6 / (sources + targets))
                values[f"{name}{number}.weight"] = torch.empty(targets, sources).uniform_(-bound, bound, generator=rng)
                values[f"{name}{number}.bias"] = torch.zeros(targets)
        return cls({name: value.to(device) for name, value in values.items()})

    def tensors(self) -> dict[str, Tensor]:
        return {name: value.detach() for name, value in self.values.items()}

    def parameters(self) -> list[nn.Parameter]:
        return list(self.values.values())

    def copy(self) -> "VAE":
        """As it is now, whatever becomes of this one."""
        return VAE({name: value.clone() for name, value in self.tensors().items()})

    def loss(self, x: Tensor, noise: Tensor) -> Tensor:
        """For each sample the negative evidence lower bound, per feature."""
        mean, log_variance = self._through("encoder", x).chunk(2, 1)
        code = mean + noise * (log_variance / 2).exp()
        logits = self._through("decoder", code)
        reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="none").mean(1)
        divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(1) / 2
        return reconstruction + divergence / x.shape[1]

    def sample(self, code: Tensor) -> Tensor:
        """Samples for codes drawn from the normal distribution."""
        with torch.no_grad():
            return self._through("decoder", code).sigmoid()

    def _through(self, name: str, h: Tensor) -> Tensor:
        last = sum(key.startswith(name) for key in self.values) // 2
        for number in range(1, last + 1):
            h = F.linear(h, self.values[f"{name}{number}.weight"], self.values[f"{name}{number}.bias"])
            if number < last:
                h = torch.relu(h)
        return h
