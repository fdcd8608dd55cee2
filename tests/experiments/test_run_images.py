"""Runs with convolutions, batch norm, augmentation and an expansion: whatever stops them, they end in the same bits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacenet.config.presets import preset_config
from spacenet.config.run import RunConfig
from spacenet.config.stream import CUSTOM
from spacenet.errors import SettingsError
from spacenet.experiments.run import METRICS, Run
from spacenet.training.step import Step
from tests.experiments.support import outcome
from tests.experiments.test_run import Stop


def images_file(folder: Path, classes: int = 6, each: int = 7) -> Path:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(classes), each)
    x = (rng.normal(size=(classes, 3, 8, 8))[y] + 0.5 * rng.normal(size=(len(y), 3, 8, 8))).astype(np.float32)
    np.savez(folder / "images.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    return folder / "images.npz"


def config(folder: Path, method: str = "spacenet", /, **over: dict[str, Any]) -> RunConfig:
    """Three tasks of two classes; before the last one the second convolution grows."""
    settings: dict[str, Any] = {
        "stream": {"data": str(images_file(folder))},
        "net": {"name": "small-cnn", "hidden": [6, 8, 12]},
        "training": {"epochs": 2, "batch_size": 5, "learning_rate": 0.1, "momentum": 0.5, "augment": "crop-flip"},
    }
    if method == "spacenet":
        settings["method"] = {"selected": [0], "reserved": [1], "connections": [0.2], "expand": "3:conv2=2"}
    return preset_config(CUSTOM, method, settings, over)


def finish(folder: Path, settings: RunConfig, stops: list[int]) -> tuple[dict[str, Any], bytes]:
    for after in stops:
        with pytest.raises(KeyboardInterrupt):
            Run(settings, folder=folder, callbacks=[Stop(after)]).execute()
    Run(settings, folder=folder).execute()
    return outcome(folder)


@pytest.mark.parametrize("method", ["spacenet", "naive"])
def test_killed_and_resumed_it_ends_in_the_same_bits(method: str, tmp_path: Path) -> None:
    whole = finish(tmp_path / "whole", config(tmp_path, method), [])
    # A task has 2 batches in each of 2 epochs, and 3 other events. So: in an epoch, at its end, at a task's end,
    # several times, and after the expansion.
    for number, stops in enumerate([[1], [5], [6], [4, 3, 7], [17]]):
        assert finish(tmp_path / str(number), config(tmp_path, method), stops) == whole
    assert len({value for row in whole[0]["matrix"] for value in row}) > 2, "nothing was learned to compare"
    if method == "spacenet":
        assert [layer["units"] for layer in whole[0]["layers"]] == [6, 10, 12, 6]


def test_killed_while_batch_norm_is_recalibrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = finish(tmp_path / "whole", config(tmp_path), [])
    with monkeypatch.context() as patched:
        patched.setattr(Step, "update_statistics", lambda self, rows: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            Run(config(tmp_path), folder=tmp_path / "run").execute()
    Run(config(tmp_path), folder=tmp_path / "run").execute()
    assert outcome(tmp_path / "run") == whole


def test_recalibration_changes_statistics_and_nothing_else(tmp_path: Path) -> None:
    one_task = {"tasks": "0,1"}
    recalibrated = finish(tmp_path / "recalibrated", config(tmp_path, "naive", stream=one_task), [])
    plain = finish(
        tmp_path / "plain", config(tmp_path, "naive", stream=one_task, training={"bn_recalibration_epochs": 0}), []
    )
    assert recalibrated[0]["tasks"][0]["epochs"] == plain[0]["tasks"][0]["epochs"]
    assert recalibrated[1] != plain[1]


@pytest.mark.parametrize(
    ("over", "match"),
    [
        ({"method": {"expand": "4:conv2=1"}}, "expand: .*task 4"),
        ({"method": {"expand": "2:conv9=1"}}, "expand: .*'conv9'"),
        ({"method": {"selected": [0, 0]}}, "selected: 2 numbers for conv1, conv2, linear"),
        (
            {"net": {"name": "wrn-10-1", "hidden": []}, "method": {"expand": "auto", "reserved": [99]}},
            "99 units of stem",
        ),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_written(over: dict[str, Any], match: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=match):
        Run(config(tmp_path, **over), folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_vectors_cannot_be_augmented(tmp_path: Path) -> None:
    x = np.zeros((4, 10), np.float32)
    y = np.array([0, 1, 0, 1])
    np.savez(tmp_path / "vectors.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    over = {"stream": {"data": str(tmp_path / "vectors.npz")}, "training": {"augment": "crop-flip"}}
    with pytest.raises(SettingsError, match="augment: .*images"):
        Run(preset_config(CUSTOM, "naive", over))


def test_a_finished_run_tells_its_net_and_hardware(tmp_path: Path) -> None:
    metrics, _ = finish(tmp_path / "run", config(tmp_path, stream={"tasks": "0,1/2,3/4,5"}), [])
    assert (tmp_path / "run" / METRICS).is_file()
    assert metrics["net"] == "small-cnn"
    assert metrics["hardware"] == "CPU, 1 thread"
