"""`spacenet.tune_encoder`: which images it takes, and a file that is an encoder."""

from pathlib import Path

import numpy as np
import pytest

import spacenet
from spacenet.api.tuning import TunedEncoder
from spacenet.encoders import loading
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput
from spacenet.encoders.libraries import from_module
from spacenet.errors import DataError, SettingsError
from tests.encoders.support import FEATURES, SIZE, TinyEncoder, pictures, save_exported, save_pictures

pytest.importorskip("PIL", reason="images need the extra 'images'")
X, Y = np.concatenate([pictures(12, label, (12, 12)) for label in range(3)]), np.repeat([*"rgb"], 12)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))


def encoder() -> Encoder:
    return from_module(f"{loading.OWN}tiny", TinyEncoder(), ImageInput(SIZE), "")


def tuned(data: object, out: Path, **settings: object) -> TunedEncoder:
    given = {"epochs": 1, "batch_size": 8, "progress": False, **settings}
    return spacenet.tune_encoder(data, encoder(), out, **given)  # type: ignore[arg-type]


def test_a_classifier_learns_on_it_and_keeps_it_in_its_file(tmp_path: Path) -> None:
    found = tuned((X, Y), tmp_path / "tuned.pt2", epochs=5)
    assert (found.images, found.labels, found.size, found.features) == (36, ("b", "g", "r"), SIZE, FEATURES)
    assert (found.epochs, found.bytes) == (5, found.path.stat().st_size)
    assert "training accuracy" in repr(found)
    classifier = spacenet.SpaceNetClassifier(encoder=str(found.path), epochs=5).fit(X, Y)
    classifier.save(tmp_path / "model.safetensors", include_encoder=True)
    expected = classifier.predict_proba(X)
    found.path.unlink()
    assert np.array_equal(spacenet.load(tmp_path / "model.safetensors").predict_proba(X), expected)


def test_only_the_training_images_of_the_first_task_are_used(tmp_path: Path) -> None:
    stream = spacenet.Stream.from_arrays(X, Y, X[:3], Y[[0, 12, 24]], classes_per_task=2)
    given = {
        "stream": tuned(stream, tmp_path / "a.pt2"),
        "arrays": tuned((X, Y), tmp_path / "b.pt2", first_classes=2),
        "folder": tuned(
            save_pictures(tmp_path / "photos", {"b": 0, "g": 1, "r": 2}), tmp_path / "c.pt2", tasks="b,g/r"
        ),
        "name": tuned("split-digits", tmp_path / "d.pt2"),
    }
    assert {name: found.labels for name, found in given.items()} == {
        **dict.fromkeys(("stream", "arrays", "folder"), ("b", "g")),
        "name": (0, 1),
    }
    assert {name: found.images for name, found in given.items()} == {
        "stream": 24,
        "arrays": 24,
        "folder": 12,
        "name": len(spacenet.stream("split-digits")[0].train),
    }


def test_a_stream_of_photos_is_tuned_on_as_it_is_cut(tmp_path: Path) -> None:
    photos = save_pictures(tmp_path / "photos", {"b": 0, "g": 1, "r": 2})
    stream = spacenet.Stream.from_folder(photos, image_size=SIZE)
    found = tuned(stream, tmp_path / "tuned.pt2")
    assert (found.labels, found.images) == (("b", "g"), len(stream[0].train))
    with pytest.raises(SettingsError, match="this stream is cut already"):
        tuned(stream, tmp_path / "other.pt2", first_classes=3)


def test_mistakes_leave_no_file(tmp_path: Path) -> None:
    out = tmp_path / "tuned.pt2"
    with pytest.raises(SettingsError, match="unknown setting 'epoch'"):
        tuned((X, Y), out, epoch=1)
    with pytest.raises(SettingsError, match="size: 4 is out of range"):
        tuned((X, Y), out, size=4)
    with pytest.raises(SettingsError, match="out: .*does not end in .pt2"):
        tuned((X, Y), tmp_path / "tuned.onnx")
    with pytest.raises(DataError, match="takes images as bytes"):
        tuned((X / 255, Y), out)
    with pytest.raises(SettingsError, match="encoder: .*cannot be trained"):
        spacenet.tune_encoder((X, Y), str(save_exported(tmp_path / "tiny.pt2")), out, progress=False)
    assert not out.exists()
    out.write_bytes(b"mine")
    with pytest.raises(SettingsError, match="is there already"):
        tuned((X, Y), out)
    assert out.read_bytes() == b"mine"
