"""AR1: CWR+'s output layer on a network that keeps learning, regularized by Synaptic Intelligence."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt
from torch import Tensor

from spacenet.methods.base import Uniform
from spacenet.methods.shared.masked import ConsolidatedOutputs
from spacenet.methods.shared.quadratic_penalty import PathIntegralPenalty, PathIntegralSettings


@dataclass(frozen=True)
class AR1Settings(PathIntegralSettings):
    """How strongly the weights below the output layer are held."""

    strength: Annotated[float, Ge(0), Uniform(0.1, 1e4, log=True)] = 100.0
    """Factor of the penalty (λ)."""
    importance_limit: Annotated[float, Gt(0), Uniform(0.0001, 10.0, log=True)] = 0.01
    """Upper bound of a weight's importance (the paper's max F); without it, gradients can become too large."""
    loss_over: Literal["all", "own"] = "own"


class AR1(PathIntegralPenalty, ConsolidatedOutputs):
    """The outputs of each task are trained from zero and kept; for the weights below, λ Σ F (θ − θ̂)² joins the loss."""

    name = "ar1"
    strategy = "Architectural"
    reference = "Maltoni, Lomonaco: Continuous learning in single-incremental-task scenarios. Neural Networks, 2019"
    settings_from = (
        "The strength of van de Ven et al. 2021 for SI on CIFAR-100, which did better on held-out data than "
        "theirs for MNIST; four epochs on Split Fashion-MNIST."
    )
    settings: AR1Settings

    def setup(self) -> None:
        super().setup()
        self.importance_limit = self.settings.importance_limit

    def measured_params(self) -> dict[str, Tensor]:
        """The trained parameters below the output layer."""
        outputs = self.output_names()
        return {name: param for name, param in super().measured_params().items() if name not in outputs}
