"""Synaptic Intelligence: weights that contributed most to the decrease of the loss stay near their old values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt
from torch import Tensor

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.methods.base import MethodSettings
from spacenet.methods.shared.path_integral import PathIntegral
from spacenet.methods.shared.quadratic_penalty import Penalty, QuadraticPenalty, trained_params
from spacenet.utils.optimizers import Optimizer
from spacenet.utils.tensors import in_section, section


@dataclass(frozen=True)
class SISettings(MethodSettings):
    """How strongly the old weights are held."""

    strength: Annotated[float, Ge(0)] = 1.0
    """Factor of the penalty (the paper's c)."""
    damping: Annotated[float, Gt(0)] = 0.1
    """Added to the squared change of a weight, so that the importance of one that hardly changed stays finite (ξ)."""


class SI(QuadraticPenalty):
    """c Σ Ω (θ − θ̃)² is added to the loss (eq. 4); Ω is measured while a task is trained.

    About 20 % on five tasks is correct: weights are preserved, but no old samples are left to keep the scores of new
    classes below those of old ones. So only classes of the last task are predicted.
    """

    name = "si"
    strategy = "Regularization"
    reference = "Zenke, Poole, Ganguli: Continual learning through synaptic intelligence. ICML, 2017"
    settings_from = "Hsu et al. 2018 on Split MNIST and Split Fashion-MNIST; elsewhere van de Ven et al. 2021."
    Settings = SISettings
    settings: SISettings
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.0001, 0.01, log=True),
        "method.strength": Uniform(0.1, 1e4, log=True),
        "method.damping": Uniform(0.001, 1.0, log=True),
    }

    def setup(self) -> None:
        super().setup()
        self.penalty, self.path = Penalty(self.settings.strength), PathIntegral()

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        self.path.begin(trained_params(self.params))
        self.penalty.set_anchor(self.path.start)

    def step(self, optimizer: Optimizer) -> None:
        gradients = self.penalty.data_gradients(self.params)
        self.path.record(self.params, gradients, lambda: super(SI, self).step(optimizer))

    def end_task(self, task: Task) -> None:
        self.penalty.add(self.path.importance(self.params, self.settings.damping))
        super().end_task(task)

    def state(self) -> dict[str, Tensor]:
        return super().state() | (in_section("task", self.path.tensors()) if self.in_task else {})

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        self.path.load(section(state, "task"), self.device)
        if self.in_task:
            self.penalty.set_anchor(self.path.start)
