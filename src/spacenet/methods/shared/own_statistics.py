"""Statistics of a task's classes on the features of the task's own network, see `methods.spacenet_experts`.

Features are scaled so that a task's classes have the identity as their mean covariance. Then the log-densities of
classes of different tasks can be compared, although their features have nothing in common.
"""

from torch import Tensor

from spacenet.methods.density.densities import MOST, Densities, complete_scores, scores
from spacenet.space.blueprint import Params

CHOSEN = "chosen"


def own_params(own: Densities, chosen: Tensor | None) -> dict[str, Tensor]:
    """What `own_scores` computes with; `chosen` are the classes whose scores are returned, all if None."""
    return {**own.compute_params(), **own.scaling_params()} | ({} if chosen is None else {CHOSEN: chosen})


def own_scores(params: Params, h: Tensor, shrinkage: float) -> Tensor:
    """The log-densities of a task's classes at features (n, d), in 64 bits and always finite."""
    found = complete_scores(params, scores(params, h), h, shrinkage).clamp_min(-MOST)
    return found.index_select(1, params[CHOSEN]) if CHOSEN in params else found
