import pytest
import torch

from spacenet.errors import SettingsError
from spacenet.methods.slda import SLDA
from tests.methods.support import CUT, accuracy, learn, make, small_stream


def slda(**settings: object) -> SLDA:
    method = make(SLDA, settings)
    assert isinstance(method, SLDA)
    return method


def test_it_learns_without_an_epoch_and_remembers() -> None:
    method, stream = slda(), small_stream()
    assert learn(method, stream) == []
    assert min(accuracy(method, stream)) > 0.8


@pytest.mark.parametrize("cut", [CUT, ((0,), (1, 2, 3), (4, 5)), ((0, 1, 2, 3, 4, 5),)])
def test_the_covariance_is_that_of_all_data_at_once(cut: tuple[tuple[object, ...], ...]) -> None:
    method, stream = slda(), small_stream(cut)
    learn(method, stream)
    x, y = torch.cat([task.train.x for task in stream]), torch.cat([task.train.y for task in stream])
    means = torch.stack([x[y == number].mean(0) for number in range(6)])
    pooled = torch.cov((x - means[y]).double().T, correction=0)
    assert method.samples == len(x) == 180
    torch.testing.assert_close(method.means, means)
    torch.testing.assert_close(method.covariance.double(), pooled, rtol=1e-5, atol=1e-6)


def test_discriminants_by_hand() -> None:
    """Variances 3 and 1 at a shrinkage of 1/2 are 2 and 1. Classes at (0, 0) and (4, 2): around their middle (2, 1)
    the discriminants are -(1, 1) and (1, 1), and the constants -(2 · 1 + 1 · 1)/2."""
    method = slda(shrinkage=0.5)
    method.samples = 9
    method.means, method.covariance = torch.tensor([[0.0, 0.0], [4.0, 2.0]]), torch.diag(torch.tensor([3.0, 1.0]))
    method.middle = torch.tensor([2.0, 1.0])
    found = method.scores(method.compute_params(), torch.tensor([[2.0, 1.0], [4.0, 2.0], [2.0, 0.0]]))
    torch.testing.assert_close(found, torch.tensor([[-1.5, -1.5], [-4.5, 1.5], [-0.5, -2.5]]))


def test_what_all_classes_share_does_not_round_the_rest_away() -> None:
    """A feature that is the same everywhere has no variance, so its weight is one over the shrinkage."""
    method = slda(shrinkage=1e-5)
    method.samples = 9
    method.means = torch.tensor([[1000.0, 0.0], [1000.0, 1.0]])
    method.middle = method.means.mean(0)
    method.covariance = torch.tensor([[0.0, 0.0], [0.0, 1.0]])
    found = method.scores(method.compute_params(), torch.tensor([[1000.0, 0.25]]))
    assert float(found[0, 0] - found[0, 1]) == pytest.approx(0.25, rel=1e-4)


def test_it_keeps_means_one_covariance_and_an_origin() -> None:
    method = slda()
    learn(method, small_stream())
    assert method.parameters_kept() == 6 * 8 + 8 * 8 + 8  # and where they are counted from
    assert method.extra_bytes() == 0


@pytest.mark.parametrize("shrinkage", [0.0, -1.0, 1.5, float("nan")])
def test_a_shrinkage_out_of_range(shrinkage: float) -> None:
    with pytest.raises(SettingsError, match="shrinkage"):
        slda(shrinkage=shrinkage)
