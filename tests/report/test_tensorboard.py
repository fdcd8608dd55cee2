from pathlib import Path

import pytest

from spacenet.experiments.run import Run, create_folder
from spacenet.report.tensorboard import FOLDER, TensorBoardLogger
from tests.experiments.support import config

pytest.importorskip("tensorboardX")


def test_scalars_and_pictures_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    create_folder(config(tmp_path), folder)
    Run(folder, [TensorBoardLogger(folder)]).execute()
    events = b"".join(path.read_bytes() for path in (folder / FOLDER).iterdir())
    for name in ("loss/task 3", "training accuracy/task 1", "accuracy/task 2", "units reserved/hidden1"):
        assert name.replace(" ", "_").encode() in events
    assert events.count(b"\x89PNG") >= 8
