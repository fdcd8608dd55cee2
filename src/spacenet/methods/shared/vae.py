"""A variational auto-encoder: a network that learns to generate samples like those it was trained on.

Kingma, Welling: Auto-Encoding Variational Bayes. ICLR, 2014.
"""

from collections.abc import Sequence
from itertools import pairwise
from types import MappingProxyType

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from spacenet.space.blueprint import Params

ENCODER, DECODER = "encoder", "decoder"


class VAE:
    """Two multilayer perceptrons: the encoder outputs the latent code's mean and log-variance, the decoder the sample.
    Samples are flat; their features lie between 0 and 1 and count as probabilities. Noise is always an argument."""

    def __init__(self, params: Params = MappingProxyType({})) -> None:
        self.load(params)

    def load(self, params: Params) -> None:
        """Restore what `tensors` returned, in any order."""
        self.layers = len(params) // 4
        self.params = {name: nn.Parameter(param) for name, param in params.items()}

    @classmethod
    def initialize(
        cls, features: int, hidden: Sequence[int], latent: int, rng: Generator, device: torch.device
    ) -> "VAE":
        """Untrained: weights Glorot-uniform, biases zero. The decoder has the encoder's layers in reverse."""
        params: dict[str, Tensor] = {}
        for name, shape in cls.shapes(features, hidden, latent).items():
            new = torch.zeros(shape)
            params[name] = (nn.init.xavier_uniform_(new, generator=rng) if new.dim() == 2 else new).to(device)
        return cls(params)

    @staticmethod
    def shapes(features: int, hidden: Sequence[int], latent: int) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter, in the order of computation."""
        found: dict[str, tuple[int, ...]] = {}
        widths = {ENCODER: (features, *hidden, 2 * latent), DECODER: (latent, *reversed(hidden), features)}
        for name, sizes in widths.items():
            for number, (sources, targets) in enumerate(pairwise(sizes), 1):
                found |= {f"{name}{number}.weight": (targets, sources), f"{name}{number}.bias": (targets,)}
        return found

    def tensors(self) -> dict[str, Tensor]:
        return {name: param.detach() for name, param in self.params.items()}

    def parameters(self) -> list[nn.Parameter]:
        return list(self.params.values())

    def copy(self) -> "VAE":
        return VAE({name: tensor.clone() for name, tensor in self.tensors().items()})

    def loss(self, x: Tensor, noise: Tensor) -> Tensor:
        """The negative evidence lower bound of each sample, per feature."""
        mean, log_variance = self._forward(ENCODER, x).chunk(2, 1)
        code = mean + noise * (log_variance / 2).exp()
        logits = self._forward(DECODER, code)
        reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="none").mean(1)
        divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(1) / 2
        return reconstruction + divergence / x.shape[1]

    def sample(self, code: Tensor) -> Tensor:
        """Samples for codes drawn from the normal distribution."""
        with torch.no_grad():
            return self._forward(DECODER, code).sigmoid()

    def _forward(self, part: str, h: Tensor) -> Tensor:
        for number in range(1, self.layers + 1):
            h = F.linear(h, self.params[f"{part}{number}.weight"], self.params[f"{part}{number}.bias"])
            if number < self.layers:
                h = torch.relu(h)
        return h
