"""SGD and Adam on a list of parameters.

They give the same bits as torch.optim.SGD(...) and torch.optim.Adam(..., fused=True) on the CPU. Importing torch.optim,
or making one of its optimizers, takes longer than training a small network.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from spacenet.errors import RunError
from spacenet.utils.tensors import in_section


class Optimizer(ABC):
    """Updates parameters from their gradients; parameters without a gradient are left alone."""

    def __init__(self, parameters: Sequence[nn.Parameter], learning_rate: float, weight_decay: float = 0.0) -> None:
        self.parameters, self.weight_decay = list(parameters), weight_decay
        self.state: dict[nn.Parameter, dict[str, Tensor]] = {}  # what is kept of each parameter's past gradients
        self._tensors = [parameter.detach() for parameter in self.parameters]  # the same memory, unknown to autograd
        self._learning_rate = learning_rate
        on_gpu = any(parameter.is_cuda for parameter in self.parameters)
        self.rate = torch.tensor(learning_rate, device=self.parameters[0].device) if on_gpu else learning_rate
        """The learning rate; on a GPU it lies there, so that a recorded step reads its present value."""

    @property
    def learning_rate(self) -> float:
        """The learning rate; it can be set."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._learning_rate = rate
        self.rate = self.rate.fill_(rate) if isinstance(self.rate, Tensor) else rate

    def step(self) -> None:
        """Update all parameters that have a gradient."""
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        if gradients and len(gradients) == len(self.parameters):
            self._update(self.parameters, self._tensors, gradients)
        elif gradients:
            used = [number for number, parameter in enumerate(self.parameters) if parameter.grad is not None]
            self._update([self.parameters[n] for n in used], [self._tensors[n] for n in used], gradients)

    @abstractmethod
    def _update(self, parameters: list[nn.Parameter], tensors: list[Tensor], gradients: list[Tensor]) -> None:
        """Update the parameters, whose numbers are `tensors`, and their state."""

    @abstractmethod
    def _initial(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """What `state` holds of a parameter at first; only shapes and devices matter where it is loaded."""

    def _histories(self, parameters: list[nn.Parameter]) -> list[dict[str, Tensor]]:
        """The state of each parameter."""
        for parameter in parameters:
            if parameter not in self.state:
                self.state[parameter] = self._initial(parameter)
        return [self.state[parameter] for parameter in parameters]

    def zero_grad(self) -> None:
        """Remove all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def reset(self, parameter: nn.Parameter | None = None, rows: Tensor | None = None) -> None:
        """Forget the past of these rows of a parameter, of a whole parameter, or of all of them."""
        if parameter is None:
            self.state.clear()
        elif rows is None:
            self.state.pop(parameter, None)
        else:
            for history in self.state.get(parameter, {}).values():
                if history.shape == parameter.shape:
                    history.index_fill_(0, rows.to(history.device), 0.0)

    def state_tensors(self) -> dict[str, Tensor]:
        """The state as `index/name`, where `index` counts the parameters."""
        states = [in_section(str(index), self.state.get(p, {})) for index, p in enumerate(self.parameters)]
        return {key: tensor for state in states for key, tensor in state.items()}

    def load_state_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `state_tensors` returned; raise `RunError` if it is not of an optimizer like this one."""
        state: dict[nn.Parameter, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            index, _, name = key.partition("/")
            if not index.isdecimal() or int(index) >= len(self.parameters):
                raise RunError(f"the saved state of the optimizer has {key!r}, and there is no such parameter")
            parameter = self.parameters[int(index)]
            like = self._initial(parameter).get(name)
            if like is None or like.shape != tensor.shape:
                found, expected = tuple(tensor.shape), "nothing" if like is None else f"shape {tuple(like.shape)}"
                raise RunError(f"the saved state of the optimizer has {key!r} of shape {found}, expected {expected}")
            state.setdefault(parameter, {})[name] = tensor.to(like.device, like.dtype, copy=True)
        for parameter, kept in state.items():
            missing = self._initial(parameter).keys() - kept.keys()
            if missing:
                raise RunError(f"the saved state of the optimizer is incomplete: {', '.join(sorted(missing))} missing")
        self.state = state


class SGD(Optimizer):
    """Stochastic gradient descent with momentum and weight decay."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], learning_rate: float, momentum: float = 0.0, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, learning_rate, weight_decay)
        self.momentum = momentum

    def _initial(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        # Adding a gradient to -0.0 gives the gradient to the bit, and 0.0 would turn its -0.0 into 0.0.
        return {"momentum": torch.full_like(parameter, -0.0)} if self.momentum else {}

    def _update(self, parameters: list[nn.Parameter], tensors: list[Tensor], gradients: list[Tensor]) -> None:
        momenta = [history["momentum"] for history in self._histories(parameters)] if self.momentum else []
        if isinstance(self.rate, Tensor):  # on a GPU, in one kernel that reads the learning rate there
            settings: dict[str, Any] = {"lr": self.rate, "momentum": self.momentum, "weight_decay": self.weight_decay}
            settings |= {"dampening": 0.0, "nesterov": False, "maximize": False, "is_first_step": False}
            torch._fused_sgd_(tensors, gradients, momenta, **settings)
            return
        if self.weight_decay:
            gradients = list(torch._foreach_add(gradients, tensors, alpha=self.weight_decay))
        if self.momentum:
            torch._foreach_mul_(momenta, self.momentum)
            torch._foreach_add_(momenta, gradients)
            gradients = momenta
        torch._foreach_add_(tensors, gradients, alpha=-self.rate)


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015) with its usual constants; weight decay is added to the gradient."""

    def _initial(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        # The number of steps lies on the parameter's device, so that a recorded step counts.
        steps = torch.zeros((), dtype=torch.float32, device=parameter.device)
        return {"mean": torch.zeros_like(parameter), "square": torch.zeros_like(parameter), "steps": steps}

    def _update(self, parameters: list[nn.Parameter], tensors: list[Tensor], gradients: list[Tensor]) -> None:
        histories = self._histories(parameters)
        means, squares, steps = ([history[name] for history in histories] for name in ("mean", "square", "steps"))
        settings: dict[str, Any] = {"lr": self.rate, "weight_decay": self.weight_decay, "eps": 1e-8}
        settings |= {"beta1": 0.9, "beta2": 0.999, "amsgrad": False, "maximize": False}
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(tensors, gradients, means, squares, [], steps, **settings)
