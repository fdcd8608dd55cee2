import numpy as np
import pytest

from spacenet.data.checks import check_samples
from spacenet.errors import DataError


@pytest.mark.parametrize("number", [1.5, 1])
def test_a_single_number_is_not_samples(number: float) -> None:
    with pytest.raises(DataError, match="x is a single number; give samples in rows"):
        check_samples(np.array(number), "x")
