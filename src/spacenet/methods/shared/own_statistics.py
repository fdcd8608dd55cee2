"""Statistics of a task's classes on the features of the task's own network, see `methods.spacenet_experts`.

Features are scaled so that a task's classes have the identity as their mean covariance. Then the log-densities of
classes of different tasks can be compared, although their features have nothing in common.
"""

from collections.abc import Mapping

from torch import Generator, Tensor

from spacenet.methods.base import Task
from spacenet.methods.density.densities import MOST, Densities, complete_scores, scores
from spacenet.space.blueprint import Params

CHOSEN = "chosen"


def describe_task(empty: Densities, h: Tensor, task: Task, rng: Generator) -> dict[str, Tensor]:
    """The statistics of a task's classes on features (n, d) of its training samples."""
    empty.add(h, task.train.y.cpu(), task.classes, rng, task.train.weight)
    return empty.tensors()


def keep_own(empty: Densities, tensors: Mapping[str, Tensor], places: Tensor) -> dict[str, Tensor]:
    """The statistics of these classes of a task alone, each as often as it is named, counted from the task's first."""
    if not len(places):
        return {}
    empty.load(tensors)
    empty.keep(places)
    return empty.tensors()


def own_params(empty: Densities, tensors: Mapping[str, Tensor], chosen: Tensor | None) -> dict[str, Tensor]:
    """What `own_scores` computes with, with at most as many directions as `empty` has; `chosen` are the classes whose
    scores are returned, all if None."""
    empty.load(tensors)
    found = empty.truncate(empty.directions)
    return {**found.compute_params(), **found.scaling_params()} | ({} if chosen is None else {CHOSEN: chosen})


def own_scores(params: Params, h: Tensor, shrinkage: float) -> Tensor:
    """The log-densities of a task's classes at features (n, d), in 64 bits and always finite."""
    found = complete_scores(params, scores(params, h), h, shrinkage).clamp_min(-MOST)
    return found.index_select(1, params[CHOSEN]) if CHOSEN in params else found
