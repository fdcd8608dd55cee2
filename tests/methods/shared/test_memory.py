import numpy as np
import pytest
import torch

from spacenet.data.stream import Stream
from spacenet.methods.shared.memory import Memory
from tests.methods.support import small_stream


def kept() -> Memory:
    stream, memory = small_stream(), Memory()
    memory.keep(stream[0], torch.tensor([40, 3, 1, 35, 2]))  # classes 1 0 0 1 0
    memory.keep(stream[1], torch.tensor([7, 50, 51]))  # classes 2 3 3
    return memory


def test_what_is_kept_can_be_taken_from_the_stream_again_in_the_same_order() -> None:
    memory, again, stream = kept(), Memory(), small_stream()
    again.restore(stream, {1: memory.rows[1], 0: memory.rows[0]})
    assert list(again.rows) == [0, 1]
    assert torch.equal(again.samples().x, memory.samples().x)
    assert memory.samples().y.tolist() == [1, 0, 0, 1, 0, 2, 3, 3]


def test_trimming_leaves_the_first_of_each_class() -> None:
    memory, stream = kept(), small_stream()
    memory.trim(2)
    assert {task: rows.tolist() for task, rows in memory.rows.items()} == {0: [3, 1, 40, 35], 1: [7, 50, 51]}
    assert torch.equal(memory.samples().x[:4], stream[0].train.x[[3, 1, 40, 35]])
    memory.trim(1)
    assert memory.samples().y.tolist() == [0, 1, 2, 3]
    assert len(memory) == 4
    assert memory.nbytes == 4 * (8 * 4 + 8)  # eight features of four bytes, a class number of eight


@pytest.mark.parametrize(("dtype", "size"), [("uint8", 1), ("float16", 2), ("float32", 4), ("float64", 4)])
def test_a_sample_is_counted_as_what_storing_it_takes(dtype: str, size: int) -> None:
    x = np.arange(40 * 3 * 4).reshape(40, 3, 4) % 256
    stream, memory = Stream.from_arrays(x.astype(dtype), np.arange(40) % 4), Memory()
    memory.keep(stream[0])
    memory.keep(stream[1], torch.arange(10))
    memory.trim(2)
    assert memory.nbytes == 8 * (12 * size + 8)
    assert stream[0].train.to(torch.device("cpu")).value_bytes == stream.dataset.x_train.dtype.itemsize


def test_new_samples_come_after_the_kept_ones() -> None:
    memory, new = kept(), small_stream()[2].train
    assert memory.concat(new).y.tolist() == [1, 0, 0, 1, 0, 2, 3, 3, *new.y.tolist()]
    assert Memory().concat(new) is new
