import dataclasses
import errno
import json
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacenet.config.presets import resolve_automatic
from spacenet.data.stream import Task
from spacenet.errors import ModelFileError, RunError, SettingsError, SpaceFull
from spacenet.experiments.analysis import ANALYSIS, Analysis
from spacenet.experiments.callbacks import Callback
from spacenet.experiments.metrics import Record
from spacenet.experiments.run import CONFIG, LOG, METRICS, MODEL, STATE, Run, RunData, load_config, load_run
from spacenet.methods.base import Method
from spacenet.methods.naive import Naive
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.model.file import load_model
from spacenet.registry import METHODS
from spacenet.training.loop import Epoch
from spacenet.utils.tensors import save_tensors
from tests.experiments.support import config, in_memory, outcome


class Stop(Callback):
    """Ends the run like a kill would: at a batch, at an epoch or at the end of a task, with no chance to tidy up."""

    def __init__(self, after: int) -> None:
        self.left = after

    def on_batch_end(self, task: int, done: int, total: int) -> None:
        self._count()

    def on_epoch_end(self, epoch: Epoch) -> None:
        self._count()

    def on_task_end(self, record: Record) -> None:
        self._count()

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


def whole_run(folder: Path, method: str) -> Path:
    target = folder / f"whole-{method}"
    Run(config(folder, method), folder=target).execute()
    return target


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[object, bytes]]:
    folder = tmp_path_factory.mktemp("whole")
    return {method: outcome(whole_run(folder, method)) for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_run_with_a_folder_and_without(
    method: str, whole: dict[str, tuple[object, bytes]], tmp_path: Path
) -> None:
    data = Run(config(tmp_path, method)).execute()
    metrics, model = whole[method]
    assert in_memory(data) == (metrics, model)
    assert data.folder is None
    assert [path.name for path in tmp_path.iterdir()] == ["clouds.npz"]


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=2)
@given(stops=st.lists(st.integers(0, 200), min_size=1, max_size=3))
def test_killed_anywhere_and_resumed_it_ends_in_the_same_bits(
    whole: dict[str, object], method: str, stops: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        wanted = config(Path(name), method)
        for after in stops:
            try:
                Run(wanted, folder=folder, callbacks=[Stop(after)]).execute()
            except KeyboardInterrupt:
                continue
        if not (folder / METRICS).is_file():
            Run(wanted, folder=folder).execute()
        metrics, model = outcome(folder)
        expected = whole[method]
        assert (metrics, model) == expected


def test_a_warning_outlasts_a_kill_after_the_last_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = config(tmp_path, training={"learning_rate": 1e-9})
    expected = in_memory(Run(wanted).execute())[0]
    assert any("hardly learned" in warning for warning in expected["warnings"])
    folder = tmp_path / "run"

    def kill(method: SparseMethod, task: Task) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SparseMethod, "end_task", kill)
        with pytest.raises(KeyboardInterrupt):
            Run(wanted, folder=folder).execute()
    Run(wanted, folder=folder).execute()
    assert outcome(folder)[0] == expected


def test_a_run_folder_holds_what_it_should(tmp_path: Path) -> None:
    folder = whole_run(tmp_path, "spacenet")
    assert {path.name for path in folder.iterdir()} == {CONFIG, METRICS, MODEL, LOG, ANALYSIS}
    metrics = json.loads((folder / METRICS).read_text())
    keys = {"acc", "bwt", "matrix", "seconds", "seed", "method", "stream", "tasks", "layers", "forgetting", "fwt"}
    assert keys <= set(metrics)
    assert metrics["acc"] == pytest.approx(sum(metrics["matrix"][-1]) / 3)
    assert 0 <= metrics["acc"] <= 100
    assert metrics["matrix"][0][1:] == [0.0, 0.0]
    assert metrics["task_il_acc"] == pytest.approx(sum(metrics["task_il_matrix"][-1]) / 3)
    assert metrics["task_il_acc"] >= metrics["acc"]
    assert (found := Analysis.load(folder).calibration)
    assert metrics["ece"] == found.ece
    assert metrics["connections"] == 3 * (40 + 40 + 16)
    assert [len(task["epochs"]) for task in metrics["tasks"]] == [3, 3, 3]
    assert metrics["layers"] == metrics["tasks"][-1]["layers"]
    assert metrics["stopped"] is None
    assert 0 < metrics["training_seconds"] < metrics["seconds"]
    lines = (folder / LOG).read_text().splitlines()
    assert "spacenet learns custom in 3 tasks, seed 0" in lines[0]
    assert "done: ACC" in lines[-1]
    model = config(tmp_path).model
    following = model.method_settings.for_tasks(3)  # from the stream
    kept = resolve_automatic(dataclasses.replace(model, method_settings=following), (10,))
    assert load_config(folder) == dataclasses.replace(config(tmp_path), model=kept)


def test_what_a_run_returns_is_what_its_folder_holds(tmp_path: Path) -> None:
    data = Run(config(tmp_path), folder=tmp_path / "run").execute()
    loaded = load_run(tmp_path / "run")
    for found in (loaded, pickle.loads(pickle.dumps(data))):
        assert isinstance(found, RunData)
        assert (found.config, found.metrics, found.folder) == (data.config, data.metrics, tmp_path / "run")
        assert found.labels == [["0", "1"], ["2", "3"], ["4", "5"]]
        assert in_memory(found) == in_memory(data) == outcome(tmp_path / "run")
        assert found.analysis.labels == data.analysis.labels


def test_the_model_file_holds_the_space(tmp_path: Path) -> None:
    folder = whole_run(tmp_path, "spacenet")
    model, stream = load_model(folder / MODEL), Run(config(tmp_path)).stream
    assert model.tasks == [(0, 1), (2, 3), (4, 5)]
    assert len(model.method.ledger.connections["input-hidden1"]) == 120
    assert sorted(model.method.ledger.state["hidden1"].unique().tolist()) == [-1, 0, 1, 2]
    assert model.metrics["acc"] == json.loads((folder / METRICS).read_text())["acc"]
    raw, task = stream.dataset.x_test, stream[2]
    rows = np.isin(stream.dataset.y_test, [4, 5])
    right = [model.classes[i] for i in model.predict_proba(raw[rows]).argmax(1)] == stream.dataset.y_test[rows]
    assert 100 * np.mean(right) == pytest.approx(model.metrics["matrix"][2][task.index])


def test_a_run_of_an_earlier_version_may_have_no_model(tmp_path: Path) -> None:
    folder = whole_run(tmp_path, "naive")
    assert load_model(folder / MODEL).tasks == [(0, 1), (2, 3), (4, 5)]
    save_tensors(folder / MODEL, {"network/params": torch.zeros(3)}, {"method": "naive"})
    with pytest.raises(ModelFileError, match="with most methods, runs of earlier versions left such files: repeat"):
        load_model(folder / MODEL)
    assert load_run(folder).model is None


@pytest.mark.parametrize("in_folder", [True, False])
def test_a_run_ends_without_a_model_where_a_file_cannot_hold_it(
    in_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As that of a method of another package that does not say what it keeps."""
    monkeypatch.setattr(Naive, "check_state", lambda self, state, input_shape: Method.check_state(self, state, ()))
    data = Run(config(tmp_path, "naive"), folder=tmp_path / "run" if in_folder else None).execute()
    found = load_run(tmp_path / "run") if in_folder else pickle.loads(pickle.dumps(data))
    assert (found.metrics["acc"], found.model) == (data.metrics["acc"], None)
    assert "the run leaves no model" in caplog.text


def test_running_out_of_space_keeps_what_was_learned(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(SpaceFull, match="hidden2 is full") as raised:
        Run(config(tmp_path, net={"hidden": [30, 16]}), folder=folder).execute()
    metrics = json.loads((folder / METRICS).read_text())
    assert metrics["tasks_learned"] == 2
    assert metrics["stopped"].startswith("task 3 was not learned: hidden2 is full")
    assert len(metrics["matrix"]) == 2
    assert load_model(folder / MODEL).classes == [0, 1, 2, 3]
    assert "warning: the space holds 2 of the stream's 3 tasks" in (folder / LOG).read_text()
    assert metrics["warnings"] != []
    assert raised.value.result.metrics == metrics
    assert raised.value.layer == "hidden2"
    assert not (folder / STATE).exists()


def test_bad_settings_are_refused_before_training_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="31 units of hidden1"):
        Run(config(tmp_path, method={"selected": [31]}), folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no run"):
        load_run(tmp_path)


def test_a_run_that_is_not_finished_says_how_to_continue(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Run(config(tmp_path), folder=tmp_path / "run", callbacks=[Stop(30)]).execute()
    with pytest.raises(RunError, match="the run is not finished. Continue it with spacenet.run") as raised:
        load_run(tmp_path / "run")
    assert raised.value.for_cli().endswith(f"Continue it with: spacenet run --resume {tmp_path / 'run'}")


def test_a_damaged_state_is_an_error_for_people(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        Run(config(tmp_path), folder=folder, callbacks=[Stop(30)]).execute()
    (folder / STATE).write_bytes(b"\x00" * 50)
    with pytest.raises(RunError, match="cannot be read"):
        Run(config(tmp_path), folder=folder)


def test_a_run_does_not_go_on_with_other_tasks(tmp_path: Path) -> None:
    wanted = config(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        Run(wanted, folder=tmp_path / "run", callbacks=[Stop(30)]).execute()
    other = dataclasses.replace(wanted, stream=dataclasses.replace(wanted.stream, tasks="5,4/3,2/1,0"))
    with pytest.raises(RunError, match="other tasks"):
        Run(other, folder=tmp_path / "run")


def test_a_model_of_a_run_is_one_of_its_method(tmp_path: Path) -> None:
    data = Run(config(tmp_path)).execute()
    assert data.model is not None
    assert isinstance(data.model.method, SparseMethod)
    assert data.model.config.training.device == "auto"
    assert data.model.metrics["matrix"] == data.metrics["matrix"]


def test_all_test_data_is_evaluated_after_every_third_task(tmp_path: Path) -> None:
    folder = tmp_path / "sparing"
    every = Run(config(tmp_path)).execute().metrics
    data = Run(config(tmp_path, training={"evaluate_every": 3}), folder=folder).execute()
    full, measured = every["matrix"], json.loads((folder / METRICS).read_text())["matrix"]
    assert measured == [full[0], [None, *full[1][1:]], full[2]]
    assert (data.metrics["acc"], data.metrics["bwt"]) == (every["acc"], every["bwt"])
    assert load_run(folder).metrics["matrix"] == measured


def test_a_run_that_stops_between_evaluations_is_evaluated(tmp_path: Path) -> None:
    settings = config(tmp_path, net={"hidden": [30, 16]}, training={"evaluate_every": 5})
    with pytest.raises(SpaceFull) as raised:
        Run(settings).execute()
    matrix = raised.value.result.metrics["matrix"]
    assert len(matrix) == 2
    assert None not in matrix[-1]


def test_a_model_that_cannot_be_read_now_is_not_taken_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report without the model would be a wrong one. Where there is no file there is no model."""
    folder = whole_run(tmp_path, "spacenet")
    plain = Path.open

    def refused(path: Path, *args: Any, **options: Any) -> Any:
        if path.name == MODEL:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return plain(path, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refused)
        with pytest.raises(ModelFileError, match="cannot be read .Permission denied"):
            load_run(folder)
    assert load_run(folder).model is not None
    (folder / MODEL).unlink()
    assert load_run(folder).model is None


def test_a_finished_run_does_not_fail_because_of_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.name == STATE:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        plain(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    folder = whole_run(tmp_path, "naive")
    assert (folder / METRICS).is_file()
    assert (folder / STATE).is_file()
