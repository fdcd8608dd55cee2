"""Prediction of methods that have one model for each task, and nobody to say which task an input belongs to."""

from abc import abstractmethod

import torch
from torch import Tensor

from spacenet.methods.base import Method


class TaskModels(Method):
    """Every task's model answers, and the most probable class wins: as the paper adapted DEN."""

    @abstractmethod
    def scores(self, x: Tensor, task: int) -> Tensor:
        """The scores that the task's own model gives to the task's own classes, one column for each."""

    def predict(self, x: Tensor) -> Tensor:
        """Probabilities; each task's own sum to 1."""
        with torch.no_grad():
            return torch.cat([self.scores(x, task).softmax(1) for task in range(len(self.classes))], 1)
