"""The Open Inference Protocol with a client that others wrote: Triton's."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacenet.model.file import load_model, save_model
from spacenet.model.model import Model
from tests.model.support import blobs, density_model
from tests.serve.live import live

client = pytest.importorskip("tritonclient.http", reason="pip install tritonclient[http]")
NAME = "model"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("client")
    save_model(folder / "model.safetensors", density_model("inputs"))
    return folder


@pytest.fixture(scope="module")
def model(learned: Path) -> Model:
    return load_model(learned / "model.safetensors")


@pytest.fixture(scope="module")
def triton(learned: Path) -> Iterator[Any]:
    with live(learned) as running:
        host, port = running.address
        connected = client.InferenceServerClient(f"{host}:{port}")
        yield connected
        connected.close()
    del connected
    gc.collect()


def given(x: np.ndarray, datatype: str = "FP32", binary: bool = True) -> list[Any]:
    tensor = client.InferInput("input", list(x.shape), datatype)
    tensor.set_data_from_numpy(x, binary_data=binary)
    return [tensor]


def test_health_and_metadata(triton: Any) -> None:
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready(NAME)
    assert triton.is_model_ready(NAME, "2")
    assert not triton.is_model_ready("another")
    assert not triton.is_model_ready(NAME, "7")
    assert triton.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    facts = triton.get_model_metadata(NAME)
    assert (facts["name"], facts["versions"]) == (NAME, ["2"])
    assert facts["inputs"] == [{"name": "input", "datatype": "FP32", "shape": [-1, 8]}]


@pytest.mark.parametrize("sent_binary", [True, False])
@pytest.mark.parametrize("binary", [True, False])
def test_inference(triton: Any, model: Model, sent_binary: bool, binary: bool) -> None:
    x = blobs([0, "cat"])[0]
    outputs = [client.InferRequestedOutput(name, binary_data=binary) for name in ("label", "probabilities", "unknown")]
    found = triton.infer(NAME, given(x, binary=sent_binary), outputs=outputs, request_id="17")
    assert found.get_response()["id"] == "17"
    np.testing.assert_allclose(found.as_numpy("probabilities"), model.predict_proba(x), atol=1e-7)
    texts = [text.decode() if isinstance(text, bytes) else text for text in found.as_numpy("label").tolist()]
    assert texts == [str(label) for label in model.predict(x)]
    assert found.as_numpy("unknown").dtype == np.bool_
    assert found.as_numpy("unknown").tolist() == (model.typicality(x) < 0.05).tolist()


def test_all_outputs_are_the_default(triton: Any, model: Model) -> None:
    x = blobs([1])[0].astype(np.float16)
    found = triton.infer(NAME, given(x, "FP16"), model_version="2")
    np.testing.assert_allclose(found.as_numpy("typicality"), model.typicality(x.astype(np.float32)), atol=1e-7)
    asked = triton.infer(NAME, given(x, "FP16"), parameters={"unknown": 0.99})
    assert b"unknown" in asked.as_numpy("label").tolist()


def test_mistakes_are_explained(triton: Any) -> None:
    with pytest.raises(Exception, match="unknown output 'scores'") as raised:
        triton.infer(NAME, given(blobs([0])[0]), outputs=[client.InferRequestedOutput("scores")])
    assert type(raised.value).__name__ == "InferenceServerException"
    assert str(raised.value).startswith("[400]")
    with pytest.raises(Exception, match="compressed bodies are not taken"):
        triton.infer(NAME, given(blobs([0])[0]), request_compression_algorithm="gzip")
    with pytest.raises(Exception, match="unknown model 'another'"):
        triton.get_model_metadata("another")
