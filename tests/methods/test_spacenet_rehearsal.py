"""SpaceNet-Rehearsal without old samples: what is replayed is drawn from class statistics."""

import pytest
import torch

from spacenet.errors import SettingsError
from spacenet.methods.spacenet import SpaceNet
from spacenet.methods.spacenet_rehearsal import RehearsalSettings, SpaceNetRehearsal
from tests.methods.support import accuracy, learn, make, small_stream

SPACE: dict[str, object] = {"selected": (10,), "reserved": (5,), "connections": (40, 40, 16)}
DRAWN = SPACE | {"replay": "statistics", "replay_components": 2, "replay_directions": 3}


def rehearsal(settings: dict[str, object] = DRAWN, seed: int = 0) -> SpaceNetRehearsal:
    method = make(SpaceNetRehearsal, settings, seed)
    assert isinstance(method, SpaceNetRehearsal)
    return method


def test_no_sample_is_kept_and_old_tasks_are_remembered() -> None:
    """In four small runs together: one alone is too short to tell."""
    drawn, kept, nothing = 0.0, 0.0, 0.0
    stream = small_stream()
    for seed in range(4):
        methods = rehearsal(seed=seed), rehearsal(SPACE, seed), make(SpaceNet, SPACE, seed)
        for method in methods:
            learn(method, stream)
        assert len(methods[0].memory) == 0
        drawn, kept, nothing = (
            before + sum(accuracy(method, stream))
            for before, method in zip((drawn, kept, nothing), methods, strict=True)
        )
    assert drawn > nothing + 2
    assert drawn > kept - 0.5
    assert not rehearsal().needs_old_data
    assert rehearsal(SPACE).needs_old_data


def test_old_classes_come_back_with_as_many_samples_as_new_ones_within_their_bounds() -> None:
    method, stream = rehearsal(), small_stream()
    first = stream[0].train
    assert torch.equal(method.training_data(stream[0]).x, first.x)
    learn(method, stream[:1])
    data, new = method.training_data(stream[1]), stream[1].train
    old = data.y < 2
    assert torch.equal(data.x[~old], new.x)
    assert data.y[old].bincount().tolist() == [len(new) // 2] * 2
    assert bool((data.x[old] >= first.x.amin(0)).all())
    assert float((data.x[old] - first.x.amin(0)).max()) <= float((first.x - first.x.amin(0)).max()) + 1e-6
    for number in (0, 1):  # drawn around where the class lies
        apart = (data.x[data.y == number].mean(0) - first.x[first.y == number].mean(0)).abs().max()
        assert float(apart) < 0.5


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    stream = small_stream()
    found = []
    for seed in (1, 1, 2):
        method = rehearsal(seed=seed)
        learn(method, stream[:1])
        found.append(method.training_data(stream[1]).x)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_what_a_file_says_is_checked() -> None:
    method = rehearsal()
    learn(method, small_stream()[:1])
    extra = method.extra_state()
    method.check_state(extra, (8,))
    for name in extra:
        with pytest.raises(ValueError, match="missing|wrong size|unknown"):
            method.check_state({key: value for key, value in extra.items() if key != name}, (8,))
    with pytest.raises(ValueError, match="span has values"):
        method.check_state(extra | {"span": torch.tensor(-1.0)}, (8,))
    with pytest.raises(ValueError, match="unknown content"):
        rehearsal(SPACE).check_state(extra, (8,))


@pytest.mark.parametrize("name", ["replay_components", "replay_directions"])
def test_settings_out_of_range(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        RehearsalSettings(**{name: 0})  # type: ignore[arg-type]
