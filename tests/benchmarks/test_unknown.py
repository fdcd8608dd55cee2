import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spacenet
from benchmarks import unknown
from spacenet.data.features import encode_samples
from spacenet.data.preprocessing import Array
from spacenet.data.user_data import make_dataset
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput
from spacenet.encoders.libraries import from_module
from spacenet.encoders.loading import encoder_name
from tests.encoders.support import SIZE, TinyEncoder


def test_it_measures_images_and_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown, "SPLITS", 1)
    monkeypatch.setattr(unknown, "TABLES", {"wine": unknown.TABLES["wine"]})
    path = tmp_path / "unknown.json"
    assert unknown.main(["--streams", "split-digits", "--epochs", "1", "--json", str(path)]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert [row["data"] for row in rows] == ["split-digits without 8, 9", *(f"wine without {n}" for n in range(3))]
    assert rows[0]["auroc"] > 0.95
    assert abs(rows[0]["false_alarms"] - 5) < 4
    assert all(row["huge"] == row["constant"] == 100 for row in rows)
    assert rows[0]["noise"] == 100
    assert rows[0]["bound"] is None
    assert all(row["noise"] > 65 and 85 < row["bound"] <= 100 for row in rows[1:])
    shown = capsys.readouterr().out
    assert "AUROC" in shown
    assert f"{rows[0]['auroc']:.3f}" in shown


@pytest.mark.parametrize("learn_tuned", [False, True])
def test_an_encoder_is_tuned_on_other_images_than_are_learned(
    learn_tuned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL", reason="images need the extra 'images'")
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    for name, value in {"TRAIN": 2, "TEST": 1, "EPOCHS": 1, "SAMPLES": 4, "ORDER": 7}.items():
        monkeypatch.setattr(unknown, name, value)
    images = np.random.default_rng(0).integers(0, 256, (400, 3, SIZE, SIZE), dtype=np.uint8)
    y = np.arange(400) % 100
    data = make_dataset("noise", images, y, images[:100], y[:100])
    tiny = encoder_name(from_module("tiny", TinyEncoder(), ImageInput(SIZE), ""))
    tuned_on, learned = list[Array](), list[Array]()
    tune = spacenet.tune_encoder

    def note_tuned(given: tuple[Array, Array], *rest: Any, **settings: Any) -> Any:
        tuned_on.append(given[0])
        return tune(given, *rest, **settings)

    def note_learned(encoder: Encoder, x: Array, **settings: Any) -> Array:
        learned.append(x)
        return encode_samples(encoder, x, **settings)

    monkeypatch.setattr(spacenet, "tune_encoder", note_tuned)
    monkeypatch.setattr(unknown, "encode_samples", note_learned)
    options = unknown.Options(encoder=tiny, tuned=tmp_path, size=SIZE, learn_tuned=learn_tuned)
    (found, other) = unknown._learn_features(options, data, {"epochs": 1})
    assert (found.unknown, len(found.model.tasks), len(other.model.tasks[0])) == (tuple(range(50, 100)), 1, 50)
    assert other.unknown != found.unknown
    assert (len(tuned_on[0]), len(learned[0])) == (100, 100)
    keys = [{image.tobytes() for image in part} for part in (tuned_on[0], learned[0])]
    assert (keys[0] == keys[1]) is learn_tuned
    assert (keys[0] & keys[1] == set()) is not learn_tuned
    again = list(unknown._learn_features(options, data, {"epochs": 1}))
    assert len(tuned_on) == 2  # what is in the folder is used
    assert np.array_equal(again[0].x, found.x)


def test_a_stream_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert unknown.main(["--streams", "nothing"]) == 2
    assert "unknown stream 'nothing'" in capsys.readouterr().err
