import pytest
import torch
from torch.nn import functional as F

from spacenet.methods import ranpac as module
from spacenet.methods.ranpac import RanPAC, random_features
from tests.methods.support import CUT, accuracy, learn, make, small_stream


def ranpac(size: int = 50) -> RanPAC:
    method = make(RanPAC, {"random_features": size})
    assert isinstance(method, RanPAC)
    return method


def test_it_learns_without_an_epoch_and_remembers() -> None:
    method, stream = ranpac(), small_stream()
    assert learn(method, stream) == []
    assert min(accuracy(method, stream)) > 0.8


@pytest.mark.parametrize("cut", [CUT, ((0,), (1, 2, 3), (4, 5)), ((0, 1, 2, 3, 4, 5),)])
def test_the_sums_are_those_of_all_data_at_once(cut: tuple[tuple[object, ...], ...]) -> None:
    method, stream = ranpac(), small_stream(cut)
    learn(method, stream)
    x, y = torch.cat([task.train.x for task in stream]), torch.cat([task.train.y for task in stream])
    found = random_features(method._projection(), x)
    torch.testing.assert_close(method.correlations, found.T @ found, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(method.sums, found.T @ F.one_hot(y, 6).float(), rtol=1e-4, atol=1e-4)


def test_the_ridge_is_that_of_the_smallest_error_on_held_out_samples() -> None:
    method, stream = ranpac(), small_stream()
    learn(method, stream[:1])
    task = stream[0]
    held = torch.arange(len(task.train.x)) % module.HELD_OUT == module.HELD_OUT - 1
    again = ranpac()
    again.dimensions, again.correlations, again.sums = 8, torch.zeros(50, 50), torch.zeros(50, 2)
    again._add(task.train.x[~held], task.train.y[~held], again._projection())
    found, target = random_features(again._projection(), task.train.x[held]), F.one_hot(task.train.y[held], 2)
    errors = [float((found @ again._solve(ridge) - target).square().mean()) for ridge in module.RIDGES]
    assert float(method.ridge) == pytest.approx(module.RIDGES[errors.index(min(errors))])


def test_the_classifier_is_ridge_regression() -> None:
    method, stream = ranpac(), small_stream()
    learn(method, stream)
    x, y = torch.cat([task.train.x for task in stream]), torch.cat([task.train.y for task in stream])
    found, ridge = random_features(method._projection(), x).double(), float(method.ridge)
    added = ridge * (found.T @ found).diagonal().mean() * torch.eye(50, dtype=torch.double)
    expected = torch.linalg.solve(found.T @ found + added, found.T @ F.one_hot(y, 6).double())
    torch.testing.assert_close(method.predict(x).double(), found @ expected, rtol=1e-2, atol=1e-3)


def test_it_keeps_the_correlations_and_sums() -> None:
    method = ranpac(20)
    learn(method, small_stream())
    assert method.parameters_kept() == 20 * 20 + 20 * 6 + 1
