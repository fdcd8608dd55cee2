import torch
from hypothesis import given
from hypothesis import strategies as st

from spacenet.space.rewiring import rank

NUMBERS = st.floats(-2, 2, width=32).map(lambda number: round(number, 1)) | st.just(float("nan"))


@given(st.lists(NUMBERS, max_size=40), st.integers(0, 45))
def test_they_are_the_first_of_a_stable_sort(numbers: list[float], count: int) -> None:
    values = torch.tensor(numbers)
    assert torch.equal(rank(values, count), values.argsort(stable=True)[:count])
    assert torch.equal(rank(values, count, descending=True), values.argsort(descending=True, stable=True)[:count])
