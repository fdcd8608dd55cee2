"""How much each parameter contributed to the decrease of the loss during a task: Synaptic Intelligence's measure."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from spacenet.space.blueprint import Params
from spacenet.utils.tensors import in_section, section


class PathIntegral:
    """Accumulates −gradient × step for each parameter during a task (Zenke et al. 2017, eq. 3)."""

    def __init__(self) -> None:
        self.decrease: dict[str, Tensor] = {}
        """How far each number has decreased the loss so far (the paper's ω)."""
        self.start: dict[str, Tensor] = {}
        """The parameters at the beginning of the task."""

    def begin(self, params: Params) -> None:
        """Begin a task with these parameters."""
        self.start = {name: param.detach().clone() for name, param in params.items()}
        self.decrease = {name: torch.zeros_like(param) for name, param in self.start.items()}

    def record(self, params: Params, gradients: Mapping[str, Tensor], step: Callable[[], None]) -> None:
        """Call `step` and record what it changed; `gradients` are those of the data's loss."""
        before = {name: params[name].detach().clone() for name in gradients}
        step()
        for name, gradient in gradients.items():
            self.decrease[name] -= gradient * (params[name].detach() - before[name])

    def importance(self, params: Params, damping: float) -> dict[str, Tensor]:
        """What the task adds to the importance (eq. 5): the decrease of the loss over the squared total change."""
        return {
            name: decrease / ((params[name].detach() - self.start[name]).square() + damping)
            for name, decrease in self.decrease.items()
        }

    def tensors(self) -> dict[str, Tensor]:
        """What is needed to continue in the middle of a task."""
        return in_section("decrease", self.decrease) | in_section("start", self.start)

    def load(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore what `tensors` returned."""
        self.decrease, self.start = (
            {name: tensor.to(device, copy=True) for name, tensor in section(tensors, prefix).items()}
            for prefix in ("decrease", "start")
        )
