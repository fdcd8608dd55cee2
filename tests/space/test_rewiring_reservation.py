import torch

from spacenet.nets.mlp import build_mlp
from spacenet.space.ledger import FREE, Ledger
from spacenet.space.rewiring import reserve


def test_the_most_important_of_the_selected_units_are_reserved() -> None:
    ledger = Ledger(build_mlp((3,), (6,)))
    selection = {"hidden1": torch.tensor([1, 3, 4, 5])}
    reserve(ledger, 7, selection, {"hidden1": torch.tensor([0.1, 9.0, 0.0, 2.0])}, {"hidden1": 2})
    assert ledger.state["hidden1"].tolist() == [FREE, FREE, FREE, 7, FREE, 7]


def test_reserving_none_leaves_all_free() -> None:
    ledger = Ledger(build_mlp((3,), (6,)))
    reserve(ledger, 0, {"hidden1": torch.tensor([1, 2])}, {"hidden1": torch.ones(2)}, {"hidden1": 0})
    assert len(ledger.free("hidden1")) == 6
