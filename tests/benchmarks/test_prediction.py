"""The benchmark of predictions at tiny sizes: that it measures what it says, not how fast anything is."""

import io
import json
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from benchmarks import prediction
from benchmarks.prediction import BATCHES, DENSE, LABELS, NETWORK, PACKED, Options, as_dense, learned, main, measure
from benchmarks.workload import workload
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.space.pack import cut


def test_all_parts_are_measured_and_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "PROCESSES", 1)
    console = Console(file=io.StringIO(), width=140)
    figures = measure(Options(tiny=True, seconds_per_cell=0.01), console)
    json.dumps(figures)
    assert isinstance(console.file, io.StringIO)
    for words in ("Predicting after all tasks", "At width 100 the pack is", "bytes / connection"):
        assert words in console.file.getvalue()
    cells = [(f["width"], f["batch"], f["part"]) for f in figures["speed"]]
    assert cells == [(width, batch, part) for width in (50, 100) for batch in BATCHES for part in (NETWORK, LABELS)]
    assert all(set(f["times"]) == {PACKED, DENSE} for f in figures["speed"])
    assert all(f["connections"] == 5 * (200 + 40 + 8) and f["load_seconds"] > 0 for f in figures["file"])


def test_the_dense_form_has_every_unit() -> None:
    with workload(1, None, tiny=True) as work:
        model = learned(work.at(100))
    used = cast(SparseMethod, as_dense(model).method).pack
    assert used.params["hidden1-hidden2"].shape == (100, 100)
    assert used.params.keys() == cut(model.method.ledger, used.units).keys()
    assert cast(SparseMethod, model.method).pack.params["hidden1-hidden2"].shape != (100, 100)


def test_forms_that_do_not_compute_the_same_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    with workload(1, None, tiny=True) as work:
        model, other = learned(work.at(50)), learned(work.at(50))
    other.method.ledger.units["output.bias"][0] += 1
    monkeypatch.setattr(prediction, "as_dense", lambda _: other)
    with pytest.raises(AssertionError, match="do not compute the same"):
        prediction.compare(model, 50, 0.01)


def test_the_figures_go_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "measure", lambda options, console: {"tiny": options.tiny})
    assert main(["--tiny", "--json", str(tmp_path / "figures.json")]) == 0
    assert json.loads((tmp_path / "figures.json").read_text()) == {"tiny": True}
