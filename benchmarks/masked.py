"""SpaceNet as it is usually written: dense weights of full width, and masks that keep the gradients from most of them.

The package's own masked dense form scatters a task's values into a frozen block; this one does without and may be
faster, so that the compact form is compared with the better of the two.
"""

import torch
from torch import Tensor, nn

from spacenet.data.stream import Samples, Task
from spacenet.methods.base import Batch
from spacenet.methods.spacenet import SpaceNet
from spacenet.space.workspace import Workspace
from spacenet.utils.optimizers import Optimizer


class MaskedDense(SpaceNet):
    """Needs `masked_dense`, and an optimizer that leaves a weight alone whose gradient is 0 (SGD without weight decay).

    The workspace is only brought up to date where it rewires, is saved, or commits.
    """

    name = "masked-dense"

    def open_workspace(self, workspace: Workspace, task: Task, data: Samples) -> None:
        super().open_workspace(workspace, task, data)
        self.values = {key: nn.Parameter(value.detach().clone()) for key, value in workspace.params().items()}
        self.masks = {key: torch.zeros_like(value.detach()) for key, value in self.values.items()}
        self.omega = {name: torch.zeros_like(self.masks[name]) for name in workspace.links}
        self._read_workspace()
        for layer in self.blueprint.layers:
            for key in layer.keys():
                self.masks[key][workspace.selected[layer.name]] = 1.0

    def parameters(self) -> list[nn.Parameter]:
        return list(self.values.values())

    def forward(self, batch: Batch) -> Tensor:
        return self.blueprint.forward(self.values, batch.x)

    def step(self, optimizer: Optimizer) -> None:
        for key, value in self.values.items():
            assert value.grad is not None
            value.grad.mul_(self.masks[key])
        before = {name: self.values[name].detach().clone() for name in self.omega}
        optimizer.step()
        for name, change in before.items():
            value = self.values[name]
            assert value.grad is not None
            self.omega[name] += change.sub_(value.detach()).mul_(value.grad).abs_()

    def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
        if not last:
            self._update_workspace().rewire(self.settings.rewire_fraction)
            self._read_workspace()

    def state(self) -> dict[str, Tensor]:
        if self.workspace is not None:
            self._update_workspace()
        return super().state()

    def end_task(self, task: Task) -> None:
        self._update_workspace()
        super().end_task(task)

    def _update_workspace(self) -> Workspace:
        workspace = self.active_workspace()
        for name, opened in workspace.links.items():
            opened.params.copy_(self.values[name].detach().flatten()[opened.position])
            opened.importance.copy_(self.omega[name].flatten()[opened.position])
        for layer in self.blueprint.layers:
            for key in layer.keys():
                workspace.unit_params[key].copy_(self.values[key].detach()[workspace.selected[layer.name]])
        return workspace

    def _read_workspace(self) -> None:
        """Weights, masks and importance of the links as the workspace has them now."""
        workspace = self.active_workspace()
        weights = workspace.params()
        for name, opened in workspace.links.items():
            self.values[name].data.copy_(weights[name].detach())
            self.masks[name].zero_().view(-1)[opened.position] = 1.0
            self.omega[name].zero_().view(-1)[opened.position] = opened.importance
