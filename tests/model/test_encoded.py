"""Models that learn on the features of an encoder."""

from pathlib import Path

import numpy as np
import pytest

import spacenet
from spacenet.encoders import loading
from spacenet.errors import DataError, SettingsError
from spacenet.model.file import load_model
from spacenet.model.inspection import inspect_model
from tests.encoders.support import FEATURES, pictures, save_exported, save_pictures, tiny

pytest.importorskip("PIL", reason="images need the extra 'images'")
QUICK = {"epochs": 10, "hidden": (20,)}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "_own", {})


def samples(labels: list[int], count: int = 12) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([pictures(count, label) for label in labels]), np.repeat(labels, count)


def test_the_estimator_learns_images_on_features(tmp_path: Path) -> None:
    classifier = spacenet.SpaceNetClassifier(encoder=tiny(), **QUICK).partial_fit(*samples([0, 1]))
    classifier.partial_fit(*samples([2, 3]))
    x, y = samples([0, 1, 2, 3], 20)
    assert (classifier.predict(x) == y).mean() > 0.9
    assert classifier.model_.input_shape == (FEATURES,)
    features = tiny().encode(tiny().prepare(x))
    assert np.array_equal(classifier.predict_proba(features), classifier.predict_proba(x))
    assert np.array_equal(classifier.predict_proba(x.transpose(0, 2, 3, 1)), classifier.predict_proba(x))
    classifier.save(tmp_path / "model.safetensors")
    again = spacenet.load(tmp_path / "model.safetensors")
    assert again.encoder == "own:tiny"
    assert np.array_equal(again.predict_proba(x), classifier.predict_proba(x))


def test_a_model_without_its_encoder_says_so(tmp_path: Path) -> None:
    path, (x, y) = tmp_path / "model.safetensors", samples([0, 1])
    spacenet.SpaceNetClassifier(encoder=tiny(), **QUICK).fit(x, y).save(path)
    loading._own.clear()
    lonely = spacenet.load(path)
    assert len(lonely.predict_proba(np.zeros((2, FEATURES)))) == 2  # features need none
    with pytest.raises(SettingsError, match="module of the program that made the model"):
        lonely.predict(x)
    with pytest.raises(SettingsError, match="has other weights"):
        spacenet.load(path, encoder=tiny(seed=1))
    assert (spacenet.load(path, encoder=tiny()).predict(x) == y).all()


def test_the_file_names_the_encoder_and_its_weights(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    spacenet.SpaceNetClassifier(encoder=tiny(), **QUICK).fit(*samples([0, 1])).save(path)
    preprocessing = load_model(path).config.preprocessing
    assert (preprocessing.encoder, preprocessing.encoder_checksum) == ("own:tiny", "weights of seed 0")
    assert preprocessing.root  # features are rooted, and not only in this process


def test_inspect_names_the_encoder() -> None:
    classifier = spacenet.SpaceNetClassifier(encoder=tiny(), **QUICK).fit(*samples([0, 1]))
    assert inspect_model(classifier.model_, 0).encoder == "own:tiny 1, SHA-256 weights of s, weights not in the file"


def test_images_that_are_no_bytes_are_refused() -> None:
    x, y = samples([0, 1])
    with pytest.raises(DataError, match="takes images as bytes"):
        spacenet.SpaceNetClassifier(encoder=tiny(), **QUICK).fit(x / 255, y)


def test_run_and_compare_learn_a_stream_on_features(tmp_path: Path) -> None:
    stream = spacenet.Stream.from_arrays(*samples([0, 1, 2, 3]), name="colors")
    result = spacenet.run(stream, encoder=tiny(), epochs=5, progress=False, out=tmp_path / "run")
    assert result.method == "spacenet-density"
    assert result.acc > 80
    assert result.model is not None
    assert result.model.input_shape == (FEATURES,)
    assert spacenet.run(stream, encoder=tiny(), epochs=5, progress=False, out=tmp_path / "run").acc == result.acc
    table = spacenet.compare(stream, ["naive", "gaussian"], encoder=tiny(), epochs=2, progress=False)
    assert len(table.rows) == 2


def test_a_stream_is_encoded_once() -> None:
    stream = spacenet.Stream.from_arrays(*samples([0, 1, 2, 3])).with_encoder(tiny())
    assert stream.input_shape == (FEATURES,)
    assert stream.with_encoder(tiny()) is stream
    with pytest.raises(SettingsError, match="features of own:tiny already"):
        stream.with_encoder(lambda x: x.mean((2, 3)))
    result = spacenet.run(stream, epochs=2, progress=False)
    assert result.method == "spacenet-density"
    assert result.model is not None
    assert result.model.config.preprocessing.encoder == "own:tiny"


def test_a_stream_by_name_is_learned_on_features() -> None:
    result = spacenet.run("split-digits", encoder=tiny(), tasks="0,1/2,3", epochs=2, progress=False)
    assert result.method == "spacenet-density"
    assert result.acc > 40


def test_a_folder_of_photos_of_any_size(tmp_path: Path) -> None:
    folder = save_pictures(tmp_path / "photos", {"red": 0, "green": 1, "blue": 2, "bright": 3}, count=8)
    result = spacenet.run(folder, encoder=tiny(), epochs=5, progress=False)
    assert result.model is not None
    assert sorted(result.model.classes) == ["blue", "bright", "green", "red"]


def test_an_encoder_in_a_file_goes_with_the_model(tmp_path: Path) -> None:
    path = save_exported(tmp_path / "tiny.pt2")
    x, y = samples([0, 1])
    classifier = spacenet.SpaceNetClassifier(encoder=str(path), **QUICK).fit(x, y)
    classifier.save(tmp_path / "model.safetensors")
    assert (spacenet.load(tmp_path / "model.safetensors").predict(x) == y).all()
    loading._load.cache_clear()
    save_exported(path, seed=1)
    with pytest.raises(SettingsError, match="has other weights"):
        spacenet.load(tmp_path / "model.safetensors").predict(x)
