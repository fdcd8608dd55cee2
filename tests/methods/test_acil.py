import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.data.stream import Samples, Stream
from spacenet.errors import SettingsError
from spacenet.methods.acil import ACIL
from tests.methods.support import TRAINING, accuracy, copy_state, learn, make, reordered_streams, small_stream

SMALL = {"buffer_size": 40}


def acil(**settings: object) -> ACIL:
    method = make(ACIL, {**SMALL, **settings})
    assert isinstance(method, ACIL)
    return method


def all_samples(stream: Stream) -> Samples:
    return Samples(torch.cat([task.train.x for task in stream]), torch.cat([task.train.y for task in stream]))


def ridge_regression(h: Tensor, y: Tensor, ridge: float) -> Tensor:
    """Weights from all samples at once."""
    weights: Tensor = torch.linalg.solve(h.T @ h + ridge * torch.eye(h.shape[1], dtype=h.dtype), h.T @ y)
    return weights


@pytest.mark.parametrize("kind", ["features", "inputs"])
def test_task_by_task_is_the_same_as_all_data_at_once(kind: str) -> None:
    method, stream = acil(representation=kind, ridge=0.5), small_stream()
    learn(method, stream)
    data, x = all_samples(stream), stream[0].test.x
    h, at = method.streams(data.x)["main"], method.streams(x)["main"]
    weights = ridge_regression(h, F.one_hot(data.y).double(), 0.5)
    torch.testing.assert_close(method.predict(x), (at @ weights).float(), rtol=1e-4, atol=1e-5)


def test_the_order_of_tasks_does_not_matter_on_a_fixed_representation() -> None:
    there, back = acil(representation="inputs"), acil(representation="inputs")
    first, other = reordered_streams()
    learn(there, first)
    learn(back, other)
    x = first[0].test.x
    torch.testing.assert_close(back.predict(x)[:, [4, 5, 2, 3, 0, 1]], there.predict(x), rtol=1e-4, atol=1e-5)


def test_random_features_are_rectified_projections() -> None:
    method, stream = acil(), small_stream()
    learn(method, stream[:1])
    x = stream[0].test.x
    by_hand = (method.features(x) @ method.projection.T).relu().double()
    assert torch.equal(method.streams(x)["main"], by_hand)
    assert method.projection.shape == (40, 30)


def test_only_the_first_task_is_trained_and_nothing_without_features() -> None:
    method, stream = acil(), small_stream()
    assert len(learn(method, stream)) == TRAINING.epochs
    assert sum(accuracy(method, stream)) / 3 > 0.8
    fixed = acil(representation="inputs")
    assert learn(fixed, stream) == []
    assert sum(accuracy(fixed, stream)) / 3 > 0.8


def test_compensation_learns_what_the_first_classifier_leaves_of_new_classes() -> None:
    method, stream = acil(compensation=0.5), small_stream()
    learn(method, stream[:1])
    data, x = stream[0].train, stream[0].test.x
    h, at = method.streams(data.x), method.streams(x)
    y = F.one_hot(data.y, 2).double()
    main = ridge_regression(h["main"], y, 0.1)
    rest = ridge_regression(h["compensation"], y - h["main"] @ main, 0.1)
    expected = at["main"] @ main + 0.5 * at["compensation"] @ rest
    torch.testing.assert_close(method.predict(x), expected.float(), rtol=1e-4, atol=1e-5)
    old = method.sums["compensation"]
    learn(method, list(stream)[1:2])
    assert torch.equal(method.sums["compensation"][:, :2], old)
    assert bool(method.sums["compensation"][:, 2:].any())


def test_everything_kept_is_counted() -> None:
    method = acil(representation="inputs", compensation=1.0)
    learn(method, small_stream())
    assert set(method.network_state()) == {"projection"}
    assert method.network_state()["projection"].nbytes == 4 * 40 * 8
    assert method.extra_bytes() == 2 * 8 * (40 * 40 + 40 * 6)


def test_a_fixed_representation_comes_back_from_a_file() -> None:
    method, again, stream = acil(representation="inputs"), acil(representation="inputs"), small_stream()
    learn(method, stream[:2])
    again.load_state(copy_state(method))
    for each in (method, again):
        learn(each, list(stream)[2:])
    assert torch.equal(method.predict(stream[0].test.x), again.predict(stream[0].test.x))


def test_edges_need_images() -> None:
    with pytest.raises(SettingsError, match="not images"):
        acil(representation="edges").check(small_stream())


@pytest.mark.parametrize("settings", [{"buffer_size": 0}, {"ridge": 0.0}, {"compensation": -0.1}])
def test_settings_out_of_range(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        acil(**settings)
