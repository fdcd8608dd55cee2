"""CWR+: the network is trained once, and each task adds output weights for its classes."""

from typing import ClassVar

from torch import Tensor

from spacenet.methods.base import Method, Uniform
from spacenet.methods.shared.masked import ConsolidatedOutputs, OwnLossSettings


class CWR(ConsolidatedOutputs):
    """Below the output layer, everything is trained on the first task only. Outputs are trained task by task."""

    name = "cwr"
    strategy = "Architectural"
    reference = "Maltoni, Lomonaco: Continuous learning in single-incremental-task scenarios. Neural Networks, 2019"
    settings_from = "The stream's own training, four epochs on Split Fashion-MNIST; nothing else to choose."
    settings: OwnLossSettings
    training_space: ClassVar = Method.training_space | {"training.epochs": Uniform(1, 20, integer=True)}

    def trainable_masks(self) -> dict[str, Tensor]:
        below = self.empty_masks(self.params) if self.tasks_learned else {}
        return below | super().trainable_masks()

    def effective_params(self) -> dict[str, Tensor]:
        """What is frozen as a whole is a constant: no gradient is computed for it."""
        constant = self.frozen.keys() - set(self.output_names())
        return {name: self.frozen[name] if name in constant else self.effective_param(name) for name in self.params}
