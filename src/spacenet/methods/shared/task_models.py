"""Prediction with one model per task, when the task of an input is unknown."""

from abc import abstractmethod

import torch
from torch import Tensor

from spacenet.methods.base import Method


class TaskModels(Method):
    """Every task's model predicts, and the most probable class of all wins, as in the paper's adaptation of DEN."""

    @abstractmethod
    def scores(self, x: Tensor, task: int) -> Tensor:
        """The scores of the task's own model for the task's own classes, one column each."""

    def predict(self, x: Tensor) -> Tensor:
        """Probabilities; those of each task sum to 1."""
        with torch.no_grad():
            return torch.cat([self.scores(x, task).softmax(1) for task in range(len(self.classes))], 1)
