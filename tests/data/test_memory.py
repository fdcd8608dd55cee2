"""Memory for samples: what goes to a mapped file is the same as in memory."""

from pathlib import Path

import numpy as np
import pytest
import torch

from spacenet.config.model import PreprocessingConfig
from spacenet.data import memory
from spacenet.data.preprocessing import Normalization


def test_normalized_samples_and_selected_rows_are_the_same_in_a_mapped_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path))
    monkeypatch.setattr(memory, "BLOCK_BYTES", 1000)  # several blocks
    x = np.random.default_rng(0).normal(size=(500, 6)).astype(np.float32)
    normalization = Normalization.fit(x, PreprocessingConfig())
    rows = torch.arange(0, 500, 3)
    found = {}
    for limit in ("1024", "0"):
        monkeypatch.setenv(memory.LIMIT_VARIABLE, limit)
        normalized = memory.normalize(normalization, memory.take_rows(x, np.arange(500)))
        found[limit] = normalized, memory.select_rows(normalized, rows)
        assert len(list((tmp_path / "memory").glob("*"))) == (2 if limit == "0" else 0)
    for in_memory, mapped in zip(found["1024"], found["0"], strict=True):
        assert torch.equal(in_memory, mapped)


def test_a_normalization_is_fitted_to_evenly_spaced_rows_of_very_large_data(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(1000, dtype=np.float32).reshape(100, 10)
    assert memory.thin(x) is x
    monkeypatch.setattr(memory, "FIT_BYTES", 1500)
    np.testing.assert_array_equal(memory.thin(x), x[::3])
    np.testing.assert_array_equal(memory.thin(memory.take_rows(x, np.arange(50, 100))), x[50::2])
