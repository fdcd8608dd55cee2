from typing import Any

import numpy as np
import pytest
import torch

from spacenet.errors import DataError, RunError, SettingsError, SpaceFull
from spacenet.model.file import from_bytes, to_bytes
from spacenet.model.model import Model
from spacenet.space.allocation import LIMIT
from spacenet.space.ledger import Connections
from spacenet.training.loop import Epoch
from tests.model.forging import forged, put
from tests.model.support import SHAPE, blobs, model, model_config, new_model, room


def accuracy(learned: Model, classes: list[object]) -> float:
    x, y = blobs(classes)
    labels = learned.classes
    return float(np.mean([labels[i] == label for i, label in zip(learned.predict_proba(x).argmax(1), y, strict=True)]))


def test_it_learns_classes_one_task_after_another() -> None:
    learned = model([0, 1], [2, 3], [4, 5, 6])
    assert learned.classes == [0, 1, 2, 3, 4, 5, 6]
    assert learned.tasks == [(0, 1), (2, 3), (4, 5, 6)]
    assert accuracy(learned, [0, 1, 2, 3, 4, 5, 6]) > 2 / 7
    assert accuracy(model([0, 1]), [0, 1]) > 0.9


def test_probabilities_add_up() -> None:
    probabilities = model().predict_proba(blobs([0, 1, 2, 3])[0])
    assert probabilities.shape == (80, 4)
    np.testing.assert_allclose(probabilities.sum(1), 1.0)


def test_a_label_that_comes_again_has_two_outputs_and_the_sum_of_their_probabilities() -> None:
    learned = model([0, 1], [1, 2], known_classes="task")
    assert learned.classes == [0, 1, 2]
    assert learned.outputs == [0, 1, 1, 2]
    x = blobs([1])[0]
    each = learned.scores(x).double().softmax(1)
    np.testing.assert_allclose(learned.predict_proba(x)[:, 1], (each[:, 1] + each[:, 2]).numpy())


def test_labels_of_several_types_stay_apart() -> None:
    learned = model([0, 1], ["cat", "dog"], [True, False], [0.5, 2.5])
    assert learned.classes == [0, 1, "cat", "dog", False, True, 0.5, 2.5]
    assert [type(label) for label in learned.classes][4:] == [bool, bool, float, float]


@pytest.mark.parametrize("labels", [["0", "9"], [0.0, 9.0], ["1", "x"]])
def test_labels_that_look_like_known_ones_of_another_type_are_refused(labels: list[Any]) -> None:
    learned = model([0, 1])
    with pytest.raises(DataError, match="of the type .*, and the model knows int labels"):
        learned.learn(*blobs(labels))
    assert learned.classes == [0, 1]


def test_values_that_cannot_be_computed_with_are_refused() -> None:
    learned = model([0, 1])
    x, y = blobs([2, 3])
    for factor, words in ((1e21, "row .* has a value of magnitude"), (np.nan, "NaN or infinite"), (1e38, "magnitude")):
        with pytest.raises(DataError, match=words):
            learned.learn(x.astype(np.float64) * factor, y)
        with pytest.raises(DataError, match=words):
            learned.predict_proba(x.astype(np.float64) * factor)
    with pytest.raises(DataError, match="datetime64"):
        learned.learn(x, y.astype("datetime64[s]"))
    with pytest.raises(DataError, match="39 labels"):
        learned.learn(x[:40], y[:39])
    assert learned.classes == [0, 1]


def test_a_model_of_bytes_is_not_taught_values_between_0_and_1() -> None:
    learned, (x, y) = new_model(), blobs([0, 1])
    learned.learn(np.clip(128 + 20 * x, 0, 255).astype(np.uint8), y)
    with pytest.raises(DataError, match="multiply them by 255"):
        learned.learn(np.clip(0.5 + 0.1 * x, 0, 1), y + 2)


@pytest.mark.parametrize("factor", [1e-23, 1e-12, 1.0, 1e12])
def test_any_scale_of_the_data_is_learned(factor: float) -> None:
    learned, (x, y) = new_model(), blobs([0, 1])
    learned.learn(x.astype(np.float64) * factor, y)
    assert np.mean(np.array(learned.predict(x.astype(np.float64) * factor)) == y) > 0.9


def test_what_earlier_tasks_own_never_changes() -> None:
    learned = model([0, 1])
    before = {name: (c.source.clone(), c.target.clone(), c.value.clone()) for name, c in _connections(learned).items()}
    states = {name: state.clone() for name, state in learned.method.ledger.state.items() if name.startswith("hidden")}
    learned.learn(*blobs([2, 3]))
    for name, connections in _connections(learned).items():
        first = connections[connections.owner == 0]
        for old, new in zip(before[name], (first.source, first.target, first.value), strict=True):
            assert torch.equal(old, new)
    for name, state in states.items():
        assert torch.equal(learned.method.ledger.state[name][state == 0], state[state == 0])


def _connections(learned: Model) -> dict[str, Connections]:
    return dict(learned.method.ledger.connections)


def test_a_task_that_fails_leaves_the_model_as_it_was() -> None:
    learned = model()
    before = to_bytes(learned)

    def stop(epoch: Epoch) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learned.learn(*blobs([4, 5]), on_epoch=stop)
    assert to_bytes(learned) == before


def test_a_task_of_values_that_ruin_the_network_is_not_learned() -> None:
    """What it makes of the weights gives finite scores on its own samples, for which units are dead, and no others."""
    learned = model()
    x, y = blobs([4, 5])
    before = to_bytes(learned)
    with pytest.raises(RunError, match="training diverged"):
        learned.learn(1e12 * x, y)
    assert to_bytes(learned) == before


def test_a_full_network_says_so_or_grows() -> None:
    full = {"selected": (15,), "reserved": (10,)}
    learned = model([0, 1], [2, 3], **full)
    assert learned.space_left() == 0
    with pytest.raises(SpaceFull, match="hidden1 is full"):
        learned.learn(*blobs([4, 5]))
    assert learned.classes == [0, 1, 2, 3]
    growing = model([0, 1], [2, 3], [4, 5], expand="auto", **full)
    assert growing.classes == [0, 1, 2, 3, 4, 5]
    assert growing.method.ledger.size("hidden1") > 30


def test_as_many_tasks_fit_as_is_said() -> None:
    learned = model([0, 1], reserved=(7,))
    left = room(learned)
    assert 0 < left < LIMIT
    for number in range(left):
        assert learned.space_left() == left - number
        learned.learn(*blobs([f"a{number}", f"b{number}"]))
    with pytest.raises(SpaceFull):
        learned.learn(*blobs(["c", "d"]))


def test_samples_of_another_shape_are_refused() -> None:
    with pytest.raises(DataError, match=r"\(9,\).*the model takes \(8,\)"):
        model().predict_proba(np.zeros((2, 9)))
    with pytest.raises(DataError, match="has not learned anything yet"):
        new_model().predict_proba(np.zeros((2, *SHAPE)))


def test_a_method_that_needs_old_data_learns_one_task() -> None:
    replaying = Model(model_config("spacenet-rehearsal"), SHAPE)
    replaying.learn(*blobs([0, 1]))
    with pytest.raises(SettingsError, match="old data"):
        replaying.learn(*blobs([2, 3]))


def test_the_number_of_threads_is_put_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model([0, 1])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_rehearsal_that_draws_what_it_replays_learns_on_from_its_file() -> None:
    config = model_config("spacenet-rehearsal", replay="statistics", replay_components=2, replay_directions=3)
    first = Model(config, SHAPE)
    first.learn(*blobs(["a", "b"]))
    again = from_bytes(to_bytes(first))
    for each in (first, again):
        each.learn(*blobs(["c", "d"]))
    x = blobs(["a", "b", "c", "d"])[0]
    np.testing.assert_array_equal(again.predict_proba(x), first.predict_proba(x))
    assert len(first.method.memory) == 0


def test_scores_that_are_not_numbers_are_an_error() -> None:
    large = from_bytes(forged(model(), put("links/hidden1-hidden2/value", ..., 3e38)))
    with pytest.raises(DataError, match="no finite scores for .* of 80 samples"):
        large.predict(blobs([0, 1, 2, 3])[0])
