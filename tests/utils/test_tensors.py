from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacenet.errors import FileError, RunError
from spacenet.utils.tensors import (
    in_section,
    load_tensors,
    lower_triangle,
    save_tensors,
    section,
    symmetric_matrix,
    triangle_size,
)


def test_tensors_and_facts_come_back(tmp_path: Path) -> None:
    tensors = {"b": torch.arange(3, dtype=torch.int16), "a": torch.rand(2, 2), "empty": torch.zeros(0)}
    save_tensors(tmp_path / "x", tensors, {"n": 1, "text": "ö"})
    back, facts = load_tensors(tmp_path / "x")
    assert facts == {"n": 1, "text": "ö"}
    assert set(back) == set(tensors)
    assert all(torch.equal(back[name], tensors[name]) for name in tensors)


def test_equal_content_gives_equal_bytes(tmp_path: Path) -> None:
    for name in ("x", "y"):
        save_tensors(tmp_path / name, {"b": torch.ones(2), "a": torch.zeros(2)}, {"z": 1, "a": 2, "m": 3})
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


def test_a_damaged_file_is_an_error_for_people(tmp_path: Path) -> None:
    save_tensors(tmp_path / "x", {"a": torch.ones(20)}, {})
    (tmp_path / "x").write_bytes((tmp_path / "x").read_bytes()[:-9])
    with pytest.raises(RunError, match="cannot be read"):
        load_tensors(tmp_path / "x")


def test_sections() -> None:
    tensors = in_section("one", {"a/b": torch.ones(1)}) | in_section("other", {"a": torch.zeros(1)})
    assert list(section(tensors, "one")) == ["a/b"]


def test_a_file_that_cannot_be_read_now_is_not_called_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"x cannot be read") as raised:
        load_tensors(tmp_path / "x")
    assert "start again" not in str(raised.value)


@given(st.integers(1, 9))
def test_a_symmetric_matrix_is_half_kept_and_comes_back(side: int) -> None:
    matrix = torch.randn(side, side, generator=torch.Generator().manual_seed(side))
    matrix += matrix.T.clone()
    kept = lower_triangle(matrix)
    assert kept.shape == (triangle_size(side),)
    assert torch.equal(symmetric_matrix(kept), matrix)
