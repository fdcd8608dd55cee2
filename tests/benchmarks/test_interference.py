from pathlib import Path

import pytest
import torch

from benchmarks import interference
from benchmarks.interference import AS_IS, AS_WAS, VALUES, measure_seed, with_values
from spacenet.methods.spacenet import SpaceNet
from spacenet.space.ledger import unit_values
from tests.methods.support import learn
from tests.nets.test_convolutions import TRAINING, images, tiny_cnn


def test_the_three_states_of_a_network() -> None:
    found = measure_seed("split-digits", 0, {"training": {"epochs": 2}})
    accuracies = [found[state][key] for state in (AS_IS, VALUES, AS_WAS) for key in ("acc", "task_il_acc")]
    assert all(len(each) == 5 and 0 <= min(each) <= max(each) <= 100 for each in accuracies)
    assert found[AS_IS] != found[AS_WAS]


def test_only_values_of_hidden_units_are_restored() -> None:
    method = SpaceNet(tiny_cnn(), SpaceNet.Settings(), seed=0)
    learn(method, images()[:1], TRAINING)
    before = unit_values(method.ledger)
    learn(method, images()[1:2], TRAINING)
    restored = with_values(method.ledger, before)
    layers = method.blueprint.unit_values()
    hidden = [key for key, (layer, _) in layers.items() if layer.name != method.blueprint.output.name]
    assert all(torch.equal(restored.units[key], before[key]) for key in hidden)
    assert any(not torch.equal(method.ledger.units[key], before[key]) for key in hidden)
    output = [key for key in layers if key not in hidden]
    assert all(torch.equal(restored.units[key], method.ledger.units[key]) for key in output)


def test_the_page_has_a_table_for_each_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interference, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(interference, "HERE", tmp_path)
    monkeypatch.setattr(interference, "TITLES", {"split-digits": "Digits"})
    assert interference.main(["split-digits", "--seeds", "1", "--epochs", "1"]) == 0
    text = (tmp_path / "page.md").read_text()
    assert "## Digits" in text
    assert f"| {AS_WAS} |" in text
    assert "`python -m benchmarks.interference split-digits --seeds 1 --epochs 1`" in text
