import math

import pytest
import torch
from torch import tensor

from spacenet.methods.shared.vae import VAE
from spacenet.space.blueprint import CPU
from spacenet.utils.seeding import generator


def made(features: int = 4, hidden: tuple[int, ...] = (3, 2), latent: int = 2) -> VAE:
    return VAE.initialize(features, hidden, latent, generator(0, "test"), CPU)


def blank() -> VAE:
    vae = made()
    for value in vae.parameters():
        value.data.zero_()
    return vae


def test_encoder_and_decoder_mirror_each_other() -> None:
    shapes = {name: tuple(value.shape) for name, value in made().params.items() if name.endswith("weight")}
    assert shapes == {
        "encoder1.weight": (3, 4),
        "encoder2.weight": (2, 3),
        "encoder3.weight": (4, 2),  # two means, two log-variances
        "decoder1.weight": (2, 2),
        "decoder2.weight": (3, 2),
        "decoder3.weight": (4, 3),
    }


def test_the_loss_is_reconstruction_and_divergence_per_feature() -> None:
    vae, x, noise = blank(), tensor([[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]), torch.zeros(2, 2)
    assert vae.loss(x, noise).tolist() == pytest.approx([math.log(2)] * 2)
    vae.params["decoder3.bias"].data.fill_(math.log(3))  # every feature is 1 with probability 3/4
    right, wrong = -math.log(3 / 4), -math.log(1 / 4)
    assert vae.loss(x, noise).tolist() == pytest.approx([(3 * right + wrong) / 4, wrong])
    vae.params["encoder3.bias"].data.copy_(tensor([1.0, 0.0, 0.0, math.log(4)]))  # N(1, 1) and N(0, 4)
    divergence = 1 / 2 + (4 - 1 - math.log(4)) / 2
    assert vae.loss(x, noise).tolist() == pytest.approx([(3 * right + wrong + divergence) / 4, wrong + divergence / 4])


def test_the_code_is_the_mean_and_noise_times_the_deviation() -> None:
    vae = blank()
    vae.params["encoder3.bias"].data.copy_(tensor([1.0, 0.0, math.log(4), 0.0]))  # N(1, 4) and N(0, 1)
    for name in ("decoder1.weight", "decoder2.weight", "decoder3.weight"):
        vae.params[name].data[0, 0] = 1.0  # what the first code says goes to the first feature
    found = vae.loss(tensor([[1.0, 0.0, 0.0, 0.0]]), tensor([[0.5, 9.0]]))  # 1 + 0.5 · 2
    divergence = (1 + 4 - 1 - math.log(4)) / 2
    expected = (-math.log(1 / (1 + math.exp(-2.0))) + 3 * math.log(2) + divergence) / 4
    assert found.tolist() == pytest.approx([expected])
    torch.testing.assert_close(vae.sample(tensor([[2.0, 0.0]]))[0, 0], tensor(2.0).sigmoid())


def test_it_learns_to_make_what_it_saw() -> None:
    vae, rng = made(6, (16,), 2), generator(0, "noise")
    x = tensor([[1.0, 1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]]).repeat(20, 1)
    optimizer = torch.optim.Adam(vae.parameters(), 0.02)
    for _ in range(150):
        optimizer.zero_grad()
        vae.loss(x, torch.randn(40, 2, generator=rng)).mean().backward()
        optimizer.step()
    made_up = vae.sample(torch.randn(200, 2, generator=rng)).round()
    whole = (made_up == x[0]).all(1) | (made_up == x[1]).all(1)
    assert float(whole.float().mean()) > 0.8
    assert 0.2 < float(made_up[:, 0].mean()) < 0.8


def test_a_copy_stays_as_it_was() -> None:
    vae = made()
    copy, code = vae.copy(), torch.ones(1, 2)
    before = vae.sample(code)
    for value in vae.parameters():
        value.data += 1.0
    assert torch.equal(copy.sample(code), before)
    assert not torch.equal(vae.sample(code), before)
