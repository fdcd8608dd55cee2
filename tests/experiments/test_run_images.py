"""Runs with convolutions, batch norm, augmentation and an expansion: whatever stops them, they end in the same bits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacenet.config.presets import preset
from spacenet.config.run import RunConfig
from spacenet.errors import SettingsError
from spacenet.experiments.run import METRICS, Run, check, create_folder
from spacenet.training.step import Step
from tests.experiments.support import outcome
from tests.experiments.test_run import Stop


def images_file(folder: Path, classes: int = 6, each: int = 7) -> Path:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(classes), each)
    x = (rng.normal(size=(classes, 3, 8, 8))[y] + 0.5 * rng.normal(size=(len(y), 3, 8, 8))).astype(np.float32)
    np.savez(folder / "images.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    return folder / "images.npz"


def config(folder: Path, method: str = "spacenet", **over: dict[str, Any]) -> RunConfig:
    """Three tasks of two classes; before the last one the second convolution grows."""
    settings: dict[str, Any] = {
        "data": {"npz": str(images_file(folder))},
        "net": {"net": "small-cnn", "hidden": [6, 8, 12]},
        "training": {"epochs": 2, "batch_size": 5, "learning_rate": 0.1, "momentum": 0.5, "augment": "crop-flip"},
    }
    if method == "spacenet":
        settings["options"] = {"selected": [0], "reserved": [1], "connections": [0.2], "expand": "3:conv2=2"}
    return preset("npz", method, settings, over)


def finished(folder: Path, settings: RunConfig, stops: list[int]) -> tuple[dict[str, Any], bytes]:
    create_folder(settings, folder)
    for after in stops:
        with pytest.raises(KeyboardInterrupt):
            Run(folder, [Stop(after)]).execute()
    Run(folder).execute()
    return outcome(folder)


@pytest.mark.parametrize("method", ["spacenet", "naive"])
def test_killed_and_resumed_it_ends_in_the_same_bits(method: str, tmp_path: Path) -> None:
    whole = finished(tmp_path / "whole", config(tmp_path, method), [])
    # A task has 2 batches in each of 2 epochs, and 3 other events. So: in an epoch, at its end, at a task's end,
    # several times, and after the expansion.
    for number, stops in enumerate([[1], [5], [6], [4, 3, 7], [17]]):
        assert finished(tmp_path / str(number), config(tmp_path, method), stops) == whole
    assert len({value for row in whole[0]["matrix"] for value in row}) > 2, "nothing was learned to compare"
    if method == "spacenet":
        assert [layer["units"] for layer in whole[0]["layers"]] == [6, 10, 12, 6]


def test_killed_while_statistics_settle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = finished(tmp_path / "whole", config(tmp_path), [])
    create_folder(config(tmp_path), tmp_path / "run")
    with monkeypatch.context() as patched:
        patched.setattr(Step, "settle", lambda self, rows: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            Run(tmp_path / "run").execute()
    Run(tmp_path / "run").execute()
    assert outcome(tmp_path / "run") == whole


def test_settling_changes_statistics_and_nothing_else(tmp_path: Path) -> None:
    settled = finished(tmp_path / "settled", config(tmp_path, "naive", data={"tasks": "0,1"}), [])
    plain = finished(
        tmp_path / "plain",
        config(tmp_path, "naive", data={"tasks": "0,1"}, training={"bn_recalibration_epochs": 0}),
        [],
    )
    assert settled[0]["tasks"][0]["epochs"] == plain[0]["tasks"][0]["epochs"]
    assert settled[1] != plain[1]


@pytest.mark.parametrize(
    ("over", "match"),
    [
        ({"options": {"expand": "4:conv2=1"}}, "expand: there is no task 4"),
        ({"options": {"expand": "2:conv9=1"}}, "expand: there is no layer 'conv9'"),
        ({"options": {"selected": [0, 0]}}, "selected: 2 numbers for conv1, conv2, linear"),
        (
            {"net": {"net": "wrn-10-1", "hidden": []}, "options": {"expand": "auto", "reserved": [99]}},
            "99 units of stem",
        ),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_written(over: dict[str, Any], match: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=match):
        check(config(tmp_path, **over))


def test_vectors_cannot_be_augmented(tmp_path: Path) -> None:
    x = np.zeros((4, 10), np.float32)
    y = np.array([0, 1, 0, 1])
    np.savez(tmp_path / "vectors.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    over = {"data": {"npz": str(tmp_path / "vectors.npz")}, "training": {"augment": "crop-flip"}}
    with pytest.raises(SettingsError, match="augment: only images"):
        check(preset("npz", "naive", over))


def test_a_finished_run_tells_its_net_and_hardware(tmp_path: Path) -> None:
    metrics, _ = finished(tmp_path / "run", config(tmp_path, data={"tasks": "0,1/2,3/4,5"}), [])
    assert (tmp_path / "run" / METRICS).is_file()
    assert metrics["net"] == "small-cnn"
    assert metrics["hardware"] == "CPU, 1 thread"
