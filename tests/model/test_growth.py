"""Space: what is left, a warning before it is full, growth when it is wanted, and dropping what no output reads."""

import logging
from typing import Any, cast

import numpy as np
import pytest
import torch

import spacenet
from spacenet import SpaceNetClassifier
from spacenet.errors import SpaceFull
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.model.file import from_bytes, to_bytes
from spacenet.model.model import Model
from spacenet.space.ledger import FREE
from tests.model.support import blobs, density_model, model, new_model, room

TIGHT: dict[str, Any] = {"selected": (10,), "reserved": (10,), "connections": (0.1,)}  # three tasks in 30 units


def test_a_model_from_a_file_grows_when_it_is_told_to(tmp_path: Any) -> None:
    made = SpaceNetClassifier(hidden=(30, 30), epochs=2, **TIGHT)
    for task in ([0, 1], [2, 3], [4, 5]):
        made.partial_fit(*blobs(task))
    made.save(tmp_path / "m")
    loaded = spacenet.load(tmp_path / "m")
    with pytest.raises(SpaceFull):
        loaded.partial_fit(*blobs([6, 7]))
    loaded.set_params(expand="auto").partial_fit(*blobs([6, 7]))
    assert loaded.tasks_[-1] == (6, 7)
    with pytest.raises(SpaceFull):
        loaded.set_params(expand=None).partial_fit(*blobs([8, 9]))


def test_a_warning_comes_before_the_space_is_full(caplog: pytest.LogCaptureFixture) -> None:
    learned, said = new_model(**TIGHT), []
    for task in ([0, 1], [2, 3], [4, 5]):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "spacenet"):
            learned.learn(*blobs(task))
        said.append(" ".join(record.getMessage() for record in caplog.records if "room" in record.getMessage()))
    assert said[0] == ""
    assert "room for 1 more task like the last one" in said[1]
    assert "no room for another task; expand=auto adds units" in said[2]
    caplog.clear()
    learned.learn(*blobs([0]))  # takes no space
    assert not caplog.records


def test_one_expected_task_leaves_no_room_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "spacenet"):
        SpaceNetClassifier(hidden=(40, 40), epochs=30, expected_tasks=1).fit(*blobs([0, 6]))
    assert "because expected_tasks is 1" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "spacenet"):
        SpaceNetClassifier(hidden=(40, 40), epochs=30, expected_tasks=1, expand="auto").fit(*blobs([0, 6]))
    assert "room" not in caplog.text


CASES = {
    "spacenet": lambda: model([0, 1], [2, 3], expand="auto"),
    "experts": lambda: model([0, 1], [2, 3], method="spacenet-experts", expand="auto", rotations="none"),
    "inputs": lambda: density_model("inputs", expand="auto"),
    "features": lambda: density_model("features", expand="auto"),
}


@pytest.mark.parametrize("name", CASES)
def test_compact_drops_what_no_output_reads(name: str) -> None:
    learned: Model = CASES[name]()
    shape = learned.input_shape
    learned.learn(*blobs([4, 5] if name in ("spacenet", "experts") else ["emu", "fox"], shape=shape))
    x = blobs([0, 1], shape=shape)[0]
    learned.method.ledger.grow(learned.method.blueprint.hidden[0].name, 5)
    learned.method.invalidate()
    scores, before, left = learned.scores(x), to_bytes(learned), room(learned)
    sizes = sum(len(state) for state in learned.method.ledger.state.values())
    learned.compact()
    assert torch.equal(learned.scores(x), scores)
    ledger = learned.method.ledger
    for layer in ledger.blueprint.hidden:
        leads_on = torch.zeros(ledger.size(layer.name), dtype=torch.bool)
        for link in ledger.blueprint.links:
            if link.source == layer.name:
                leads_on[ledger.connections[link.name].source.long()] = True
        entered = ledger.ingoing(layer.name) > 0
        assert not (entered & ~leads_on).any()
        assert not ((ledger.state[layer.name] != FREE) & ~leads_on & ~entered).any()
        added = torch.arange(ledger.size(layer.name)) >= cast(SparseMethod, learned.method).least_size(layer)
        assert bool(ledger.used(layer.name)[added].all())
    assert sum(len(state) for state in ledger.state.values()) <= sizes
    after = to_bytes(learned)
    assert len(after) <= len(before)
    again = from_bytes(after)
    np.testing.assert_array_equal(again.predict_proba(x), learned.predict_proba(x))
    learned.compact()
    assert to_bytes(learned) == after  # there is nothing more to drop
    assert room(learned) >= min(left, 1)
    learned.learn(*blobs([0, 1, 2, 3], shape=shape) if name == "spacenet" else blobs([0], shape=shape))


def test_what_compact_dropped_comes_back() -> None:
    learned = model([0, 1], [2, 3])
    before = to_bytes(learned)
    learned.compact()
    learned.undo()
    assert to_bytes(learned) == before


def test_added_units_that_no_one_uses_go() -> None:
    learned = model([0, 1])
    for _ in range(2):
        learned.method.ledger.grow("hidden1", 25)
    learned.method.invalidate()
    learned.compact()
    assert learned.method.ledger.size("hidden1") == 30
    learned.learn(*blobs([2, 3]))
    assert learned.tasks == [(0, 1), (2, 3)]
