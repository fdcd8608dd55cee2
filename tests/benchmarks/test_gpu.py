"""The GPU's benchmark at tiny sizes, on the processor: that it measures what it says."""

import io
import json

import pytest
import torch
from rich.console import Console

from benchmarks.gpu import COMPACT, DENSE, MASKED, Options, main, measure


def test_all_parts_are_measured_and_printed() -> None:
    console = Console(file=io.StringIO(), width=140)
    figures = measure(Options(tiny=True, precisions=("32",), seconds_per_cell=0.01), console)
    json.dumps(figures)
    assert isinstance(console.file, io.StringIO)
    assert "A training step of WRN-28-10, precision 32" in console.file.getvalue()
    assert [set(row["steps"]) for row in figures["steps"]["32"]] == [{COMPACT, MASKED, DENSE}] * 5
    assert figures["run"]["steps"] == 5


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "there is no GPU here" in capsys.readouterr().err
