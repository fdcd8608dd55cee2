"""SGD and Adam.

They give the same bits as torch.optim.SGD(...) and torch.optim.Adam(..., fused=True) on the CPU. Importing torch.optim,
or making one of its optimizers, takes longer than training a small network.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from spacenet.errors import RunError
from spacenet.utils.tensors import check_shapes, in_section

Parameters = Mapping[str, nn.Parameter] | Sequence[nn.Parameter]
"""Parameters by name; those of a sequence are named by their position."""


class Optimizer(ABC):
    """Updates parameters from their gradients; parameters without a gradient are left alone."""

    def __init__(self, parameters: Parameters, learning_rate: float, weight_decay: float = 0.0) -> None:
        given = parameters if isinstance(parameters, Mapping) else {str(i): p for i, p in enumerate(parameters)}
        self.named_parameters = dict(given)
        self.parameters, self.weight_decay = list(self.named_parameters.values()), weight_decay
        self.state: dict[nn.Parameter, dict[str, Tensor]] = {}  # what is kept of each parameter's past gradients
        self._tensors = {parameter: parameter.detach() for parameter in self.parameters}  # not known to autograd
        on_gpu = any(parameter.is_cuda for parameter in self.parameters)
        self.rate = torch.tensor(learning_rate, device=self.parameters[0].device) if on_gpu else learning_rate
        """The learning rate; on a GPU it lies there, so that a recorded step reads its present value."""

    def set_rate(self, rate: float) -> None:
        self.rate = self.rate.fill_(rate) if isinstance(self.rate, Tensor) else rate

    def step(self) -> None:
        used = [(self._tensors[p], p.grad, self._history(p)) for p in self.parameters if p.grad is not None]
        if used:
            tensors, gradients, histories = map(list, zip(*used, strict=True))
            self._update(tensors, gradients, histories)

    @abstractmethod
    def _update(self, tensors: list[Tensor], gradients: list[Tensor], histories: list[dict[str, Tensor]]) -> None:
        """Update parameters, whose numbers are `tensors`, and what is kept of each one's past gradients."""

    @abstractmethod
    def _initial(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """What `state` holds of a parameter at first; only shapes and devices matter where it is loaded."""

    def _history(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        if parameter not in self.state:
            self.state[parameter] = self._initial(parameter)
        return self.state[parameter]

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def reset(self, parameter: nn.Parameter, rows: Tensor) -> None:
        """Forget the past of these rows of a parameter."""
        for history in self.state.get(parameter, {}).values():
            if history.shape == parameter.shape:
                history.index_fill_(0, rows.to(history.device), 0.0)

    def state_tensors(self) -> dict[str, Tensor]:
        """The state as `parameter/kind`, by the parameters' names: their order does not matter."""
        states = [in_section(name, self.state.get(p, {})) for name, p in self.named_parameters.items()]
        return {key: tensor for state in states for key, tensor in state.items()}

    def load_state_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `state_tensors` returned; raise `RunError` if it is not of an optimizer like this one."""
        saved: dict[str, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            name, _, kind = key.rpartition("/")
            saved.setdefault(name, {})[kind] = tensor
        state = {}
        try:
            if unknown := sorted(saved.keys() - self.named_parameters.keys()):
                raise ValueError(f"unknown content ({', '.join(unknown[:3])})")
            for name, kept in saved.items():
                parameter = self.named_parameters[name]
                shapes = {kind: tuple(tensor.shape) for kind, tensor in self._initial(parameter).items()}
                check_shapes(kept, shapes, name)
                state[parameter] = {kind: tensor.to(parameter.device, copy=True) for kind, tensor in kept.items()}
        except ValueError as error:
            raise RunError(
                f"the saved state of the optimizer is not of this optimizer and network: {error}. If another version "
                "of spacenet saved it, the run has to start again, in another folder"
            ) from error
        self.state = state


class SGD(Optimizer):
    """Stochastic gradient descent with momentum and weight decay."""

    def __init__(
        self,
        parameters: Parameters,
        learning_rate: float,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        *,
        nesterov: bool = False,
    ) -> None:
        super().__init__(parameters, learning_rate, weight_decay)
        self.momentum, self.nesterov = momentum, nesterov

    def _initial(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        # Adding a gradient to -0.0 gives the gradient to the bit, and 0.0 would turn its -0.0 into 0.0.
        return {"momentum": torch.full_like(parameter, -0.0)} if self.momentum else {}

    def _update(self, tensors: list[Tensor], gradients: list[Tensor], histories: list[dict[str, Tensor]]) -> None:
        momenta = [history["momentum"] for history in histories if self.momentum]
        if isinstance(self.rate, Tensor):  # on a GPU, in one kernel that reads the learning rate there
            settings: dict[str, Any] = {"lr": self.rate, "momentum": self.momentum, "weight_decay": self.weight_decay}
            settings |= {"dampening": 0.0, "nesterov": self.nesterov, "maximize": False, "is_first_step": False}
            torch._fused_sgd_(tensors, gradients, momenta, **settings)
            return
        if self.weight_decay:
            gradients = list(torch._foreach_add(gradients, tensors, alpha=self.weight_decay))
        if self.momentum:
            torch._foreach_mul_(momenta, self.momentum)
            torch._foreach_add_(momenta, gradients)
            ahead = torch._foreach_add(gradients, momenta, alpha=self.momentum) if self.nesterov else momenta
            gradients = list(ahead)
        torch._foreach_add_(tensors, gradients, alpha=-self.rate)


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015) with its usual constants; weight decay is added to the gradient."""

    def _initial(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        # The number of steps lies on the parameter's device, so that a recorded step counts.
        steps = torch.zeros((), dtype=torch.float32, device=parameter.device)
        return {"mean": torch.zeros_like(parameter), "square": torch.zeros_like(parameter), "steps": steps}

    def _update(self, tensors: list[Tensor], gradients: list[Tensor], histories: list[dict[str, Tensor]]) -> None:
        means, squares, steps = ([history[name] for history in histories] for name in ("mean", "square", "steps"))
        settings: dict[str, Any] = {"lr": self.rate, "weight_decay": self.weight_decay, "eps": 1e-8}
        settings |= {"beta1": 0.9, "beta2": 0.999, "amsgrad": False, "maximize": False}
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(tensors, gradients, means, squares, [], steps, **settings)
