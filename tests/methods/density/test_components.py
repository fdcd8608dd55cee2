import pytest
import torch

from spacenet.methods.density import components
from spacenet.methods.density.densities import Densities


def chosen(*own: torch.Tensor) -> list[int]:
    """How many Gaussians classes with these samples get, at most two."""
    y = torch.cat([torch.full((len(z),), number) for number, z in enumerate(own)])
    densities = Densities(2, 4, 0.01, whiten=False, choose_components=True)
    densities.add(torch.cat(own), y, range(len(own)), torch.Generator().manual_seed(0))
    assert densities.classes is not None
    counts: list[int] = densities.classes.weight.isfinite().sum(1).tolist()
    return counts


def clouds(count: int, *centers: float) -> torch.Tensor:
    rng = torch.Generator().manual_seed(count)
    return torch.cat([torch.randn(count, 4, generator=rng) + center for center in centers])


def test_one_for_a_cloud_two_for_a_pair_and_one_for_very_few_samples() -> None:
    assert chosen(clouds(200, 0), clouds(100, 3, 9), clouds(5, 0)) == [1, 2, 1]
    assert chosen(clouds(100, 0, 6)) == [2]


@pytest.mark.parametrize(("told_apart", "counts"), [((-1.0, 0.0), [1, 1]), ((0.0, -1.0), [2, 2])])
def test_one_for_all_where_that_tells_the_classes_apart_better(
    told_apart: tuple[float, float], counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two Gaussians follow the samples of each class best; `told_apart` is how well these and one do otherwise."""
    found = iter(told_apart)
    monkeypatch.setattr(components, "likelihoods", lambda scores, y: torch.full((len(y),), next(found)))
    assert chosen(clouds(100, 0, 6), clouds(100, 3, 9)) == counts


def test_with_very_many_classes_one_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "MANY_CLASSES", 1)
    assert chosen(clouds(100, 0, 6), clouds(100, 3, 9)) == [1, 1]
