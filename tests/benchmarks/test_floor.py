import pytest
import torch
from torch import Generator

from benchmarks.floor import Loop, Shape, train_by_hand, train_plainly


@pytest.mark.parametrize("loop", [train_plainly, train_by_hand])
def test_the_loops_learn_and_report(loop: Loop) -> None:
    rng = Generator().manual_seed(0)
    y = torch.arange(200) % 2
    x = torch.randn(200, 20, generator=rng) + 2 * y[:, None]
    loss, accuracy, *_, last_loss, last_accuracy = loop(x, y, Shape(10, 2, epochs=8, batch_size=20, learning_rate=0.1))
    assert last_loss < loss / 2
    assert last_accuracy > max(0.95, accuracy)


def test_both_loops_train_the_same_network() -> None:
    rng = Generator().manual_seed(0)
    x, y = torch.randn(100, 20, generator=rng), torch.arange(100) % 3
    shape = Shape(10, 3, epochs=3, batch_size=20, learning_rate=0.1)
    assert train_by_hand(x, y, shape) == pytest.approx(train_plainly(x, y, shape), rel=1e-4)
