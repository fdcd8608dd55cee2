import pytest
import torch
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.independent import Independent
from tests.methods.support import accuracy, copy_state, learn, make, reordered_streams, small_stream
from tests.nets.test_convolutions import TRAINING as CNN_TRAINING
from tests.nets.test_convolutions import images, tiny_cnn


def independent(**settings: object) -> Independent:
    method = make(Independent, settings)
    assert isinstance(method, Independent)
    return method


def test_a_tasks_network_is_narrow_and_has_only_its_own_outputs() -> None:
    method, task = independent(width=0.2), small_stream()[0]
    method.begin_task(task, task.train)
    shapes = {name: tuple(param.shape) for name, param in method.params.items() if param.dim() == 2}
    assert shapes == {"input-hidden1": (6, 8), "hidden1-hidden2": (6, 6), "hidden2-output": (2, 6)}


def test_tasks_share_nothing() -> None:
    """Later tasks change nothing, and the second network is what it would be with another first task."""
    method, other, (stream, swapped) = independent(), independent(), reordered_streams()
    learn(method, stream[:1])
    first = method.predict(stream[0].test.x)
    learn(method, list(stream)[1:])
    assert torch.equal(method.predict(stream[0].test.x)[:, :2], first)
    learn(other, swapped)
    assert torch.equal(other.networks[1]["input-hidden1"], method.networks[1]["input-hidden1"])
    assert not torch.equal(method.networks[0]["input-hidden1"], method.networks[1]["input-hidden1"])
    assert sum(accuracy(method, stream)) / 3 > 0.4  # chance is 1/6


def test_the_largest_raw_score_of_all_networks_wins() -> None:
    method, stream = independent(), small_stream()
    learn(method, stream)
    x = stream[1].test.x
    columns = [method.blueprint.forward(network, x) for network in method.networks]
    assert torch.equal(method.predict(x), torch.cat(columns, 1))


def test_phantoms_take_part_in_the_loss() -> None:
    method, stream = independent(phantom_classes=4), small_stream()
    learn(method, stream[:1])
    method.begin_task(stream[1], stream[1].train)
    batch = Batch.pick(stream[1].train, torch.arange(5))
    output = method.forward(batch)
    expected = F.cross_entropy(torch.cat([output, torch.zeros(5, 4)], 1), batch.y - 2)
    torch.testing.assert_close(method.loss(output, batch), expected)


def test_every_network_is_counted_once() -> None:
    method = independent(width=0.5)
    learn(method, small_stream())
    assert method.parameters_kept() == 3 * (8 * 15 + 15 + 15 * 15 + 15 + 15 * 2 + 2)
    assert method.extra_bytes() == 0
    assert [(p.units, p.connections) for p in method.layer_usage()] == [(45, 360), (45, 675), (6, 90)]
    again = independent(width=0.5)
    again.load_state(copy_state(method))
    assert again.layer_usage() == method.layer_usage()


def test_feature_maps_are_divided_too() -> None:
    method, stream = Independent(tiny_cnn(), Independent.Settings(width=0.5), 0), images(2)
    learn(method, stream, CNN_TRAINING)
    widths = [layer.size for layer in tiny_cnn().hidden]
    assert [p.units for p in method.layer_usage()[:-1]] == [2 * round(width / 2) for width in widths]


@pytest.mark.parametrize("settings", [{"width": 0.0}, {"width": 1.5}, {"phantom_classes": -1}])
def test_settings_out_of_range(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        independent(**settings)
