import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from spacenet.encoders import exported, loading
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput
from spacenet.encoders.loading import encoder_name, load_encoder
from spacenet.encoders.networks import hash_module
from spacenet.errors import MissingExtraError, SettingsError
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


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_own", {})
    loading._load.cache_clear()


def test_other_weights_than_expected() -> None:
    name = encoder_name(tiny())
    assert name == "own:tiny"
    with pytest.raises(SettingsError, match="has other weights than the one that the model was made with"):
        load_encoder(name, "0123")
    with pytest.raises(SettingsError, match=r"\(version 1 instead of 0\.9, SHA-256 weights of s"):
        load_encoder(name, "0123", "0.9")


def test_another_version_with_the_same_weights(caplog: pytest.LogCaptureFixture) -> None:
    name = encoder_name(tiny())
    assert name is not None
    load_encoder(name, version="1")
    assert not caplog.records
    load_encoder(name, version="0.9")
    assert "has version 1 instead of 0.9" in caplog.text


def test_modules_and_functions_get_a_name() -> None:
    module = TinyEncoder()
    name = encoder_name(module)
    assert name == "own:tinyencoder"
    found = load_encoder(name)
    assert (found.features, found.checksum) == (FEATURES, hash_module(module))
    assert not any(parameter.requires_grad for parameter in module.parameters())

    def brightness(x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3))

    assert load_encoder(encoder_name(brightness) or "").features == 3
    assert encoder_name(None) is None
    assert encoder_name("timm:x") == "timm:x"
    assert encoder_name("x.onnx") == str(Path("x.onnx").resolve())


def test_a_module_that_gives_no_features() -> None:
    with pytest.raises(SettingsError, match="does not take images of the shape"):
        encoder_name(nn.Linear(4, 3))
    with pytest.raises(SettingsError, match="does not give one row of features"):
        encoder_name(lambda x: x.mean())


def test_the_hash_follows_the_weights() -> None:
    assert hash_module(TinyEncoder()) == hash_module(TinyEncoder())
    assert hash_module(TinyEncoder()) != hash_module(TinyEncoder(seed=1))


@pytest.mark.parametrize("name", ["efficientnet-lite", "timm:", "resnet-50"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(SettingsError, match="unknown encoder"):
        load_encoder(name)


def test_a_module_of_another_program() -> None:
    with pytest.raises(SettingsError, match=r"encoder mine is a module of the program that made the model\. Pass it"):
        load_encoder("own:mine")


@pytest.mark.parametrize("name", ["timm:resnet18", "torchvision:resnet18", "efficientnet-lite0"])
def test_a_package_that_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("timm", "torchvision", "torchvision.models", "efficientnet_lite_pytorch"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install \"spacenet-cl\[encoders\]\""):
        load_encoder(name)


def test_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    timm_with(TinyEncoder(), monkeypatch)
    encoder = load_encoder("timm:tiny")
    assert encoder.images == ImageInput(SIZE, (0.1,) * 3, (0.2,) * 3, "bilinear", 0.9)
    assert encoder.features == FEATURES
    with pytest.raises(SettingsError, match=r"timm:other cannot be loaded \(Unknown model \(other\)\)"):
        load_encoder("timm:other")


def test_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer behind the features is taken away."""
    torchvision_with(monkeypatch)
    encoder = load_encoder("torchvision:tiny")
    assert encoder.images == ImageInput(SIZE, (0.1,) * 3, (0.2,) * 3, "bilinear", 0.8)
    assert encoder.features == FEATURES
    with pytest.raises(SettingsError, match="torchvision:other cannot be loaded"):
        load_encoder("torchvision:other")


def test_exported_files(tmp_path: Path) -> None:
    path = save_exported(tmp_path / "tiny.pt2")
    encoder = load_encoder(str(path))
    assert (encoder.features, encoder.shape) == (FEATURES, (3, SIZE, SIZE))
    prepared = encoder.prepare(pictures(3))
    np.testing.assert_allclose(encoder.encode(prepared), tiny().encode(prepared), rtol=1e-4, atol=1e-5)
    (tmp_path / "broken.pt2").write_bytes(b"no network")
    with pytest.raises(SettingsError, match=r"broken\.pt2 cannot be read by torch\.export"):
        load_encoder(str(tmp_path / "broken.pt2"))
    with pytest.raises(SettingsError, match="no such file"):
        load_encoder(str(tmp_path / "none.onnx"))


class Trap:
    """What would run a program if it were unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("trapped"),)


def test_no_pickle_in_a_file_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(Trap(), "trap.pt")
    with exported._only_numbers(), pytest.raises(Exception, match="weights_only|Unsupported"):
        torch.load("trap.pt", weights_only=False)
    assert not Path("trapped").exists()


def test_onnx(tmp_path: Path) -> None:
    path = save_onnx(tmp_path / "tiny.onnx")
    encoder = load_encoder(str(path))
    prepared = encoder.prepare(pictures(3))
    np.testing.assert_allclose(encoder.encode(prepared), tiny().encode(prepared), rtol=1e-4, atol=1e-5)
    (tmp_path / "broken.onnx").write_bytes(b"no network")
    with pytest.raises(SettingsError, match="is not an ONNX network with one input"):
        load_encoder(str(tmp_path / "broken.onnx"))


def test_onnx_with_weights_in_another_file(tmp_path: Path) -> None:
    """Their SHA-256 counts too."""
    onnx = pytest.importorskip("onnx", reason="it needs the extra 'export'")
    path, beside = save_onnx(tmp_path / "tiny.onnx"), tmp_path / "tiny.onnx.data"
    whole = load_encoder(str(path))
    prepared = whole.prepare(pictures(2))
    options = {"save_as_external_data": True, "location": beside.name, "size_threshold": 0}
    onnx.save_model(onnx.load(path), path, **options)
    loading._load.cache_clear()
    assert np.array_equal(load_encoder(str(path)).encode(prepared), whole.encode(prepared))
    before = load_encoder(str(path)).checksum
    content = bytearray(beside.read_bytes())
    content[2] ^= 1
    beside.write_bytes(content)
    loading._load.cache_clear()
    assert load_encoder(str(path)).checksum != before


def test_an_encoder_of_ones_own_for_samples_that_are_no_images() -> None:
    encoder = Encoder("sums", "", "", 1, lambda x: x.sum(1, keepdim=True))
    assert encoder.encode(encoder.prepare(np.ones((2, 5), np.float32))).tolist() == [[5.0], [5.0]]
