"""CWR+: the network is learned once, and each task adds an output layer for its classes."""

from typing import ClassVar

import torch
from torch import Tensor

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Task
from spacenet.methods.shared.consolidated import ConsolidatedOutputs


class CWR(ConsolidatedOutputs):
    """Below the output layer everything is trained on the first task only. Outputs are trained task by task."""

    name = "cwr"
    strategy = "Architectural"
    reference = "Maltoni, Lomonaco: Continuous learning in single-incremental-task scenarios. Neural Networks, 2019"
    presets: ClassVar = {"split-fashion-mnist": {"training": {"epochs": 4}}}
    settings_from = "The stream's own training, four epochs on Split Fashion-MNIST; nothing else to choose."
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.001, 0.3, log=True),
        "training.epochs": Uniform(1, 20, integer=True),
    }

    def free_numbers(self, task: Task) -> dict[str, Tensor]:
        outputs = super().free_numbers(task)
        if task.index == 0:
            return outputs
        return {name: torch.zeros_like(value, dtype=torch.bool) for name, value in self.values.items()} | outputs

    def in_training(self) -> dict[str, Tensor]:
        """What is frozen as a whole is a constant: no gradient is computed for it."""
        frozen = self.fixed.keys() - set(self.output_names())
        return {name: self.fixed[name] if name in frozen else self._now(name) for name in self.values}
