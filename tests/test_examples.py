"""The examples run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import spacenet
from spacenet.data.fetch import DATA_VARIABLE

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.skipif(not os.environ.get(DATA_VARIABLE), reason="needs Fashion-MNIST in SPACENET_DATA")
def test_clothes(tmp_path: Path) -> None:
    model = tmp_path / "clothes.safetensors"
    command = [sys.executable, str(EXAMPLES / "clothes.py"), "--samples", "200", "--model", str(model)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.count("Right answers") == 4
    assert len(spacenet.load(model).classes_) == 10
    assert float(done.stdout.rsplit("together ", 1)[1].split(" %")[0]) > 35
