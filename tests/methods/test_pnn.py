import pytest
import torch

from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError
from spacenet.methods.base import Method
from spacenet.methods.pnn import PNN
from tests.methods.support import accuracy, learn, make, small_stream
from tests.nets.test_convolutions import TRAINING, images, tiny_cnn

CAREFUL = TrainingConfig(epochs=2, batch_size=10, learning_rate=0.1, momentum=0.9, weight_decay=0.1)


def pnn(column: float = 0.2, tasks: int = 3) -> PNN:
    method = make(PNN, {"column": column})
    assert isinstance(method, PNN)
    learn(method, small_stream()[:tasks], CAREFUL)
    return method


def test_each_task_adds_a_column_of_the_share_asked_for() -> None:
    assert [layer.units for layer in pnn(0.2, 1).layer_usage()] == [6, 6, 2]
    assert [layer.units for layer in pnn(0.2).layer_usage()] == [18, 18, 6]
    assert {name: widths.tolist() for name, widths in pnn(0.2).widths.items()} == {
        "hidden1": [6, 12, 18],
        "hidden2": [6, 12, 18],
    }


def test_connections_lead_from_earlier_columns_to_later_ones_only() -> None:
    method = pnn(0.1)
    between = method.params["hidden1-hidden2"].detach() != 0
    blocks = between.view(3, 3, 3, 3).permute(0, 2, 1, 3).flatten(2)
    assert torch.equal(blocks.any(2), torch.ones(3, 3).tril().bool())
    assert torch.equal(blocks.all(2), torch.ones(3, 3).tril().bool())
    to_outputs = method.params["hidden2-output"].detach() != 0
    assert torch.equal(to_outputs.view(3, 2, 3, 3).any(1).any(2), torch.ones(3, 3).tril().bool())


def test_only_what_is_connected_is_counted_and_kept() -> None:
    # 3 units a column and layer, 2 outputs a task, 8 inputs: 6 of the 9 blocks between columns.
    method = pnn(0.1)
    assert [layer.connections for layer in method.layer_usage()] == [8 * 9, 6 * 9, 6 * 6]
    assert method.parameters_kept() == 8 * 9 + 6 * 9 + 6 * 6 + 9 + 9 + 6


def old_scores(method: Method, tasks: int) -> list[torch.Tensor]:
    assert isinstance(method, PNN)
    with torch.no_grad():
        return [method.scores(small_stream()[0].test.x, task) for task in range(tasks)]


def test_what_was_learned_stays_to_the_bit() -> None:
    method = pnn(tasks=2)
    before, values = old_scores(method, 2), {name: value.detach().clone() for name, value in method.params.items()}
    learn(method, list(small_stream())[2:], CAREFUL)
    for old, new in zip(before, old_scores(method, 2), strict=True):
        assert torch.equal(old, new)
    for name, value in values.items():
        assert torch.equal(method.params[name].detach()[tuple(map(slice, value.shape))], value)


def test_maps_and_their_norms_stay_too() -> None:
    method, stream = PNN(tiny_cnn(), PNN.Settings(column=0.5), 0), images()
    learn(method, stream[:1], TRAINING)
    before = {name: value.detach().clone() for name, value in method.params.items()}
    learn(method, list(stream)[1:2], TRAINING)
    assert method.params["conv1.norm1.mean"].shape == (12,)
    for name, value in before.items():
        assert torch.equal(method.params[name].detach()[tuple(map(slice, value.shape))], value), name
    assert float(method.params["conv1.norm1.mean"][6:].abs().min()) > 0


def test_a_task_learns_from_the_columns_before() -> None:
    method = pnn(tasks=2)
    with torch.no_grad():
        x = small_stream()[1].test.x
        whole = method.scores(x, 1)
        method.params["hidden1-hidden2"].data[6:, :6] = 0.0
        assert not torch.allclose(method.scores(x, 1), whole)


def test_it_tells_the_classes_of_a_task_apart() -> None:
    method = make(PNN, {"column": 0.5})
    learn(method, small_stream())
    scores = method.predict_all(small_stream()[1].test.x)
    torch.testing.assert_close(scores.view(-1, 3, 2).sum(2), torch.ones(len(scores), 3))
    assert float((scores[:, 2:4].argmax(1) + 2 == small_stream()[1].test.y).float().mean()) > 0.9
    assert sum(accuracy(method, small_stream())) / 3 > 0.4


@pytest.mark.parametrize("column", [0.0, 1.5])
def test_a_column_is_a_share(column: float) -> None:
    with pytest.raises(SettingsError, match="column"):
        PNN.Settings(column=column)
