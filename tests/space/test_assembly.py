"""The layout that a GPU is given, tried on the processor: the same network, filled up and turned."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from spacenet.space.assembly import Layout
from torch import Generator, Tensor

from spacenet.methods.base import Batch
from spacenet.methods.spacenet import SpaceNet
from spacenet.nets.mlp import mlp
from spacenet.nets.small_cnn import small_cnn
from spacenet.space.blueprint import CPU, Blueprint
from tests.nets.test_convolutions import NETS, images, learned

Build = Callable[[], Blueprint]

LAYOUTS = [Layout(), Layout(together=True), Layout(8), Layout(1, True), Layout(8, True, True)]


def third_task(model: Mapping[str, Tensor], build: Build, settings: dict[str, Any]) -> SpaceNet:
    """SpaceNet in its third task, after one backward pass."""
    method = SpaceNet(build(), SpaceNet.Settings(**settings), seed=0)
    method.load_model(model)
    method.tasks_learned = 2
    task = images()[2]
    method.begin_task(task, task.train)
    batch = Batch.pick(task.train, torch.arange(16))
    method.loss(method.forward(batch), batch).backward()
    return method


@NETS
def test_every_layout_is_the_same_network(
    build: Build, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = learned(build, settings, 2).model()
    found = []
    for layout in LAYOUTS:
        monkeypatch.setattr(Layout, "for_device", classmethod(lambda cls, device, blueprint, chosen=layout: chosen))
        method = third_task(model, build, settings)
        workspace = method.workspace
        assert workspace is not None
        gradients = [own.grad.clone() for own in workspace.parameters() if own.grad is not None]
        assert len(gradients) == len(workspace.parameters())
        # Unequal importance, so that rounding does not decide what moves.
        for link in workspace.training.values():
            link.importance.copy_(torch.rand(link.importance.shape, generator=Generator().manual_seed(1)))
        workspace.rewire(0.5)
        x = images()[2].test.x
        found.append((gradients, workspace.connections(2), workspace(x, {}, training=False).detach()))
    (plain_gradients, plain_connections, plain_output), *others = found
    for gradients, connections, output in others:
        for gradient, plain in zip(gradients, plain_gradients, strict=True):
            torch.testing.assert_close(gradient, plain, atol=1e-4, rtol=1e-3)
        for name, plain_ones in plain_connections.items():
            assert torch.equal(connections[name].source, plain_ones.source)
            assert torch.equal(connections[name].target, plain_ones.target)
        torch.testing.assert_close(output, plain_output, atol=1e-3, rtol=1e-3)
        assert float(output.std()) > 1e-3


def test_only_convolutions_on_a_gpu_are_laid_out_anew() -> None:
    def cnn() -> Blueprint:
        return small_cnn((3, 8, 8), (4, 4), 6)

    gpu = torch.device("cuda")
    assert Layout.for_device(CPU, cnn()) == Layout()
    assert Layout.for_device(gpu, mlp(4, (5,))) == Layout(together=True)
    assert Layout.for_device(gpu, cnn()) == Layout(8, True, True)
