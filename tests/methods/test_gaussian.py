import pytest
import torch

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.density.densities import Densities, scores
from spacenet.methods.gaussian import Gaussian
from spacenet.methods.shared.class_statistics import SEED
from spacenet.nets.mlp import build_mlp
from spacenet.utils.seeding import generator
from tests.methods.support import accuracy, learn, make, small_stream
from tests.nets.test_convolutions import images


def gaussian(**settings: object) -> Gaussian:
    method = make(Gaussian, settings)
    assert isinstance(method, Gaussian)
    return method


def test_it_learns_without_an_epoch_and_remembers() -> None:
    method, stream = gaussian(), small_stream()
    assert learn(method, stream) == []
    assert min(accuracy(method, stream)) > 0.8
    assert method.tasks_learned == 3
    assert method.layer_usage() == []


def test_it_keeps_exactly_the_statistics_of_the_density_package() -> None:
    method, stream, by_hand = gaussian(directions=3, shrinkage=0.6), small_stream(), Densities(2, 3, 0.6, whiten=False)
    learn(method, stream)
    for task in stream:
        by_hand.add(task.train.x, task.train.y, task.classes, generator(0, SEED, task.index))
    kept = method.network_state()
    assert kept.keys() == by_hand.tensors().keys()
    assert all(torch.equal(kept[name], tensor) for name, tensor in by_hand.tensors().items())
    x = stream[1].test.x
    assert torch.equal(method.predict(x), scores(by_hand.compute_params(), x))
    assert torch.equal(method.forward(Batch(x, stream[1].test.y, torch.arange(len(x)))), method.predict(x))


def test_one_gaussian_with_unit_covariance_is_the_nearest_mean() -> None:
    """With a shrinkage of 1 every covariance is the identity, so the least distance decides."""
    method, stream = gaussian(components=1, shrinkage=1.0), small_stream()
    learn(method, stream)
    means = torch.stack([task.train.x[task.train.y == number].mean(0) for task in stream for number in task.classes])
    x = torch.cat([task.test.x for task in stream])
    assert torch.equal(method.predict(x).argmax(1), torch.cdist(x, means).argmin(1))


def test_a_later_task_changes_no_old_score() -> None:
    method, stream = gaussian(), small_stream()
    x = stream[0].test.x
    learn(method, stream[:1])
    before = method.predict(x)
    learn(method, [stream[1]])
    after = method.predict(x)
    assert after.shape == (60, 4)
    torch.testing.assert_close(after[:, :2], before)


def test_what_is_kept_of_classes_and_what_fewer_directions_would_say() -> None:
    method, stream = gaussian(directions=3), small_stream()
    learn(method, stream)
    kept = method.class_memory((8,))
    assert kept is not None
    assert (kept.representation, kept.dimensions, kept.gaussians, kept.directions) == ("inputs", 8, 2, 3)
    assert kept.bytes == method.bytes_kept()
    x = stream[1].test.x
    assert torch.equal(method.truncate(3)(x), method.predict(x))
    assert not torch.equal(method.truncate(1)(x), method.predict(x))


def test_auto_takes_edges_of_images_and_else_inputs() -> None:
    stream = images(1)
    kept = {}
    for kind in ("auto", "edges", "inputs"):
        method = Gaussian(build_mlp((144,), (4,)), Gaussian.Settings(representation=kind), 0)
        assert method.check(stream) == []
        learn(method, stream)
        kept[kind] = method.network_state()["classes/mean"]
    assert torch.equal(kept["auto"], kept["edges"])
    assert kept["inputs"].shape[-1] == stream[0].train.x[0].numel() != kept["edges"].shape[-1]


def test_edges_of_samples_that_are_not_images_are_an_error_before_training() -> None:
    with pytest.raises(SettingsError, match=r"shape \(8,\) are not images with edges"):
        gaussian(representation="edges").check(small_stream())


@pytest.mark.parametrize("settings", [{"components": 0}, {"directions": 0}, {"shrinkage": 0.0}, {"shrinkage": 1.1}])
def test_settings_out_of_range(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        gaussian(**settings)
