import math

import torch

from spacenet.methods.shared.contrast import contrastive_loss


def test_the_loss_of_a_batch_by_hand() -> None:
    """Two samples of one class in the same direction, one of another class at a right angle."""
    z = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    found = contrastive_loss(z, torch.tensor([0, 0, 1]), temperature=1.0)
    each = -math.log(math.e / (math.e + 1))  # of the first two; the third one has no other of its class
    torch.testing.assert_close(found, torch.tensor(2 * each / 3))


def test_samples_of_a_class_come_together() -> None:
    torch.manual_seed(0)
    z, y = torch.randn(40, 8, requires_grad=True), torch.arange(4).repeat(10)
    before = contrastive_loss(z, y).detach()
    for _ in range(50):
        (gradient,) = torch.autograd.grad(contrastive_loss(z, y), z)
        z.data -= 5 * gradient
    assert float(contrastive_loss(z, y).detach()) < float(before) - 1
