"""How much each value did for the fall of the loss on its way through a task: Synaptic Intelligence's measure."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

WAY, START = "way/", "start/"


class PathIntegral:
    """Adds up −gradient × step for each value during a task (Zenke et al. 2017, eq. 3), in place."""

    def __init__(self) -> None:
        self.fall: dict[str, Tensor] = {}
        """How far each number has brought the loss down so far (the paper's ω)."""
        self.start: dict[str, Tensor] = {}

    def begin(self, values: Mapping[str, Tensor]) -> None:
        """A task begins with these values."""
        self.start = {name: value.detach().clone() for name, value in values.items()}
        self.fall = {name: torch.zeros_like(value) for name, value in self.start.items()}

    def follow(self, values: Mapping[str, Tensor], gradients: Mapping[str, Tensor], step: Callable[[], None]) -> None:
        """Let the step happen, with the gradient of the data's loss that led to it."""
        before = {name: values[name].detach().clone() for name in gradients}
        step()
        for name, gradient in gradients.items():
            self.fall[name] -= gradient * (values[name].detach() - before[name])

    def importance(self, values: Mapping[str, Tensor], damping: float) -> dict[str, Tensor]:
        """What the task adds to the importance (eq. 5): the fall of the loss for the square of the way made."""
        return {
            name: fall / ((values[name].detach() - self.start[name]).square() + damping)
            for name, fall in self.fall.items()
        }

    def tensors(self) -> dict[str, Tensor]:
        """What is needed to go on in the middle of a task."""
        fall = {WAY + name: tensor for name, tensor in self.fall.items()}
        return fall | {START + name: tensor for name, tensor in self.start.items()}

    def load(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Take back what `tensors` gave."""
        for prefix, target in ((WAY, self.fall), (START, self.start)):
            for key, tensor in tensors.items():
                if key.startswith(prefix):
                    target[key.removeprefix(prefix)] = tensor.to(device, copy=True)
