import pytest
import torch
from torch.nn import functional as F

from spacenet.data.stream import Stream
from spacenet.errors import SettingsError
from spacenet.methods.fecam import FeCAM, normalize_variances, shrink
from tests.methods.support import TRAINING, accuracy, copy_state, learn, make, small_stream
from tests.nets.test_convolutions import TRAINING as CNN_TRAINING
from tests.nets.test_convolutions import images, tiny_cnn


def fecam(**settings: object) -> FeCAM:
    method = make(FeCAM, settings)
    assert isinstance(method, FeCAM)
    return method


def test_only_the_first_task_is_trained() -> None:
    method, stream = fecam(), small_stream()
    epochs = learn(method, stream[:1])
    assert len(epochs) == TRAINING.epochs
    trained = {name: tensor.clone() for name, tensor in method.network_state().items()}
    assert learn(method, list(stream)[1:]) == []
    assert all(torch.equal(tensor, trained[name]) for name, tensor in method.network_state().items())
    assert method.predict(stream[0].test.x).shape == (60, 6)
    assert sum(accuracy(method, stream)) / 3 > 0.7


def test_batch_norm_is_frozen_after_the_first_task_too() -> None:
    method, stream = FeCAM(tiny_cnn(), FeCAM.Settings(), 0), images(2)
    learn(method, stream[:1], CNN_TRAINING)
    assert method.statistics()
    trained = {name: tensor.clone() for name, tensor in method.network_state().items()}
    learn(method, list(stream)[1:], CNN_TRAINING)
    assert all(torch.equal(tensor, trained[name]) for name, tensor in method.network_state().items())


def test_shrinking_by_hand() -> None:
    """Variances 2 and 4 have the mean 3; the only covariance is 1."""
    covariance = torch.tensor([[2.0, 1.0], [1.0, 4.0]])
    torch.testing.assert_close(shrink(covariance, 1.0, 1.0), torch.tensor([[5.0, 2.0], [2.0, 7.0]]))
    torch.testing.assert_close(shrink(covariance, 2.0, 0.5), torch.tensor([[8.0, 1.5], [1.5, 10.0]]))
    torch.testing.assert_close(shrink(torch.tensor([[3.0]]), 1.0, 1.0), torch.tensor([[6.0]]))


def test_correlations_by_hand() -> None:
    found = normalize_variances(torch.tensor([[4.0, 3.0], [3.0, 9.0]]))
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.5], [0.5, 1.0]]))
    assert torch.equal(normalize_variances(torch.zeros(2, 2)), torch.eye(2))


def spelled_out(method: FeCAM, stream: Stream, x: torch.Tensor) -> torch.Tensor:
    """Distances to each class, one sample after the other."""
    columns = []
    for task in stream:
        for number in task.classes:
            h = method.features(task.train.x[task.train.y == number]).double()
            covariance = torch.cov(h.sqrt().T, correction=0)
            size = len(covariance)
            beside = (covariance.sum() - covariance.trace()) / (size * (size - 1))
            covariance += torch.full((size, size), float(beside)).fill_diagonal_(float(covariance.trace() / size))
            deviation = covariance.diagonal().sqrt()
            inverse = torch.linalg.inv(covariance / torch.outer(deviation, deviation))
            mean = F.normalize(h.mean(0).sqrt(), dim=0)
            away = F.normalize(method.features(x).double().sqrt()) - mean
            columns.append(torch.stack([d @ inverse @ d for d in away]))
    return torch.stack(columns, 1)


def test_the_nearest_class_by_its_own_correlations_wins() -> None:
    method, stream = fecam(), small_stream()
    learn(method, stream)
    x = stream[1].test.x[:9]
    torch.testing.assert_close(-method.predict(x).double(), spelled_out(method, stream, x), rtol=1e-3, atol=1e-5)


def test_features_are_what_enters_the_classifier() -> None:
    method, stream = fecam(), small_stream()
    learn(method, stream[:1])
    x, values = stream[0].test.x, method.params
    scores = method.features(x) @ values["hidden2-output"].T + values["output.bias"]
    torch.testing.assert_close(scores, method.blueprint.forward(values, x))


def test_covariances_are_memory() -> None:
    method = fecam()
    learn(method, small_stream())
    assert method.covariances.dtype == torch.float32
    assert method.extra_bytes() == 4 * (6 * 30 + 6 * 30 * 30)


def test_a_class_of_one_sample_is_as_good_as_its_mean() -> None:
    method = fecam()
    learn(method, small_stream()[:1])
    state = copy_state(method)
    state["covariances"][0] = 0.0
    method.load_state(state)
    x = small_stream()[0].test.x[:5]
    away = F.normalize(method.features(x).sqrt()) - F.normalize(method.means[0].sqrt(), dim=0)
    torch.testing.assert_close(-method.predict(x)[:, 0], away.square().sum(1))


@pytest.mark.parametrize(
    "settings",
    [
        {"power": 0.0},
        {"power": 1.5},
        {"diagonal": 0.0},
        {"diagonal": float("inf")},
        {"off_diagonal": -0.1},
        {"off_diagonal": 1.1},
    ],
)
def test_settings_out_of_range(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        fecam(**settings)
