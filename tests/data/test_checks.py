import numpy as np
import pytest

from spacenet.data import checks
from spacenet.data.checks import check_labels, check_samples, find_nonfinite, match_channels
from spacenet.errors import DataError


@pytest.mark.parametrize("number", [1.5, 1])
def test_a_single_number_is_not_samples(number: float) -> None:
    with pytest.raises(DataError, match="x is a single number; give samples in rows"):
        check_samples(np.array(number), "x")


@pytest.mark.parametrize("kind", ["int64", "float64", "bool", "U5", "S5", "O"])
def test_no_labels_are_no_error_of_numpy(kind: str) -> None:
    empty = np.array([], kind)
    if kind == "O":
        with pytest.raises(DataError, match="y holds"):
            check_labels(empty, "y")
    else:
        assert len(check_labels(empty, "y")) == 0


def test_samples_are_checked_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "BLOCK", 4)
    x = np.zeros((10, 2, 3))
    assert len(find_nonfinite(x)) == 0
    x[[3, 9], 1, 2] = np.nan, np.inf
    assert find_nonfinite(x).tolist() == [3, 9]
    with pytest.raises(DataError, match="in 2 of its 10 samples, the first in row 3"):
        check_samples(x, "x")
    with pytest.raises(DataError, match="x has NaN or infinite values, the first in row 103"):
        check_samples(x, "x", first=100)


def test_channels_are_moved_where_a_model_has_them_in_front() -> None:
    x = np.arange(2 * 4 * 6 * 3).reshape(2, 4, 6, 3)
    assert np.array_equal(match_channels(x, (3, 4, 6)), x.transpose(0, 3, 1, 2))
    assert match_channels(x, (4, 6, 3)) is x
    cube = np.zeros((2, 3, 3, 3))
    assert match_channels(cube, (3, 3, 3)) is cube
