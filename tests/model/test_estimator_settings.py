"""Settings of the estimator that may change between tasks, and those that cannot."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

from spacenet import SpaceNetClassifier
from spacenet.errors import SettingsError, SpaceFull
from spacenet.model.file import to_bytes
from tests.model.support import blobs

SMALL: dict[str, Any] = {"hidden": (40, 40), "epochs": 3}
CHANGES: dict[str, Any] = {
    "epochs": 5,
    "batch_size": 5,
    "learning_rate": 0.3,
    "schedule": "cosine",
    "optimizer": "adam",
    "momentum": 0.7,
    "weight_decay": 0.1,
    "expected_tasks": 2,
    "selected": (6,),
    "reserved": (1,),
    "connections": (0.01,),
    "sized_for": (1, 2),
    "unused_first": False,
    "phantom_classes": 30,
    "phantom_scores": "bias",
    "label_smoothing": 0.3,
    "expand": "2:hidden1=9",
    "rewire_fraction": 0.9,
    "shrinkage": 0.2,
    "sharpness": 0.9,
    "network_weight": 3.0,
}
FIXED: dict[str, Any] = {
    "method": "spacenet",
    "net": "small-cnn",
    "hidden": (41, 41),
    "init": "glorot",
    "random_state": 1,
    "scale": 0.5,
    "mean": 1.0,
    "std": 2.0,
    "centering": 0.1,
    "standardize": "all",
    "clip": 5.0,
    "encoder": "efficientnet-lite0",
    "root": True,
    "first_epochs": 1,
    "first_selected": (20,),
    "first_reserved": (1,),
    "first_connections": (0.05,),
    "components": 3,
    "directions": 2,
    "representation": "features",
    "balance": "logits",
    "rotations": "first",
    "random_features": 20,
    "pooled_covariance": True,
    "exact_updates": False,
}
ELSEWHERE = {"augment", "bn_recalibration_epochs", "device", "precision", "threads", "masked_dense", "verbose"}
ELSEWHERE |= {"unknown", "unknown_label", "known_classes"}
"""What only images or other hardware show, or what changes no result."""
OF_REHEARSAL = {"replay", "replay_components", "replay_directions"}
OF_OTHERS = {"max_weights", "reads", "contrast", "statistics_weight", "own_statistics_weight", "mirror", "nesterov"}
"""Of experts, and what needs momentum."""
OF_METHODS_WITHOUT_PARAMETERS = {"method_settings"}


def test_every_parameter_is_looked_at() -> None:
    looked_at = {*CHANGES, *FIXED, *ELSEWHERE, *OF_REHEARSAL, *OF_OTHERS, *OF_METHODS_WITHOUT_PARAMETERS}
    assert looked_at == set(SpaceNetClassifier().get_params())


def test_settings_of_a_method_without_parameters() -> None:
    params: dict[str, Any] = {"method": "ewc", "hidden": (30, 30), "epochs": 2}
    fitted = SpaceNetClassifier(**params, method_settings={"strength": 7.0}).fit(*blobs([0, 1]))
    assert fitted.model_.config.flat()["strength"] == 7.0
    task, found = blobs([2, 3]), {}
    for name, own in {"same": {"strength": 7.0}, "other": {"strength": 1e6}, "default": None}.items():
        found[name] = copy.deepcopy(fitted).set_params(method_settings=own).partial_fit(*task)
    assert [each.model_.config.flat()["strength"] for each in found.values()] == [7.0, 1e6, 100.0]
    assert not np.array_equal(found["same"].predict_proba(task[0]), found["other"].predict_proba(task[0]))
    narrow = SpaceNetClassifier(method="pnn", hidden=(30, 30), epochs=1).fit(*blobs([0, 1]))
    with pytest.raises(SettingsError, match="column: cannot change"):
        narrow.set_params(method_settings={"column": 0.5}).partial_fit(*task)


@pytest.fixture(scope="module")
def fitted() -> SpaceNetClassifier:
    return SpaceNetClassifier(**SMALL).fit(*blobs([0, 1]))


def test_nesterov_takes_effect_with_momentum(fitted: SpaceNetClassifier) -> None:
    task, changed = blobs([2, 3]), {"network_weight": 0.25, "momentum": 0.7}
    found = [copy.deepcopy(fitted).set_params(**changed, nesterov=each).partial_fit(*task) for each in (True, False)]
    assert not np.array_equal(*(each.predict_proba(task[0]) for each in found))


@pytest.mark.parametrize(
    ("name", "value"), [("statistics_weight", 0.5), ("own_statistics_weight", 0.5), ("mirror", True)]
)
def test_experts_keep_their_statistics_as_they_began(name: str, value: object) -> None:
    fitted = SpaceNetClassifier(method="spacenet-experts", **SMALL).fit(*blobs([0, 1]))
    with pytest.raises(SettingsError, match=name):
        fitted.set_params(**{name: value}).partial_fit(*blobs([2, 3]))


@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_that_may_change_takes_effect_with_the_next_task(name: str, fitted: SpaceNetClassifier) -> None:
    task = blobs([2, 3])
    weight = {"network_weight": 0.25}  # so that what is changed in the network shows in the probabilities
    unchanged = copy.deepcopy(fitted).set_params(**weight).partial_fit(*task)
    changed = copy.deepcopy(fitted).set_params(**(weight | {name: CHANGES[name]})).partial_fit(*task)
    assert changed.model_.config.flat()[name] == CHANGES[name]
    x = blobs([0, 1, 2, 3])[0]
    same_units = all(
        torch.equal(state, changed.model_.method.ledger.state[layer])
        for layer, state in unchanged.model_.method.ledger.state.items()
    )
    assert not same_units or not np.array_equal(changed.predict_proba(x), unchanged.predict_proba(x))


@pytest.mark.parametrize("name", FIXED)
def test_a_setting_that_cannot_change_is_named(name: str, fitted: SpaceNetClassifier) -> None:
    classifier = copy.deepcopy(fitted).set_params(**{name: FIXED[name]})
    before = to_bytes(classifier.model_)
    with pytest.raises(SettingsError, match=f"^{name}: "):
        classifier.partial_fit(*blobs([2, 3]))
    assert to_bytes(classifier.model_) == before
    if name not in (
        "representation",
        "balance",
        "net",
        "rotations",
        "encoder",
    ):  # which do not go with these data at all
        assert clone(classifier).fit(*blobs([2, 3])).classes_.tolist() == [2, 3]


def test_what_rehearsal_keeps_cannot_change_either() -> None:
    params: dict[str, Any] = {"method": "spacenet-rehearsal", "replay": "statistics", "replay_components": 2, **SMALL}
    for name, value in {"replay": "samples", "replay_components": 3, "replay_directions": 2}.items():
        classifier = SpaceNetClassifier(**params).fit(*blobs([0, 1])).set_params(**{name: value})
        with pytest.raises(SettingsError, match=f"^{name}: cannot change"):
            classifier.partial_fit(*blobs([2, 3]))


def test_settings_may_be_left_to_the_estimator_again(fitted: SpaceNetClassifier) -> None:
    x, y = blobs([2, 3], 200)
    classifier = copy.deepcopy(fitted).set_params(epochs=None, learning_rate=None).partial_fit(x, y)
    assert classifier.model_.config.training.epochs is None
    assert classifier.model_.config.training.learning_rate == 0.05
    drawn = SpaceNetClassifier(**SMALL, random_state=None).fit(*blobs([0, 1]))
    drawn.partial_fit(*blobs([2, 3]))
    with pytest.raises(SettingsError, match="random_state: cannot change"):
        drawn.set_params(random_state=0).partial_fit(*blobs([4, 5]))


def test_a_full_network_grows_once_that_is_set() -> None:
    full = SpaceNetClassifier(hidden=(12, 12), expected_tasks=1, epochs=1).partial_fit(*blobs([0, 1]))
    with pytest.raises(SpaceFull):
        full.partial_fit(*blobs([2, 3]))
    full.set_params(expand="auto").partial_fit(*blobs([2, 3]))
    assert full.tasks_ == [(0, 1), (2, 3)]


# Errors
