import numpy as np
import pytest
import torch
from torch import Tensor

from spacenet.config.model import PreprocessingConfig
from spacenet.config.training import TrainingConfig
from spacenet.data.dataset import Dataset
from spacenet.data.stream import Stream, Task
from spacenet.errors import SettingsError, SpaceFull
from spacenet.methods.base import Batch
from spacenet.methods.clnp import CLNP, mean_activity
from spacenet.nets.mlp import build_mlp
from tests.methods.support import learn, make, small_stream
from tests.nets.test_convolutions import TRAINING, images, tiny_cnn

CAREFUL = TrainingConfig(epochs=4, batch_size=10, learning_rate=0.1, momentum=0.5, weight_decay=0.01)


def clnp(tasks: int, **settings: object) -> CLNP:
    method = make(CLNP, settings)
    assert isinstance(method, CLNP)
    learn(method, small_stream()[:tasks], CAREFUL)
    return method


def test_activity_is_the_mean_over_samples_and_positions() -> None:
    assert mean_activity(torch.tensor([[1.0, 0.0], [3.0, 2.0]])).tolist() == [2.0, 1.0]
    maps = torch.tensor([[[[1.0, 3.0]], [[0.0, 0.0]]], [[[0.0, 0.0]], [[4.0, 0.0]]]])
    assert mean_activity(maps).tolist() == [1.0, 1.0]


def by_hand() -> tuple[CLNP, Task]:
    """Two inputs, three units, two classes: unit 0 tells them apart, unit 1 is louder but useless, unit 2 is quiet."""
    method = CLNP(build_mlp((2,), (3,)), CLNP.Settings(sparsity=0.5, margin=0.0), 0)
    x, y = np.array([[1.0, 1.0], [0.0, 1.0]], dtype=np.float32), np.array([0, 1])
    task = Stream(
        "two",
        Dataset("two", x, y, x, y),
        ((0, 1),),
        preprocessing=PreprocessingConfig(centering=0.0, standardize="all"),
    )[0]
    method.begin_task(task, task.train)
    method.params["input-hidden1"].data = torch.tensor([[4.0, 0.0], [0.0, 3.0], [0.0, 0.5]])
    method.params["hidden1-output"].data = torch.tensor([[1.0, 0.0, 0.1], [-1.0, 0.0, 0.0]])
    method.params["output.bias"].data = torch.tensor([-2.0, 2.0])
    return method, task


def test_the_penalty_is_the_activity_of_all_free_units() -> None:
    method, task = by_hand()
    x = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    batch = Batch(x, task.train.y, torch.arange(2))
    output = method.forward(batch)
    # Activities are (4, 3, 0.5) and (0, 3, 0.5): 2 + 3 + 0.5 on average.
    plain = torch.nn.functional.cross_entropy(output, task.train.y)
    torch.testing.assert_close(method.loss(output, batch) - plain, torch.tensor(0.5 * 5.5))


def test_the_threshold_is_as_high_as_accuracy_allows() -> None:
    method, task = by_hand()
    method.end_task(task)
    # Unit 2 (0.5) can go. Unit 0 (2.0) cannot, so nor can unit 1 (3.0), which is more active.
    assert method.taken["hidden1"].tolist() == [True, True, False]
    assert method.params["hidden1-output"].tolist() == [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]
    generous, task = by_hand()
    generous.settings = CLNP.Settings(margin=50.0)
    generous.end_task(task)
    assert generous.taken["hidden1"].tolist() == [False, False, False]


def test_free_units_start_anew_and_lead_nowhere_that_is_in_use() -> None:
    method = clnp(1)
    free, trained = ~method.taken["hidden1"], method.params["input-hidden1"].detach().clone()
    assert 0 < int(free.sum()) < 30
    task = small_stream()[1]
    method.begin_task(task, task.train)
    values = {name: value.detach() for name, value in method.params.items()}
    assert bool((values["input-hidden1"][free] != trained[free]).all())
    assert torch.equal(values["input-hidden1"][~free], trained[~free])
    assert bool((values["hidden1.bias"][free] == 0).all())
    used = method.taken["hidden2"]
    assert bool((values["hidden1-hidden2"][used][:, free] == 0).all())
    assert bool((values["hidden1-hidden2"][~used] != 0).all())
    assert bool((values["hidden2-output"][:2][:, ~used] == 0).all())
    assert bool((values["hidden2-output"][2:] != 0).all())


def old_scores(method: CLNP, x: Tensor) -> Tensor:
    """Of the first task's classes, computed with its outputs alone: how many there are may change the last bit."""
    last, bias = method.blueprint.links[-1].name, "output.bias"
    outputs = {name: method.params[name].detach()[:2] for name in (last, bias)}
    with torch.no_grad():
        return method.blueprint.forward({**method.params, **outputs}, x)


def test_scores_of_old_classes_stay_to_the_bit() -> None:
    method, x = clnp(1), torch.cat([task.test.x for task in small_stream()])
    before, taken = old_scores(method, x), method.taken["hidden1"].clone()
    learn(method, list(small_stream())[1:], CAREFUL)
    assert torch.equal(old_scores(method, x), before)
    torch.testing.assert_close(method.predict(x)[:, :2], before)
    assert bool((method.taken["hidden1"] | ~taken).all())
    assert int(method.taken["hidden1"].sum()) > int(taken.sum())


def test_scores_of_old_classes_stay_with_maps_and_norms() -> None:
    method, stream = CLNP(tiny_cnn(), CLNP.Settings(margin=20.0), 0), images()
    learn(method, stream[:1], TRAINING)
    before = old_scores(method, stream[2].test.x)
    learn(method, list(stream)[1:], TRAINING)
    torch.testing.assert_close(old_scores(method, stream[2].test.x), before, rtol=1e-5, atol=1e-6)


def test_more_sparsity_leaves_more_units_free() -> None:
    few, many = (int(clnp(1, sparsity=strength).taken["hidden2"].sum()) for strength in (0.1, 0.0))
    assert few < many


def test_layers_say_what_is_in_use() -> None:
    method = clnp(1)
    used = int(method.taken["hidden1"].sum())
    layer = method.layer_usage()[0]
    assert (layer.units, layer.used, layer.reserved, layer.unused) == (30, used, used, 30 - used)


def test_a_full_network_takes_no_further_task() -> None:
    method = clnp(1)
    for taken in method.taken.values():
        taken[:] = True
    with pytest.raises(SpaceFull, match="the network is full: earlier tasks use all 60 hidden units"):
        learn(method, list(small_stream())[1:2], CAREFUL)
    assert method.classes == [range(2)]


@pytest.mark.parametrize("settings", [{"sparsity": -1.0}, {"margin": -0.1}, {"margin": 101.0}])
def test_settings_that_cannot_work(settings: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        CLNP.Settings(**settings)
