"""What only a GPU can show. Skipped where there is none."""

import dataclasses

import pytest
import torch
from torch import Generator, Tensor

from spacenet.config.training import TrainingConfig
from spacenet.data.augmentation import CropAndFlip
from spacenet.methods import get_method
from spacenet.methods.base import Method
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.methods.spacenet import SpaceNet
from spacenet.nets.modules import build_from_text, trace_module
from spacenet.registry import METHODS
from spacenet.space.blueprint import BATCH_STATS
from spacenet.space.operations import normalize, normalize_partly
from spacenet.training.hardware import find_hardware
from spacenet.training.loop import learn_task, make_optimizer, make_step
from tests.methods.test_contract import SMALL
from tests.nets.foreign import IMAGE_NETS
from tests.nets.test_convolutions import batch, images, tiny_cnn, tiny_wrn

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

TRAINING = TrainingConfig(epochs=3, batch_size=4, learning_rate=0.05, momentum=0.9, augment="crop-flip", device="cuda")


def learned(
    method: Method, monkeypatch: pytest.MonkeyPatch, recorded: bool = True, training: TrainingConfig = TRAINING
) -> list[Tensor]:
    monkeypatch.setattr(type(method), "cuda_graph_safe", recorded and type(method).cuda_graph_safe)
    for task in images(2):
        learn_task(
            method,
            task,
            training,
            hardware=find_hardware(training),
            on_batch=lambda done, total: None,
            on_epoch=lambda epoch, optimizer: None,
        )
    return [tensor.cpu() for tensor in method.state().values()]


def spacenet() -> SpaceNet:
    settings = SpaceNet.Settings(selected=(0, 5, 7, 9), reserved=(0, 1, 2, 3), connections=(0.05,))
    return SpaceNet(tiny_wrn(), settings, 0, torch.device("cuda"))


def of_tiny_cnn(name: str) -> Method:
    kind = get_method(name)
    sizes = SMALL if issubclass(kind, SparseMethod) else {}
    return kind(tiny_cnn(), kind.Settings(**sizes), 0, torch.device("cuda"))


@pytest.mark.parametrize("name", METHODS)
def test_a_recorded_step_computes_what_a_plain_one_does_to_the_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, plain = (learned(of_tiny_cnn(name), monkeypatch, recorded) for recorded in (True, False))
    assert all(torch.equal(a, b) for a, b in zip(recorded, plain, strict=True))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_in_bf16(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method = of_tiny_cnn(name)
    learned(method, monkeypatch, training=dataclasses.replace(TRAINING, precision="bf16"))
    assert method.predict_all(batch()).isfinite().all()


def test_a_residual_network_records_its_steps_too(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, plain = (learned(spacenet(), monkeypatch, recorded) for recorded in (True, False))
    assert all(torch.equal(a, b) for a, b in zip(recorded, plain, strict=True))


@pytest.mark.parametrize("name", IMAGE_NETS)
def test_modules_of_others_record_their_steps_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    text = trace_module(IMAGE_NETS[name](), (3, 8, 8))  # with dropout, where there is any
    settings = SpaceNet.Settings(selected=(0,), reserved=(1,), connections=(0.1,))
    methods = [SpaceNet(build_from_text(text), settings, 0, torch.device("cuda")) for _ in range(2)]
    recorded, plain = (learned(each, monkeypatch, number == 0) for number, each in enumerate(methods))
    assert all(torch.equal(a, b) for a, b in zip(recorded, plain, strict=True))


def test_the_same_seed_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (learned(spacenet(), monkeypatch) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_nothing_waits_for_the_gpu_within_an_epoch() -> None:
    method, task = spacenet(), images(2)[0]
    hardware = find_hardware(TRAINING)
    data = dataclasses.replace(task.train.to(hardware.device), augmented=True)
    method.begin_task(task, data)
    step = make_step(method, data, make_optimizer(method, TRAINING), hardware, CropAndFlip(data))
    batches = torch.arange(24, device=hardware.device).split(4)
    for rows in batches:
        step(rows)  # the first ones, and the recording
    try:
        torch.cuda.set_sync_debug_mode("error")
        for rows in batches:
            step(rows)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_predictions_are_those_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    method = spacenet()
    learned(method, monkeypatch, training=dataclasses.replace(TRAINING, bn_recalibration_epochs=10))
    here = SpaceNet(tiny_wrn(), method.settings, 0)
    here.load_state(method.state())
    expected = here.predict_all(batch())
    assert float(expected.std(0).mean()) > 0.1
    torch.testing.assert_close(method.predict_all(batch()), expected, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_batch_norm_where_some_units_use_the_batch(layout: torch.memory_format) -> None:
    rng = Generator().manual_seed(0)
    h, gradient = (torch.randn(16, 12, 8, 8, generator=rng) for _ in range(2))
    scale, shift, mean, var = (torch.rand(12, generator=rng) + 0.5 for _ in range(4))
    uses_batch_stats = torch.rand(12, generator=rng) > 0.5
    found = []
    for device in ("cpu", "cuda"):
        x = h.to(device, memory_format=layout, copy=True).requires_grad_()
        parts = {"scale": scale, "shift": shift, "mean": mean, "var": var}
        values = {f"p.norm.{name}": value.to(device, copy=True) for name, value in parts.items()} | {
            "p" + BATCH_STATS: uses_batch_stats.to(device)
        }
        trained = [values[f"p.norm.{name}"].requires_grad_() for name in ("scale", "shift")]
        out = normalize(values, "p", x, "norm")
        out.backward(gradient.to(device))
        found.append([out, x.grad, *(t.grad for t in trained), values["p.norm.mean"], values["p.norm.var"]])
    for on_cpu, on_gpu in zip(*found, strict=True):
        assert on_cpu is not None
        assert on_gpu is not None
        torch.testing.assert_close(on_gpu.cpu(), on_cpu, atol=1e-4, rtol=1e-4)


def test_the_variance_of_a_constant_map_is_not_below_0() -> None:
    """A run of minutes ended with a model that could not be saved."""
    h = torch.zeros(8, 2, 4, 4, device="cuda")
    scale, shift, mean, var = (torch.ones(2, device="cuda") for _ in range(4))
    marked = torch.tensor([True, False], device="cuda")
    for epsilon in (1e-5, 1e-3):
        for _ in range(2000):  # until nothing of the initial variance is left
            normalize_partly(h, scale, shift, mean, var, marked, epsilon, 0.1)
        assert float(var.min()) >= 0.0
