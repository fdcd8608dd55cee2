"""The formats of data files."""

import numpy as np
import pytest

from spacenet.data.files import decode_idx, decode_records, encode_idx
from spacenet.errors import DataError

RNG = np.random.default_rng(0)


def test_idx_round_trip() -> None:
    array = RNG.integers(0, 256, (5, 3, 2), dtype=np.uint8)
    decoded = decode_idx(encode_idx(array), "here")
    assert np.array_equal(decoded, array)
    assert decoded.flags.writeable


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an IDX file"),
        (b"\0\0\x0d\1\0\0\0\0", "not an IDX file"),
        (b"\0\0\x08\3\0\0\0\1", "ends within its header"),
        (b"\0\0\x08\1\0\0\0\5abc", r"shape \(5,\) with 3 values"),
        (b"\0\0\x08\4" + b"\0\1\0\0" * 4, "with 0 values"),
    ],
)
def test_bytes_that_are_not_idx(content: bytes, reason: str) -> None:
    with pytest.raises(DataError, match=f"here: .*{reason}"):
        decode_idx(content, "here")


def test_bytes_that_are_not_records() -> None:
    with pytest.raises(DataError, match="here: 15 bytes are not a whole number of records of 14 bytes"):
        decode_records([bytes(15)], 2, (3, 2, 2), "here")
