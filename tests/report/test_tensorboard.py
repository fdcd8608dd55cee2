from pathlib import Path

import pytest

from spacenet.experiments.run import Run, create_folder
from spacenet.report.pictures.picture import Picture, new_figure
from spacenet.report.source import RunFacts
from spacenet.report.tensorboard import FOLDER, TensorboardWatch
from tests.experiments.support import config

pytest.importorskip("tensorboardX")


def test_scalars_and_pictures_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    create_folder(config(tmp_path), folder)
    asked: list[RunFacts] = []

    def pictures(facts: RunFacts) -> list[Picture]:
        asked.append(facts)
        return [Picture("empty", "Nothing", "nothing", lambda: new_figure(1.0))]

    Run(folder, [TensorboardWatch(folder, pictures)]).execute()
    assert [facts.metrics["tasks_learned"] for facts in asked] == [3]
    events = b"".join(path.read_bytes() for path in (folder / FOLDER).iterdir())
    for name in (
        b"loss/task 3",
        b"training accuracy/task 1",
        b"accuracy/task 2",
        b"units reserved/hidden1",
        b"Nothing",
    ):
        assert name.replace(b" ", b"_") in events or name in events
    assert b"PNG" in events
