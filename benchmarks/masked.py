"""SpaceNet as it is usually written: dense weights of full width, and masks that keep the gradients from most of them.

The package's own masked dense form scatters a task's parameters into a frozen block; this one does not and may be
faster, so that the compact form is compared with the better of the two.
"""

import torch
from torch import Tensor, nn

from spacenet.data.task import Samples, Task
from spacenet.methods.base import Batch
from spacenet.methods.spacenet import SpaceNet
from spacenet.space.workspace import Workspace
from spacenet.utils.optimizers import Optimizer


class MaskedDense(SpaceNet):
    """Needs `masked_dense`, and an optimizer that leaves a weight alone whose gradient is 0 (SGD without decay).

    The workspace is only a record: it is updated before it rewires, is saved, or commits.
    """

    name = "masked-dense"

    def open_workspace(self, workspace: Workspace, task: Task, data: Samples) -> None:
        super().open_workspace(workspace, task, data)
        self.params = {key: nn.Parameter(param.detach().clone()) for key, param in workspace.params().items()}
        self.masks = {key: torch.zeros_like(param.detach()) for key, param in self.params.items()}
        self.omega = {name: torch.zeros_like(self.masks[name]) for name in workspace.links}
        self._read_workspace()
        for layer in self.blueprint.layers:
            for key in layer.keys():
                self.masks[key][workspace.selected[layer.name]] = 1.0

    def named_parameters(self) -> dict[str, nn.Parameter]:
        return self.params

    def forward(self, batch: Batch) -> Tensor:
        return self.blueprint.forward(self.params, batch.x)

    def step(self, optimizer: Optimizer) -> None:
        for key, param in self.params.items():
            assert param.grad is not None
            param.grad.mul_(self.masks[key])
        before = {name: self.params[name].detach().clone() for name in self.omega}
        optimizer.step()
        for name, change in before.items():
            param = self.params[name]
            assert param.grad is not None
            self.omega[name] += change.sub_(param.detach()).mul_(param.grad).abs_()

    def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
        if not last:
            self._write_workspace().rewire(self.settings.rewire_fraction)
            self._read_workspace()

    def state(self) -> dict[str, Tensor]:
        if self.workspace is not None:
            self._write_workspace()
        return super().state()

    def end_task(self, task: Task) -> None:
        self._write_workspace()
        super().end_task(task)

    def _write_workspace(self) -> Workspace:
        workspace = self.active_workspace()
        for name, opened in workspace.links.items():
            opened.params.copy_(self.params[name].detach().flatten()[opened.position])
            opened.importance.copy_(self.omega[name].flatten()[opened.position])
        for layer in self.blueprint.layers:
            for key in layer.keys():
                workspace.unit_params[key].copy_(self.params[key].detach()[workspace.selected[layer.name]])
        return workspace

    def _read_workspace(self) -> None:
        """Weights, masks and importance of the links as the workspace has them now."""
        workspace = self.active_workspace()
        weights = workspace.params()
        for name, opened in workspace.links.items():
            self.params[name].data.copy_(weights[name].detach())
            self.masks[name].zero_().view(-1)[opened.position] = 1.0
            self.omega[name].zero_().view(-1)[opened.position] = opened.importance
