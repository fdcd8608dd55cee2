"""`run`, `compare` and `sweep` on data of one's own: paths, data frames, arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

import spacenet
from spacenet.api import CONFIG, RunResult, resume
from spacenet.cli.main import main
from spacenet.config.run import read_toml
from spacenet.errors import RunError, SettingsError
from tests.api.support import QUICK, SPACE, bits
from tests.api.test_run import Interrupt, Never
from tests.support import clouds

DATA = clouds(classes=4)
FRAME = pd.DataFrame(DATA.x_train).assign(kind=[f"k{label}" for label in DATA.y_train])
OPTIONS: dict[str, Any] = {**QUICK, **SPACE}


@pytest.fixture
def table(place: Path) -> Path:
    FRAME.to_csv(place / "clouds.csv")
    return place / "clouds.csv"


def test_a_path_a_frame_and_a_stream_are_the_same(table: Path) -> None:
    result = spacenet.run("clouds.csv", label="kind", **OPTIONS)
    assert result.stream == "clouds"
    same = bits(result)[1]
    assert bits(spacenet.run(table, label=-1, classes_per_task=2, **OPTIONS))[1] == same
    assert bits(spacenet.run(spacenet.Stream.from_data(table, label="kind"), **OPTIONS))[1] == same
    for source, reading in ((FRAME, {"label": "kind"}), ((DATA.x_train, FRAME["kind"]), {"test_fraction": 0.2})):
        other = spacenet.run(source, **reading, **OPTIONS)
        assert other.stream == "custom"  # which its model holds, too
        assert np.array_equal(other.matrix, result.matrix)
        assert np.array_equal(other.model.predict_proba(DATA.x_test), result.model.predict_proba(DATA.x_test))
    assert bits(spacenet.run(table, label="kind", split_seed=1, **OPTIONS))[1] != same


def test_seeds_in_processes_share_the_data_of_a_mapped_file(
    table: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = bits(spacenet.run(table, label="kind", seed=1, **OPTIONS))[1]
    monkeypatch.setenv("SPACENET_MEMORY_LIMIT", "0")
    monkeypatch.setenv("SPACENET_CACHE", str(place / "cache"))
    several = spacenet.run(table, label="kind", seeds=2, workers=2, **OPTIONS)
    assert bits(several[1])[1] == single
    assert list((place / "cache" / "memory").iterdir()) == []


def test_a_run_on_a_file_is_resumed_from_its_folder_alone(table: Path, place: Path) -> None:
    whole = spacenet.run(table, label="kind", **OPTIONS)
    for folder in ("kept", "changed"):
        with pytest.raises(KeyboardInterrupt):
            spacenet.run(table, label="kind", out=folder, callbacks=[Interrupt()], **OPTIONS)
    assert read_toml(place / "kept" / CONFIG)["stream"] == {
        "name": "clouds",
        "data": str(table),
        "label": "kind",
        "validation": 0.0,
    }
    again = resume("kept", progress=False)
    assert isinstance(again, RunResult)
    assert bits(again)[1] == bits(whole)[1]
    table.unlink()
    assert spacenet.run(table, label="kind", out="kept", callbacks=[Never()], **OPTIONS).acc == whole.acc, (
        "it is finished"
    )
    changed = pd.DataFrame(DATA.x_train + np.float32(0.5)).assign(kind=FRAME["kind"])
    changed.to_csv(table)
    with pytest.raises(RunError, match=r"changed holds a run on other data: .*clouds.csv has changed since it began"):
        resume("changed", progress=False)


def test_a_comparison_and_a_search_read_a_file(table: Path, place: Path) -> None:
    options: dict[str, Any] = {"label": "kind", "epochs": 1, "progress": False}
    table_of = spacenet.compare("clouds.csv", ["naive", "joint"], out="compared", **options)
    assert [row.method for row in table_of.rows] == ["naive", "joint"]
    assert len(spacenet.sweep(table, "naive", trials=1, **options).trials) == 1


def test_the_command_line_reads_the_same(table: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--epochs", "1", "--quiet", "--no-report", "--hidden", "30", "20"]
    assert main(["run", *quick, "clouds.csv", "--label", "kind", "--out", "a"]) == 0
    assert "on clouds, seed 0" in capsys.readouterr().out
    assert main(["run", "--config", "a/config.toml", "--quiet", "--no-report", "--out", "b"]) == 0
    assert (place / "a" / "model.safetensors").read_bytes() == (place / "b" / "model.safetensors").read_bytes()
    assert main(["run", "split-digits", "--config", "a/config.toml", "--tasks", "0,1", *quick, "--out", "c"]) == 0
    assert "data" not in read_toml(place / "c" / CONFIG)["stream"], "that was the other stream's"
    assert main(["run", "clouds.csv", *quick]) == 2
    assert "--label: name the column of" in capsys.readouterr().err
    assert main(["run", "split-digits", "--label", "kind", *quick]) == 2
    assert "--label: is for data of your own; split-digits is known by name" in capsys.readouterr().err
    assert main(["run", "missing.csv", *quick]) == 2
    assert "missing.csv: cannot be read (No such file or directory)" in capsys.readouterr().err


def test_a_cut_of_a_file_by_name_of_its_settings(table: Path) -> None:
    stream = spacenet.Stream.from_data(table, label="kind", tasks=[["k3"], ["k0", "k1"]])
    assert stream.config.tasks == "k3/k0,k1"
    assert stream[:1].config.tasks == "k3"
    with pytest.raises(SettingsError, match="label: goes with the name of a stream"):
        spacenet.run(stream, label="kind")


def test_the_classifier_takes_images_with_their_channels_last() -> None:
    x, y = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), dtype=np.uint8), np.arange(12) % 2
    first, last = (spacenet.SpaceNetClassifier(epochs=1) for _ in range(2))
    last.partial_fit(x, y)
    first.partial_fit(x.transpose(0, 3, 1, 2), y)
    assert last.model_.input_shape == (3, 8, 8)
    assert np.array_equal(last.predict_proba(x), first.predict_proba(x.transpose(0, 3, 1, 2)))
