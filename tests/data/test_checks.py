import numpy as np
import pytest

from spacenet.data.checks import check_labels, check_samples
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
