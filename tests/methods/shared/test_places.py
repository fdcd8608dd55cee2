from itertools import accumulate, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from spacenet.methods.shared.places import CLASSES, COUNTS, MORE, Places, take_places
from spacenet.utils.tensors import in_section

UNITS = {"hidden": torch.tensor([0, 2, 5])}


def ranges(counts: list[int]) -> list[range]:
    return [range(start, stop) for start, stop in pairwise(accumulate(counts, initial=0))]


def removed(counts: list[int], *steps: list[int]) -> tuple[Places, list[int]]:
    """The places after these outputs were removed one step after the other, and how many classes each task has."""
    places = Places()
    for outputs in steps:
        gone = torch.zeros(sum(counts), dtype=torch.bool)
        gone[outputs] = True
        places = places.remove(gone, ranges(counts), UNITS)
        counts = [int((~gone[own.start : own.stop]).sum()) for own in ranges(counts)]
    return places, counts


def test_places_of_classes_stay() -> None:
    places, counts = removed([2, 3], [1, 4], [0])
    assert places.classes.tolist() == [-1, -1, 0, 1, -1]
    assert counts == [0, 2]
    assert places.tasks == [range(2), range(2, 5)]
    assert places.kept.tolist() == [2, 3]
    assert places.fill.tolist() == [0, 0, 0, 1, 0]
    assert (places.fill_of(0).tolist(), places.kept_of(1).tolist()) == ([0, 0], [0, 1])


def test_without_removed_classes_there_are_none() -> None:
    assert not Places()
    assert Places().tensors() == {}
    assert take_places({"other": torch.ones(1)}, ranges([2]), {}).keys() == {"other"}


def test_scores_without_a_class_add_nothing_to_sums_of_probabilities() -> None:
    places, _ = removed([3], [1])
    scores = torch.tensor([[0.5, 7.0, -1.0]], dtype=torch.double)
    sunk = places.sink(scores)
    assert torch.equal(sunk[:, [0, 2]], scores[:, [0, 2]])
    assert torch.equal(sunk.logsumexp(1), scores[:, [0, 2]].logsumexp(1))


@given(st.lists(st.integers(1, 5), min_size=2, max_size=5), st.data())
def test_what_is_saved_can_be_loaded(counts: list[int], data: st.DataObject) -> None:
    outputs = data.draw(st.sets(st.integers(0, sum(counts) - 1), min_size=1, max_size=sum(counts) - 1))
    places, left = removed(counts, sorted(outputs))
    tensors = places.tensors()
    Places.check(tensors, ranges(left), {"hidden": 6})
    loaded = Places()
    loaded.load(tensors)
    assert torch.equal(loaded.classes, places.classes)
    assert (loaded.counts, loaded.units.keys()) == (places.counts, places.units.keys())
    assert torch.equal(loaded.classes[loaded.kept], torch.arange(sum(left)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (CLASSES, None),
        (CLASSES, torch.tensor([0.0, 1.0, 2.0])),
        (CLASSES, torch.tensor([0.0, -1.0, 2.0, 1.0])),
        (CLASSES, torch.tensor([0.0, -1.0, 1.5, 2.0])),
        (CLASSES, torch.tensor([0.0, -1.0, 1.0, 3.0])),
        (CLASSES, torch.tensor([0.0, 1.0, 2.0] + [-1.0] * (3 + MORE + 1))),
        (COUNTS, None),
        (COUNTS, torch.tensor([4.0, 0.0])),
        (COUNTS, torch.tensor([-2.0, 6.0])),
        (COUNTS, torch.tensor([2.0])),
        ("units/hidden", torch.tensor([2.0, 0.0])),
        ("units/hidden", torch.tensor([6.0])),
        ("units/hidden", torch.tensor([-1.0])),
        ("units/hidden", torch.tensor([0.5])),
        ("units/hidden", torch.tensor([[1.0]])),
        ("units/other", torch.tensor([0.0])),
        ("0/hidden", torch.tensor([0.0])),
        ("more", torch.tensor([0.0])),
    ],
)
def test_impossible_places_are_refused(name: str, value: Tensor | None) -> None:
    places, left = removed([2, 2], [1])
    tensors = {key: tensor for key, tensor in places.tensors().items() if key != name}
    Places.check(places.tensors(), ranges(left), {"hidden": 6})
    if value is not None:
        tensors[name] = value
    with pytest.raises(ValueError, match="the places of classes"):
        take_places(in_section("places", tensors), ranges(left), {"hidden": 6})
