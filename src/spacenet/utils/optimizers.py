"""Optimizers."""

from torch.optim import Optimizer as Optimizer
