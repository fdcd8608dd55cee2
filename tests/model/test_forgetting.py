"""Removing a class: nothing of it is left in the file, and other classes keep their bits."""

import copy
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacenet import SpaceNetClassifier
from spacenet.config.model import NetConfig
from spacenet.config.training import TrainingConfig
from spacenet.errors import ModelFileError, SettingsError, SpaceFull
from spacenet.methods.spacenet_density import SpaceNetDensity
from spacenet.methods.spacenet_experts import SpaceNetExperts
from spacenet.model.evaluation import evaluate_model
from spacenet.model.export import export_model
from spacenet.model.file import encode, from_bytes, to_bytes
from spacenet.model.inspection import inspect_model
from spacenet.model.model import Model
from spacenet.space.pack import pack, packed_units
from tests.model.forging import forged, say
from tests.model.support import SHAPE, blobs, density_model, model, model_config, room

TASKS: list[list[int]] = [[0, 1, 2], [3, 4], [5, 6]]
MAPS = NetConfig("small-cnn", (8, 8, 10))
IMAGES = (1, 8, 8)


def learned(method: str, net: NetConfig | None = None, shape: tuple[int, ...] = SHAPE, **more: Any) -> Model:
    training = TrainingConfig(epochs=2, batch_size=8, learning_rate=0.1)
    made = Model(model_config(method, net, training=training, **more), shape)
    for task in TASKS:
        made.learn(*blobs(list(task), shape=shape))
    return made


EXPERTS: dict[str, Any] = {"selected": (), "reserved": (), "connections": (), "expected_tasks": 5}
MAKE: dict[str, Callable[[], Model]] = {
    "spacenet": lambda: model(*TASKS, expand="auto"),
    "static-sparse": lambda: learned("static-sparse", expand="auto"),
    "maps": lambda: learned("spacenet", MAPS, IMAGES, selected=(4,), reserved=(2,), connections=(0.2,), expand="auto"),
    "inputs": lambda: density_model("inputs", *TASKS, expand="auto"),
    "edges": lambda: density_model("edges", *TASKS, expand="auto"),
    "features": lambda: density_model("features", *TASKS, connections=(0.2,), expand="auto"),
    "readout": lambda: density_model("inputs", *TASKS, expand="auto", random_features=20),
    "pooled": lambda: density_model("inputs", *TASKS, expand="auto", pooled_covariance=True),
    "rehearsal": lambda: learned("spacenet-rehearsal", replay="statistics", expand="auto"),
    "experts": lambda: learned("spacenet-experts", **EXPERTS),
    "rotated": lambda: learned("spacenet-experts", MAPS, IMAGES, **EXPERTS),
    "described": lambda: learned("spacenet-experts", MAPS, IMAGES, **EXPERTS, statistics_weight=0.1, rotations="none"),
    "own": lambda: learned("spacenet-experts", **EXPERTS | {"connections": (0.04,)}, own_statistics_weight=0.1),
    "rotated own": lambda: learned("spacenet-experts", MAPS, IMAGES, **EXPERTS, own_statistics_weight=0.1, mirror=True),
}
STATISTICS = {name: partial(learned, name) for name in ("gaussian", "ncm", "slda", "ranpac")}
"""Methods without a network."""
WITHIN = ("inputs", "edges", "features", "readout", "pooled")
"""Models in which the scores of a task's classes are relative to each other."""
READS_FIRST = ("features", "described")
STANDS_IN = ("features", "described", "own")
"""Models in which a unit may get a connection of weight 0 in the place of one that was removed."""
HIDDEN = ("hidden1", "hidden2", "conv1", "conv2", "hidden")


@cache
def made(kind: str) -> Model:
    return (MAKE | STATISTICS)[kind]()


def inputs(kind: str) -> np.ndarray:
    return blobs([label for task in TASKS for label in task], shape=made(kind).input_shape)[0]


def belongings(kept: Model, output: int) -> Iterator[tuple[str, bytes]]:
    """The bytes in a file that belong to one output alone."""
    _, arrays = encode(kept)
    for link in kept.method.blueprint.classifiers:
        table = arrays[f"links/{link.name}/rows"].astype(np.int64)
        rows = np.repeat(table[:, 1], table[:, 2]) == output
        yield link.name, arrays[f"links/{link.name}/value"][rows].tobytes()
    task = next(n for n, own in enumerate(kept.method.classes) if output in own)
    place, own = output - kept.method.classes[task].start, kept.method.classes[task]
    for name, array in arrays.items():
        if name.startswith("extra/density/classes/") and not name.endswith(("weight", "rest")):
            yield name, array[output].tobytes()
        if name == "extra/readout/sums":
            yield name, array[:, output].tobytes()
        if name.startswith(f"extra/own/{task}/classes/") and not name.endswith(("weight", "rest")):
            yield name, array[place].tobytes()
        if name.startswith(f"extra/rotated/{task}/weight"):
            yield name, array[place].tobytes()
            yield name, array[place + 2 * len(own)].tobytes()


def belongings_of_others(kept: Model, kind: str) -> list[bytes]:
    """Those of two classes; without connections of weight 0 at the end, where these stand in for others."""
    found = [part for label in (3, 5) for _, part in belongings(kept, kept.outputs.index(label))]
    return [part.rstrip(b"\0") if kind in STANDS_IN else part for part in found]


@pytest.mark.parametrize("kind", MAKE)
def test_the_bytes_of_the_class_are_gone_from_the_file(kind: str) -> None:
    edited = copy.deepcopy(made(kind))
    edited.rename(4, "secret")
    edited.metrics = {"tasks": [{"labels": ["secret"]}]}
    before, output = to_bytes(edited), edited.outputs.index("secret")
    own = {name: part for name, part in belongings(edited, output) if part.strip(b"\0")}
    assert own
    assert all(part in before for name, part in own.items() if name != "extra/readout/sums")
    others = belongings_of_others(edited, kind)
    edited.forget("secret")
    after = to_bytes(edited)
    assert b"secret" in before
    assert b"secret" not in after
    assert [name for name, part in own.items() if part in after] == []
    assert others == belongings_of_others(edited, kind)
    with pytest.raises(SettingsError, match="nothing to undo"):
        edited.undo()


@pytest.mark.parametrize("labels", [[0], [1], [4], [6], [3, 4], [5, 6], [0, 1, 2], [2, 4, 5]])
@pytest.mark.parametrize("kind", MAKE)
def test_the_network_of_other_classes_keeps_its_bits(kind: str, labels: list[int]) -> None:
    """The part of the network that leads to their outputs is the same, so they have the same scores to the bit."""
    edited, x = copy.deepcopy(made(kind)), torch.from_numpy(inputs(kind))
    if kind in READS_FIRST and labels == [0, 1, 2]:
        labels = [0, 2]
    for label in labels:
        edited.forget(label)
    name = edited.method.blueprint.output.name
    before, after = (
        pack(each.method.ledger, ends={name: torch.tensor([each.outputs.index(label) for label in edited.outputs])})
        for each in (made(kind), edited)
    )
    assert before.params.keys() == after.params.keys()
    if kind not in STANDS_IN:
        assert all(torch.equal(before.params[key], after.params[key]) for key in after.params)
    torch.testing.assert_close(before(x), after(x), rtol=0, atol=0 if kind not in STANDS_IN else 1e-5)


@pytest.mark.parametrize("labels", [[0], [1], [4], [6], [3, 4], [5, 6], [0, 1, 2], [2, 4, 5]])
@pytest.mark.parametrize("kind", [*MAKE, *STATISTICS])
def test_scores_of_other_classes_keep_their_bits(kind: str, labels: list[int]) -> None:
    """In the model, and in the file. Where the scores of a task's classes are relative to each other, those of other
    tasks do."""
    edited, x = copy.deepcopy(made(kind)), inputs(kind)
    if kind in READS_FIRST and labels == [0, 1, 2]:
        labels = [0, 2]
    before, known = edited.scores(x), edited.outputs
    for label in labels:
        edited.forget(label)
    after, left = edited.scores(x), edited.outputs
    assert left == [label for label in known if label not in labels]
    touched = {label for task in TASKS if set(task) & set(labels) for label in task} if kind in WITHIN else set()
    same = [label for label in left if label not in touched]
    assert same or kind in WITHIN
    then, now = (found[:, [of.index(label) for label in same]] for found, of in ((before, known), (after, left)))
    assert torch.equal(now, then)
    again = from_bytes(to_bytes(edited))
    assert torch.equal(again.scores(x), after)
    assert again.tasks == edited.tasks
    np.testing.assert_allclose(edited.predict_proba(x).sum(1), 1)


@pytest.mark.parametrize("labels", [[1], [3], [3, 4], [2, 4, 5]])
@pytest.mark.parametrize("kind", [*MAKE, *STATISTICS])
def test_the_size_of_matrices_changes_the_last_digits_only(kind: str, labels: list[int]) -> None:
    """What is computed without the places of removed classes is the same, as these places hold nothing of them."""
    edited, x = copy.deepcopy(made(kind)), torch.from_numpy(inputs(kind))
    for label in labels:
        edited.forget(label)
    method, x = edited.method, edited.fitted_normalization(inputs(kind))
    small = method.without_places()
    assert method.places
    assert not small.places
    torch.testing.assert_close(small.predict_all(x), method.predict_all(x), rtol=1e-4, atol=1e-4)
    assert small.bytes_to_predict() <= method.bytes_to_predict()


@pytest.mark.parametrize("kind", ["spacenet", "inputs", "experts", "gaussian"])
def test_the_next_task_ends_the_places_of_removed_classes(kind: str) -> None:
    edited = copy.deepcopy(made(kind))
    edited.forget(3)
    assert edited.method.places
    assert from_bytes(to_bytes(edited)).method.places
    edited.learn(*blobs([7, 8], shape=edited.input_shape))
    assert not edited.method.places
    assert not [name for name in encode(edited)[1] if "places" in name]


def test_compacting_ends_the_places_of_removed_classes() -> None:
    edited, x = copy.deepcopy(made("spacenet")), inputs("spacenet")
    edited.forget(3)
    before = edited.scores(x)
    edited.compact()
    assert not edited.method.places
    torch.testing.assert_close(edited.scores(x), before)


def test_matrices_are_not_kept_large_for_a_few_classes() -> None:
    """A model of many classes of which most are removed must not stay as large as it was."""
    labels = list(range(40))
    edited = Model(model_config("gaussian"), SHAPE)
    edited.learn(*blobs(labels))
    for label in labels[:20]:
        edited.forget(label)
    assert len(edited.method.places.classes) == 40
    for label in labels[20:35]:
        edited.forget(label)
    assert len(edited.method.places.classes) <= 2 * 5 + 16
    assert edited.predict_proba(blobs([39])[0]).shape[1] == 5


@pytest.mark.parametrize("kind", MAKE)
def test_it_can_be_learned_again(kind: str) -> None:
    edited = copy.deepcopy(made(kind))
    edited.forget(3)
    edited.forget(4)
    assert edited.tasks == [(0, 1, 2), (), (5, 6)]
    loaded, (x, y) = from_bytes(to_bytes(edited)), blobs([3, 8], shape=edited.input_shape)
    for each in (edited, loaded):
        each.learn(x, y)
    assert edited.tasks == [(0, 1, 2), (), (5, 6), (3, 8)]
    assert to_bytes(loaded) == to_bytes(edited)
    own = edited.predict_proba(x)[:, 5:]
    assert own.shape[1] == 2
    assert room(edited) >= 0


@pytest.mark.parametrize("kind", ["spacenet", "maps", "inputs", "features", "experts", "rotated", "described"])
@pytest.mark.parametrize("task", [0, 1, 2])
def test_the_space_of_a_task_without_classes_is_given_back(kind: str, task: int) -> None:
    if kind in READS_FIRST and task == 0:
        pytest.skip("its last class cannot be removed")
    edited, before = copy.deepcopy(made(kind)), made(kind).method.ledger
    for label in TASKS[task][:-1]:
        edited.forget(label)
    held = edited.method.ledger
    assert all(torch.equal(state, held.state[name]) for name, state in before.state.items() if name in HIDDEN)
    edited.forget(TASKS[task][-1])
    freed, needed = edited.method.ledger, packed_units(edited.method.ledger)
    units, links = (
        [sum(map(int, each)) for each in zip(*counts, strict=True)]
        for counts in (
            [
                [(ledger.state[layer.name] == task).sum() for ledger in (before, freed)]
                for layer in freed.blueprint.hidden
            ],
            [[(ledger.connections[k].owner == task).sum() for ledger in (before, freed)] for k in freed.connections],
        )
    )
    assert units[1] < units[0]
    assert links[1] < links[0]
    for link in freed.blueprint.links:  # what stays leads to outputs of other tasks
        own = freed.connections[link.name]
        own = own[own.owner == task]
        assert bool(torch.isin(own.target, needed[link.target]).all())
    for layer in freed.blueprint.hidden:
        stay = (freed.state[layer.name] == task).nonzero().flatten()
        assert bool(torch.isin(stay, needed[layer.name]).all())
        unused = ~freed.used(layer.name) & before.used(layer.name)
        for key, value in layer.keys().items():
            assert value.init is not None or bool((freed.units[key][unused] == value.initial).all())
    if kind in ("experts", "rotated", "described"):  # they share nothing
        assert (units[1], links[1]) == (0, 0)


def test_a_task_can_be_learned_in_the_space_of_another() -> None:
    full = learned("spacenet-experts", **{**EXPERTS, "expected_tasks": 3})
    with pytest.raises(SpaceFull):
        full.learn(*blobs([7, 8]))
    full.forget(3)
    full.forget(4)
    assert full.space_left() == 1
    full.learn(*blobs([7, 8]))
    assert full.classes == [0, 1, 2, 5, 6, 7, 8]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["spacenet", "edges", "features", "rotated"]), st.permutations(range(7)), st.integers(1, 6))
def test_in_any_order_and_number(kind: str, labels: list[int], count: int) -> None:
    edited, other = copy.deepcopy(made(kind)), copy.deepcopy(made(kind))
    chosen = [label for label in labels if label or kind != "features"][:count]
    for label in chosen:
        edited.forget(label)
    for label in sorted(chosen):
        other.forget(label)
    assert edited.tasks == other.tasks
    assert torch.equal(edited.scores(inputs(kind)), other.scores(inputs(kind)))
    assert to_bytes(from_bytes(to_bytes(edited))) == to_bytes(edited)


def test_what_counts_outputs_follows() -> None:
    edited = copy.deepcopy(made("inputs"))
    edited.merge([3, 4], into="pair")
    edited.forget("pair")
    x, y = blobs([0, 5])
    found = evaluate_model(edited, x, y)
    assert [task.classes for task in found.tasks] == [("0", "1", "2"), (), ("5", "6")]
    assert found.tasks[1].accuracy is None
    inspected = inspect_model(edited, len(to_bytes(edited)))
    assert (inspected.outputs, inspected.tasks[1].classes) == (5, ())
    assert inspected.layers[0].never_selected is None
    assert edited.predict_proba(x).shape == (len(x), 5)


def test_what_cannot_be_removed_is_said_and_nothing_changes() -> None:
    one = model([0])
    with pytest.raises(SettingsError, match="0 is the only class of this model"):
        one.forget(0)
    with pytest.raises(SettingsError, match="unknown class '9'"):
        one.forget(9)
    for kind in ("weights", "logits"):
        balanced = model(balance=kind)
        with pytest.raises(SettingsError, match="scores are balanced"):
            balanced.forget(0)
    for kind in READS_FIRST:
        edited = copy.deepcopy(made(kind))
        edited.forget(0)
        edited.forget(1)
        before = to_bytes(edited)
        with pytest.raises(SettingsError, match="last class of the first task"):
            edited.forget(2)
        assert to_bytes(edited) == before


def test_it_can_be_undone_only_if_that_is_wanted() -> None:
    edited = copy.deepcopy(made("spacenet"))
    before = to_bytes(edited)
    edited.forget(3, keep_undo=True)
    edited.undo()
    assert to_bytes(edited) == before


@pytest.mark.parametrize("kind", READS_FIRST)
def test_a_file_whose_first_task_is_empty_is_refused_where_its_features_are_used(kind: str) -> None:
    tasks = [[], [0, 1, 2, 3, 4], [5, 6]]
    assert isinstance(made(kind).method, SpaceNetDensity | SpaceNetExperts)
    with pytest.raises(ModelFileError, match="the first task, whose features are used, has no classes"):
        from_bytes(forged(made(kind), say("tasks", tasks)))


@pytest.mark.parametrize(
    "tasks", [[[], [0, 1, 2, 3, 4], [5, 6]], [[0, 1, 2, 3, 4, 5, 6], [], []], [[], [], [*range(7)]]]
)
@pytest.mark.parametrize("kind", MAKE)
def test_a_file_with_tasks_without_classes_is_refused_or_can_be_used(kind: str, tasks: list[list[int]]) -> None:
    try:
        found = from_bytes(forged(made(kind), say("tasks", tasks)))
    except ModelFileError:
        return
    found.learn(*blobs([8, 9], shape=found.input_shape))
    found.forget(found.classes[0])
    assert found.predict_proba(inputs(kind)).shape[1] == 8
    assert room(found) >= 0


@pytest.mark.parametrize("kind", ["spacenet", "inputs", "experts"])
def test_what_is_left_can_be_exported(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    edited = copy.deepcopy(made(kind))
    edited.forget(3)
    edited.forget(4)
    edited.merge([5, 6], into="x")
    exported = export_model(edited, tmp_path / "m.onnx", "onnx")  # which compares both
    assert exported.classes == (0, 1, 2, "x")


def test_the_estimator_follows() -> None:
    x, y = blobs([0, 1, 2, 3])
    classifier = SpaceNetClassifier(hidden=(30, 30), epochs=2).partial_fit(x[y < 2], y[y < 2])
    classifier.partial_fit(x[y > 1], y[y > 1]).forget(2)
    np.testing.assert_array_equal(classifier.classes_, [0, 1, 3])
    assert classifier.tasks_ == [(0, 1), (3,)]
    assert classifier.predict_proba(x).shape == (len(x), 3)
