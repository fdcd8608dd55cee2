import torch

from spacenet.methods.ncm import NCM
from tests.methods.support import accuracy, learn, make, small_stream


def test_the_nearest_mean_wins() -> None:
    method, stream = make(NCM), small_stream()
    assert learn(method, stream) == []
    assert min(accuracy(method, stream)) > 0.8
    x = torch.cat([task.test.x for task in stream])
    means = torch.stack([task.train.x[task.train.y == n].mean(0) for task in stream for n in task.classes])
    expected = torch.stack([(x - mean).square().sum(1) for mean in means], 1).argmin(1)
    assert torch.equal(method.predict(x).argmax(1), expected)


def test_it_keeps_a_mean_for_each_class() -> None:
    method = make(NCM)
    learn(method, small_stream())
    assert method.parameters_kept() == 6 * 8
