"""Synaptic Intelligence: weights that contributed most to the decrease of the loss stay near their old values."""

from typing import ClassVar

from spacenet.methods.base import Uniform
from spacenet.methods.shared.quadratic_penalty import PathIntegralPenalty


class SI(PathIntegralPenalty):
    """c Σ Ω (θ − θ̃)² is added to the loss (eq. 4); Ω is measured while a task is trained.

    With the loss over all classes, about 20 % on five tasks is normal: weights are preserved, but no old samples are
    left to keep the scores of new classes below those of old ones, and only classes of the last task are predicted.
    `loss_over` own avoids that.
    """

    name = "si"
    strategy = "Regularization"
    reference = "Zenke, Poole, Ganguli: Continual learning through synaptic intelligence. ICML, 2017"
    settings_from = "Hsu et al. 2018 on Split MNIST and Split Fashion-MNIST; elsewhere van de Ven et al. 2021."
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.0001, 0.01, log=True),
        "method.strength": Uniform(0.1, 1e4, log=True),
        "method.damping": Uniform(0.001, 1.0, log=True),
    }
