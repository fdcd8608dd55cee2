"""Fine-tuning: the lower bound."""

from spacenet.methods.shared.dense import DenseMethod, LossSettings


class Naive(DenseMethod):
    """Trains on each task as if it were the only one."""

    name = "naive"
    strategy = "Bound"
    settings: LossSettings
