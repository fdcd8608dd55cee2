"""What an exported file computes of a model without its encoder, as one torch module."""

import math

import torch
from torch import Tensor, nn

from spacenet.data.checks import MAX_MAGNITUDE
from spacenet.data.preprocessing import FAR, Normalization, signed_root
from spacenet.space.pack import Pack


class PackedNetwork(nn.Module):
    """Raw samples (batch, *input_shape) to probabilities (batch, classes); unused units are not in it.

    What a method computes beside the network, such as densities of classes, is part of it. With a rate, the predictor
    returns scores and typicality, and the results are probabilities, typicality (batch,), and whether that is below the
    rate, so that the sample is unknown.
    """

    mean: Tensor
    std: Tensor
    together: Tensor | None  # adds up the outputs of each class; None where each class has one

    def __init__(
        self,
        predictor: Pack,
        normalization: Normalization,
        columns: Tensor,
        rate: float | None = None,
        *,
        encoded: bool = False,
    ) -> None:
        """`columns` says for each output of the predictor which class it stands for. With `encoded`, samples are an
        encoder's features, and those that are all 0 are unknown."""
        super().__init__()
        self.function, self.scale, self.clip = predictor.forward, normalization.scale, normalization.clip
        self.root, self.rate, self.encoded = normalization.root, rate, encoded
        self.register_buffer("mean", normalization.mean.clone())
        self.register_buffer("std", normalization.std.clone())
        self.names = {name: f"value/{name}".replace(".", "/") for name in predictor.params}  # torch allows no dots
        for name, value in predictor.params.items():
            self.register_buffer(self.names[name], value.to_dense() if value.layout == torch.sparse_csr else value)
        ones = nn.functional.one_hot(columns).float()
        self.register_buffer("together", None if ones.shape[0] == ones.shape[1] else ones)

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        values = {name: getattr(self, held) for name, held in self.names.items()}
        if self.rate is None:
            return self.probabilities(self.function(values, self.cut_off(self.normalize(x))))
        possible = x.isfinite().flatten(1).all(1)
        inputs = self.normalize(x.clamp(-MAX_MAGNITUDE, MAX_MAGNITUDE))
        if math.isfinite(self.clip):
            possible = possible & (inputs.abs() <= FAR * self.clip).flatten(1).all(1)
        if self.encoded:
            possible = possible & (x != 0).flatten(1).any(1)
        scores, typicality = self.function(values, self.cut_off(inputs))
        typicality = torch.where(possible, typicality, 0.0)
        return self.probabilities(scores), typicality.float(), typicality < self.rate

    def normalize(self, x: Tensor) -> Tensor:
        scaled = signed_root(x * self.scale) if self.root else x * self.scale
        return (scaled - self.mean) / self.std

    def cut_off(self, inputs: Tensor) -> Tensor:
        return inputs.clamp(-self.clip, self.clip) if math.isfinite(self.clip) else inputs

    def probabilities(self, scores: Tensor) -> Tensor:
        each = scores.softmax(1).float()
        return each if self.together is None else each @ self.together
