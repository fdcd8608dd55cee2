import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacenet.errors import ModelFileError, RunError, SettingsError, SpaceFull
from spacenet.experiments.analysis import ANALYSIS
from spacenet.experiments.callbacks import Callback
from spacenet.experiments.run import CONFIG, LOG, METRICS, MODEL, STATE, Run, create_folder, load_config
from spacenet.methods import METHODS
from spacenet.model.file import load_model
from spacenet.utils.files import load_tensors
from tests.experiments.support import config, outcome


class Stop(Callback):
    """Ends the run like a kill would: at a batch, at an epoch or at the end of a task, with no chance to tidy up."""

    def __init__(self, after: int) -> None:
        self.left = after

    def batch(self, task: int, done: int, total: int) -> None:
        self._count()

    def epoch(self, epoch: object) -> None:
        self._count()

    def task(self, record: object) -> None:
        self._count()

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


def whole_run(folder: Path, method: str) -> Path:
    target = folder / f"whole-{method}"
    create_folder(config(folder, method), target)
    Run(target).execute()
    return target


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[object, bytes]]:
    folder = tmp_path_factory.mktemp("whole")
    return {method: outcome(whole_run(folder, method)) for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_run(method: str, whole: dict[str, object], tmp_path: Path) -> None:
    assert outcome(whole_run(tmp_path, method)) == whole[method]


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=3)
@given(stops=st.lists(st.integers(0, 200), min_size=1, max_size=3))
def test_killed_anywhere_and_resumed_it_ends_in_the_same_bits(
    whole: dict[str, object], method: str, stops: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        create_folder(config(Path(name), method), folder)
        for after in stops:
            try:
                Run(folder, [Stop(after)]).execute()
            except KeyboardInterrupt:
                continue
        if not (folder / METRICS).is_file():
            Run(folder).execute()
        assert outcome(folder) == whole[method]


def test_a_run_folder_holds_what_it_should(tmp_path: Path) -> None:
    folder = whole_run(tmp_path, "spacenet")
    assert {path.name for path in folder.iterdir()} == {CONFIG, METRICS, MODEL, LOG, ANALYSIS}
    metrics = json.loads((folder / METRICS).read_text())
    keys = {"acc", "bwt", "matrix", "seconds", "seed", "method", "stream", "tasks", "layers", "forgetting", "fwt"}
    assert keys <= set(metrics)
    assert metrics["acc"] == pytest.approx(sum(metrics["matrix"][-1]) / 3)
    assert 0 <= metrics["acc"] <= 100
    assert metrics["matrix"][0][1:] == [0.0, 0.0]
    assert metrics["task_incremental"]["acc"] >= metrics["acc"]
    assert metrics["connections"] == 3 * (40 + 40 + 16)
    assert [len(task["epochs"]) for task in metrics["tasks"]] == [3, 3, 3]
    assert metrics["layers"] == metrics["tasks"][-1]["layers"]
    assert metrics["stopped"] is None
    lines = (folder / LOG).read_text().splitlines()
    assert "spacenet learns npz in 3 tasks, seed 0" in lines[0]
    assert "done: ACC" in lines[-1]
    assert load_config(folder) == config(tmp_path)


def test_the_model_file_holds_the_space(tmp_path: Path) -> None:
    folder = whole_run(tmp_path, "spacenet")
    model, run = load_model(folder / MODEL), Run(folder)
    assert model.tasks == [(0, 1), (2, 3), (4, 5)]
    assert len(model.method.ledger.connections["input-hidden1"]) == 120
    assert sorted(model.method.ledger.state["hidden1"].unique().tolist()) == [-1, 0, 1, 2]
    assert model.metrics["acc"] == json.loads((folder / METRICS).read_text())["acc"]
    raw, task = run.stream.dataset.x_test, run.stream[2]
    rows = np.isin(run.stream.dataset.y_test, [4, 5])
    right = [model.classes[i] for i in model.probabilities(raw[rows]).argmax(1)] == run.stream.dataset.y_test[rows]
    assert 100 * np.mean(right) == pytest.approx(model.metrics["matrix"][2][task.index])


def test_a_method_without_a_space_leaves_its_bare_tensors(tmp_path: Path) -> None:
    folder = whole_run(tmp_path, "naive")
    assert load_tensors(folder / MODEL)[1] == {"method": "naive"}
    with pytest.raises(ModelFileError, match="only methods with a space"):
        load_model(folder / MODEL)


def test_running_out_of_space_keeps_what_was_learned(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    create_folder(config(tmp_path, net={"hidden": [30, 16]}), folder)
    with pytest.raises(SpaceFull, match="hidden2 is full"):
        Run(folder).execute()
    metrics = json.loads((folder / METRICS).read_text())
    assert metrics["tasks_learned"] == 2
    assert metrics["stopped"].startswith("task 3 was not learned: hidden2 is full")
    assert len(metrics["matrix"]) == 2
    assert load_model(folder / MODEL).classes == [0, 1, 2, 3]
    assert "warning: the space holds 2 of the stream's 3 tasks" in (folder / LOG).read_text()


def test_bad_settings_are_refused_before_training(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    create_folder(config(tmp_path, options={"selected": [31]}), folder)
    with pytest.raises(SettingsError, match="31 units of hidden1"):
        Run(folder)


def test_a_folder_is_not_used_twice(tmp_path: Path) -> None:
    create_folder(config(tmp_path), tmp_path / "run")
    with pytest.raises(RunError, match="holds a run already; go on with --resume"):
        create_folder(config(tmp_path), tmp_path / "run")


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no run"):
        Run(tmp_path)


def test_a_damaged_state_is_an_error_for_people(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    create_folder(config(tmp_path), folder)
    with pytest.raises(KeyboardInterrupt):
        Run(folder, [Stop(30)]).execute()
    (folder / STATE).write_bytes(b"\x00" * 50)
    with pytest.raises(RunError, match="cannot be read"):
        Run(folder)
