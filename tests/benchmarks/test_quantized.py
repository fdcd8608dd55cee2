import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.encoders.support import save_exported

for library in ("PIL", "onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(library, reason="needs the extras 'images' and 'export'")


def test_files_in_8_bits_stand_beside_one_in_32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quantized = import_module("benchmarks.quantized")
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(quantized, "CALIBRATION", 50)
    path = save_exported(tmp_path / "tiny.pt2")
    options = ["--encoder", str(path), "--photos", "20", "--learned", "15", "--epochs", "1", "--streams"]
    assert quantized.main([*options, "split-digits"]) == 0
    printed = capsys.readouterr().out
    for model in ("split-digits", "photos"):
        assert len(re.findall(rf"{model} +(?:32|8) bits", printed)) == 5
