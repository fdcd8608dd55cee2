"""Fine-tuning: the lower bound."""

from spacenet.methods.shared.dense import DenseMethod


class Naive(DenseMethod):
    """Each task is learned as if nothing had come before."""

    name = "naive"
    strategy = "Bound"
