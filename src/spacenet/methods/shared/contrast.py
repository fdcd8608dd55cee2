"""Supervised contrastive learning: samples of a class come together, those of other classes move apart.

Khosla et al.: Supervised Contrastive Learning. NeurIPS 2020. A network that is trained so gives clearer scores to what
it has never seen, which is what classes of other tasks are to a task's network.
"""

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

DIMENSIONS = 128
"""Of the space in which samples are compared."""
TEMPERATURE = 0.2


def make_projection(features: int, rng: Generator, device: torch.device) -> nn.Sequential:
    """A small network from the classifier's inputs to the space of comparison. Only training needs it."""
    layers = [nn.utils.skip_init(nn.Linear, features, size) for size in (features, DIMENSIONS)]
    for layer in layers:
        nn.init.xavier_uniform_(layer.weight, generator=rng)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.ReLU(), layers[1]).to(device)


def contrastive_loss(projected: Tensor, target: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """The mean over samples of −log p(another sample of the same class), among all other samples of the batch."""
    z = F.normalize(projected.float(), dim=1)
    same = target[:, None] == target
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    similarity = (z @ z.T / temperature).masked_fill(itself, -torch.inf)
    logarithms = torch.log_softmax(similarity, 1).masked_fill(itself, 0.0)
    others = (same & ~itself).sum(1)
    return -((logarithms * same).sum(1) / others.clamp_min(1)).mean()
