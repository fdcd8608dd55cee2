"""The layout that a GPU gets, tried on the CPU: the same network, padded and permuted."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from spacenet.nets.mlp import build_mlp
from spacenet.nets.small_cnn import build_small_cnn
from spacenet.space.allocation import allocate, select
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.space.budget import TaskBudget
from spacenet.space.ledger import Ledger
from spacenet.space.opening import Layout
from spacenet.space.rewiring import reserve
from spacenet.space.workspace import Workspace
from spacenet.utils.optimizers import SGD
from tests.nets.test_convolutions import CALIBRATION, NETS, assert_equal_and_varied

LAYOUTS = [Layout(), Layout(8), Layout(8, channels_last=True), Layout(8, True, alignment=1)]
"""Channels last without padding is left out: torch 2.13 crashes with it on processors that have AVX2 only."""


def images(seed: int) -> Tensor:
    return torch.randn(16, 3, 8, 8, generator=Generator().manual_seed(seed))


def open_task(ledger: Ledger, settings: dict[str, Any], task: int, layout: Layout) -> Workspace:
    rng, classes = Generator().manual_seed(task), torch.arange(2 * task, 2 * task + 2)
    budget = TaskBudget(**settings).resolve(ledger, 2)
    selection = select(ledger, budget, classes, rng)
    new = allocate(ledger, budget, selection, task, rng)
    ledger.grow("output", 2)
    return Workspace(ledger, selection, new, outputs=classes, fixed=False, layout=layout)


@torch.no_grad()
def calibrate(workspace: Workspace) -> None:
    """Let batch norm's running statistics follow the weights."""
    for step in range(CALIBRATION):
        workspace(images(step), {})


def learn_two_tasks(blueprint: Blueprint, settings: dict[str, Any]) -> Ledger:
    ledger = Ledger(blueprint)
    ledger.initialize(Generator().manual_seed(0))
    for task in range(2):
        workspace = open_task(ledger, settings, task, Layout())
        optimizer = SGD(workspace.named_parameters(), 0.05, momentum=0.9)
        for step in range(4):
            optimizer.zero_grad()
            workspace.backward(F.cross_entropy(workspace(images(step), {}), torch.arange(16) % 2))
            workspace.step(optimizer)
            workspace.rewire(0.2, optimizer)
        calibrate(workspace)
        workspace.commit(task)
        importance = {layer.name: workspace.importance(layer.name) for layer in blueprint.hidden}
        budget = TaskBudget(**settings).resolve(ledger, 2)
        reserve(ledger, task, workspace.selection, importance, budget.reserved)
    return ledger


@NETS
def test_every_layout_is_the_same_network(build: Callable[[], Blueprint], settings: dict[str, Any]) -> None:
    found, ledger = [], learn_two_tasks(build(), settings)
    for layout in LAYOUTS:
        workspace = open_task(deepcopy(ledger), settings, 2, layout)
        workspace.backward(F.cross_entropy(workspace(images(9), {}), torch.arange(16) % 2))
        (own,) = workspace.named_parameters().values()
        assert own.grad is not None
        gradient = own.grad.clone()
        for opened in workspace.links.values():  # unequal importance, so that rounding does not decide what moves
            opened.importance.copy_(torch.rand(opened.importance.shape, generator=Generator().manual_seed(1)))
        workspace.rewire(0.5)
        calibrate(workspace)
        output = workspace(images(10), {}, training=False).detach()
        found.append((gradient, workspace.connections(2), output))
    (plain_gradient, plain_connections, plain_output), *others = found
    for gradient, connections, output in others:
        torch.testing.assert_close(gradient, plain_gradient, atol=1e-4, rtol=1e-3)
        for name, plain in plain_connections.items():
            assert torch.equal(connections[name].source, plain.source)
            assert torch.equal(connections[name].target, plain.target)
        assert_equal_and_varied(output, plain_output)


def test_a_gpu_has_a_layout_of_its_own() -> None:
    cnn, gpu = build_small_cnn((3, 8, 8), (4, 4, 6)), torch.device("cuda")
    assert Layout.for_device(CPU, cnn) == Layout()
    assert Layout.for_device(gpu, build_mlp((4,), (5,))) == Layout(alignment=1)
    assert Layout.for_device(gpu, cnn) == Layout(8, channels_last=True, alignment=1)
