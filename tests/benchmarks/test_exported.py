import re
from pathlib import Path

import pytest

from benchmarks import exported
from tests.encoders.support import save_exported

for library in ("PIL", "onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(library, reason="needs the extras 'images' and 'export'")


def test_the_file_answers_like_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    path = save_exported(tmp_path / "tiny.pt2")
    assert exported.main(["--encoder", str(path), "--images", "20", "--learned", "15"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"images +20 ", printed)
    assert re.search(r"different_labels +0 ", printed)
