from pathlib import Path

import pytest

from spacenet.report.tensorboard import FOLDER, TensorBoardLogger
from tests.report.conftest import learn

pytest.importorskip("tensorboardX")


def test_scalars_and_plots_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacenet.report.plots.plot.DPI", 40)
    learn(folder=tmp_path, callbacks=[TensorBoardLogger(tmp_path)])
    events = b"".join(path.read_bytes() for path in (tmp_path / FOLDER).iterdir())
    for name in ("loss/task 3", "training accuracy/task 1", "accuracy/task 2", "units reserved/hidden1"):
        assert name.replace(" ", "_").encode() in events
    assert events.count(b"\x89PNG") >= 8
