"""How many Gaussians each class of a task gets, chosen on samples that are left out in turn."""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from spacenet.methods.density.calibration import likelihoods
from spacenet.methods.density.statistics import ClassStatistics

FOLDS, FOLD_SAMPLES = 4, 4000
"""How often samples are left out, and of how many samples at most: of a class, and of a task ten times as many."""
LEAST, MANY_CLASSES, MANY_DENSITIES = 2 * FOLDS, 1000, 4_000_000
"""A class with fewer samples gets one Gaussian, and so do all where they are more; and how many densities of all
classes at the left-out samples are computed."""

Fit = Callable[[Tensor, int, Generator], ClassStatistics]
Score = Callable[[ClassStatistics, Tensor], Tensor]


def choose_components(own: Sequence[Tensor], most: int, fit: Fit, score: Score, rng: Generator) -> list[int]:
    """For each class of a task the number of Gaussians that gives its left-out samples the largest density; one for all
    of them if the classes are then told apart better, because more Gaussians follow tails that say little about it.

    own    the samples of each class, (n, d)
    most   the largest number of Gaussians
    fit    computes the statistics of samples with a number of Gaussians
    score  the log-density of each of several statistics at samples
    """
    large = [z for z in own if len(z) >= LEAST]
    chooses = most > 1 and 0 < len(large) <= MANY_CLASSES
    chosen = iter(_choose(large, most, fit, score, rng) if chooses else [1] * len(large))
    return [next(chosen) if len(z) >= LEAST else 1 for z in own]


def _choose(own: Sequence[Tensor], most: int, fit: Fit, score: Score, rng: Generator) -> list[int]:
    """The same for classes that have enough samples."""
    count, numbers = len(own), range(1, most + 1)
    each = max(LEAST, min(FOLD_SAMPLES, 10 * FOLD_SAMPLES // count, MANY_DENSITIES // count**2))
    orders = [torch.randperm(len(z), generator=rng)[:each] for z in own]
    found, labels = [], []
    for fold in range(FOLDS):
        rest = [z[_without(order, fold)] for z, order in zip(own, orders, strict=True)]
        candidates = ClassStatistics.concat(None, [fit(z, number, rng) for z in rest for number in numbers])
        left_out = [z[order[fold::FOLDS]] for z, order in zip(own, orders, strict=True)]
        found.append(score(candidates, torch.cat(left_out)).double().view(-1, len(own), most))
        labels += [torch.full((len(z),), number) for number, z in enumerate(left_out)]
    density, y = torch.cat(found), torch.cat(labels)
    best = torch.stack([density[y == number, number].sum(0).argmax() for number in range(len(own))])
    chosen = density.gather(2, best.expand(len(y), -1)[..., None])[..., 0]
    if len(own) > 1 and likelihoods(chosen, y).sum() < likelihoods(density[..., 0], y).sum():
        return [1] * len(own)
    return [numbers[index] for index in best.tolist()]


def _without(order: Tensor, fold: int) -> Tensor:
    return torch.cat([order[each::FOLDS] for each in range(FOLDS) if each != fold])
