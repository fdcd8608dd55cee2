"""More samples of a class of which only the leading directions are kept: the best approximation of the same rank.

Of a Gaussian that has seen m samples, and n new ones, the mean and the total variance are exact. The directions are the
leading ones of what is left of the old samples, of the new ones and of the distance of their means, as in

    Ross, Lim, Lin, Yang: Incremental Learning for Robust Visual Tracking. IJCV 77, 2008
"""

import torch
from torch import Tensor

from spacenet.methods.density.statistics import ClassStatistics

NEGLIGIBLE = 1e-6
"""A singular value that is this part of the largest is rounding."""


def merge_samples(old: ClassStatistics, count: float, z: Tensor, weight: Tensor, member: Tensor) -> ClassStatistics:
    """The statistics of a class, of which there were `count` samples, with more of them.

    z       the new samples in the common scale, (n, d)
    weight  of each of them, (n,)
    member  the Gaussian that each one joins, (n,)
    """
    parts, share = {name: tensor.clone() for name, tensor in old.tensors().items()}, count * old.weight.double().exp()
    for number in member.unique().tolist():
        rows = member == number
        before, new = float(share[number]), weight[rows].double()
        merged = _merge_gaussian({name: part[number] for name, part in parts.items()}, before, z[rows].double(), new)
        for name, value in merged.items():
            parts[name][number] = value
        share[number] = before + new.sum()
    parts["weight"] = (share / share.sum()).log().to(old.weight.dtype)
    return ClassStatistics(**parts)


def _merge_gaussian(old: dict[str, Tensor], before: float, z: Tensor, weight: Tensor) -> dict[str, Tensor]:
    mean, direction, variance = (old[name].double() for name in ("mean", "direction", "variance"))
    directions, dimensions = direction.shape
    new, known = float(weight.sum()), int(direction.any(-1).sum())
    total, center = before + new, weight @ z / new
    rows = torch.cat(
        [
            direction * (before / total * (variance - old["rest"]).clamp_min(0.0)).sqrt()[:, None],
            leading_rows(mean, before, z, weight),
        ]
    )
    rest = before / total * float(old["rest"])  # in every direction, as far as the old samples tell
    kept = before * (variance.sum() + float(old["rest"]) * max(0, dimensions - known))
    spread = (weight @ (z - center).square()).sum() + before * new / total * (center - mean).square().sum()
    found, values = find_directions(rows, min(directions, dimensions))
    values = values + rest
    left = ((kept + spread) / total - values.sum()) / max(1, dimensions - len(values))
    result = {"mean": mean + new / total * (center - mean), "rest": left.clamp_min(0.0)}
    result |= {"variance": torch.zeros_like(variance), "direction": torch.zeros_like(direction)}
    result["variance"][: len(values)], result["direction"][: len(values)] = values, found
    return result


def leading_rows(mean: Tensor, before: float, z: Tensor, weight: Tensor) -> Tensor:
    """Rows R for which RᵀR is what new samples add to the covariance of `before` samples with this mean."""
    new = weight.sum()
    total, center = before + new, weight @ z / new
    shift = ((center - mean) * (before * new / total).sqrt())[None]
    return torch.cat([(z - center) * weight.sqrt()[:, None], shift]) / total.sqrt()


def find_directions(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The orthonormal directions of the largest eigenvalues of RᵀR, at most `count`, and these eigenvalues."""
    _, singular, directions = torch.linalg.svd(rows, full_matrices=False)
    found = min(count, int((singular > NEGLIGIBLE * singular[0]).sum()))
    return directions[:found], singular[:found].square()
