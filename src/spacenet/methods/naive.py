"""Fine-tuning: the lower bound."""

from spacenet.methods.shared.dense import DenseMethod


class Naive(DenseMethod):
    """Trains on each task as if it were the only one."""

    name = "naive"
    strategy = "Bound"
