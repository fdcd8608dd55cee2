"""Convolutional and residual networks in the space: the same guarantees as for the MLP, on tiny nets and images."""

import importlib
import resource
from collections.abc import Callable
from copy import deepcopy
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spacenet.config.model import PreprocessingConfig
from spacenet.config.training import TrainingConfig
from spacenet.data.dataset import Dataset
from spacenet.data.stream import Stream
from spacenet.methods.spacenet import SpaceNet
from spacenet.nets.populations import build_blueprint
from spacenet.nets.residual import build_resnet18, build_wide_resnet
from spacenet.nets.small_cnn import build_small_cnn
from spacenet.nets.trace import trace
from spacenet.space.blueprint import Blueprint
from spacenet.space.ledger import FREE
from spacenet.space.pack import cut, pack
from spacenet.space.workspace import Workspace
from spacenet.training.loop import learn_task
from tests.methods.support import learn
from tests.nets.foreign import IMAGE_NETS

TRAINING = TrainingConfig(
    epochs=2, batch_size=8, learning_rate=0.05, momentum=0.9, weight_decay=0.01, bn_recalibration_epochs=10
)
CALIBRATION = 20
"""Passes after which the running statistics are nearly those of a batch. New connections are weak: with the initial
statistics their signal would vanish from layer to layer."""

SPARSE: dict[str, Any] = {"selected": (0, 12, 16, 24), "reserved": (0, 2, 4, 6), "connections": (0.02,)}


def tiny_cnn() -> Blueprint:
    return build_small_cnn((3, 8, 8), (12, 12, 14, 14, 30))


def tiny_wrn() -> Blueprint:
    return build_wide_resnet((3, 8, 8), depth=10, widen=2, stem=4)


def tiny_resnet() -> Blueprint:
    return build_resnet18((3, 8, 8), width=4)


def foreign_net(name: str) -> Blueprint:
    torch.manual_seed(0)
    module = IMAGE_NETS[name]()
    for each in module.modules():
        if isinstance(each, nn.Dropout):
            each.p = 0.0  # what is dropped differs with the units that are there
    return build_blueprint(trace(module, (3, 8, 8)))


@cache
def efficientnet() -> Blueprint:
    """As another package has it, a quarter as wide. Its batch norm averages over hundreds of batches; here over ten, so
    that a short calibration is enough."""
    torch.manual_seed(0)
    package = importlib.import_module("efficientnet_lite_pytorch")
    module = package.EfficientNet.from_name(
        "efficientnet-lite0", image_size=8, dropout_rate=0.0, width_coefficient=0.25
    )
    for each in module.modules():
        if isinstance(each, nn.BatchNorm2d):
            each.momentum = 0.1
    return build_blueprint(trace(module, (3, 8, 8)))


DENSITY = {"vgg11-bn": 0.2, "densenet": 0.2, "convnext": 0.2}
CASES: list[Any] = [
    (tiny_cnn, {"selected": (0,), "reserved": (1, 1, 2, 2, 4), "connections": (0.1,)}),
    (tiny_cnn, {"selected": (5, 5, 6, 6, 10), "reserved": (2,), "connections": (0.08,)}),
    (tiny_resnet, {"selected": (0, 6, 8, 12), "reserved": (0, 1, 2, 3), "connections": (0.1,)}),
    (tiny_wrn, {"selected": (0, 5, 7, 9), "reserved": (0, 1, 2, 3), "connections": (0.05,)}),
    *(
        (partial(foreign_net, name), {"selected": (0,), "reserved": (1,), "connections": (DENSITY.get(name, 0.1),)})
        for name in IMAGE_NETS
    ),
]
LARGE = pytest.param(
    efficientnet,
    {"selected": (0,), "reserved": (1,), "connections": (0.2,)},
    marks=pytest.mark.skipif(not find_spec("efficientnet_lite_pytorch"), reason="needs the package"),
)
NETS = pytest.mark.parametrize(("build", "settings"), CASES)
ALL_NETS = pytest.mark.parametrize(("build", "settings"), [*CASES, LARGE])


def images(tasks: int = 3, per_class: int = 12) -> Stream:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(2 * tasks), per_class)
    patterns = rng.normal(size=(2 * tasks, 3, 8, 8))
    x = (patterns[y] + 0.5 * rng.normal(size=(len(y), 3, 8, 8))).astype(np.float32)
    data = Dataset("images", x, y, x.copy(), y.copy())
    labels = tuple((2 * t, 2 * t + 1) for t in range(tasks))
    return Stream("images", data, labels, preprocessing=PreprocessingConfig(centering=0.0, standardize="all"))


TOLERANCE = 1e-5
_learned: dict[tuple[int, str], SpaceNet] = {}


def learned(build: Callable[[], Blueprint], settings: dict[str, Any]) -> SpaceNet:
    """A method of its own that has learned two tasks; they are learned once."""
    key = id(build), str(settings)
    if key not in _learned:
        method = SpaceNet(build(), SpaceNet.Settings(**settings), seed=0)
        learn(method, images()[:2], TRAINING)
        _learned[key] = method
    return deepcopy(_learned[key])


def batch() -> Tensor:
    return torch.randn(6, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def assert_equal_and_varied(output: Tensor, expected: Tensor) -> None:
    """The same output, which differs between samples by 500 times what is tolerated: where it is constant, equality
    proves nothing. How much it differs depends on how a processor rounds while the network is trained."""
    assert float(expected.std(0).mean()) > 500 * TOLERANCE
    torch.testing.assert_close(output, expected, atol=TOLERANCE, rtol=1e-4)


@ALL_NETS
def test_the_pack_computes_what_the_whole_dense_network_computes(
    build: Callable[[], Blueprint], settings: dict[str, Any]
) -> None:
    ledger = learned(build, settings).ledger
    everything = {layer.name: torch.arange(ledger.size(layer.name)) for layer in ledger.blueprint.layers}
    dense = ledger.blueprint.forward(cut(ledger, everything), batch())
    assert dense.shape == (6, 4)
    assert_equal_and_varied(pack(ledger)(batch()), dense)


@ALL_NETS
@pytest.mark.parametrize("training", [False, True])
def test_a_compact_workspace_computes_what_the_whole_one_computes(
    build: Callable[[], Blueprint], settings: dict[str, Any], training: bool
) -> None:
    outputs = []
    for masked_dense in (False, True):
        method = learned(build, settings)
        method.settings = SpaceNet.Settings(**settings, masked_dense=masked_dense)
        task = images()[2]
        method.begin_task(task, task.train)
        workspace = method.workspace
        assert isinstance(workspace, Workspace)
        precomputed = workspace.frozen_inputs.precompute(batch())
        with torch.no_grad():
            for _ in range(0 if training else CALIBRATION):
                workspace(batch(), precomputed)
            outputs.append(workspace(batch(), precomputed, training))
    assert_equal_and_varied(*outputs)


@ALL_NETS
def test_frozen_kernels_and_the_norms_of_reserved_maps_stay_to_the_bit(
    build: Callable[[], Blueprint], settings: dict[str, Any]
) -> None:
    method = learned(build, settings)
    before = {name: tensor.clone() for name, tensor in method.network_state().items()}
    learn_task(method, images()[2], TRAINING, on_batch=lambda d, t: None, on_epoch=lambda e, o: None)
    assert method.tasks_learned == 3
    after = method.network_state()
    for link in method.blueprint.links:
        kept = len(before[f"links/{link.name}/owner"])
        assert torch.equal(after[f"links/{link.name}/value"][:kept], before[f"links/{link.name}/value"])
    for layer in method.blueprint.hidden:
        reserved = before[f"state/{layer.name}"] != FREE
        for key in layer.keys():
            assert torch.equal(after[f"units/{key}"][reserved], before[f"units/{key}"][reserved])


def test_a_tiny_stem_at_low_density_is_not_dead() -> None:
    # 2 % of the 3 × 16 kernels of a stem is one kernel; every map needs one for the network to learn.
    method = SpaceNet(build_wide_resnet((3, 8, 8), depth=10, widen=2, stem=16), SpaceNet.Settings(**SPARSE), seed=0)
    assert method.budget(2).connections["input-stem"] == 16
    stream = images()[:1]
    epochs = learn(method, stream, TrainingConfig(epochs=12, batch_size=8, learning_rate=0.1))
    assert epochs[-1].accuracy > 90


def test_what_a_tiny_layer_gains_the_largest_gives() -> None:
    method = SpaceNet(build_wide_resnet((3, 8, 8), depth=10, widen=2, stem=16), SpaceNet.Settings(**SPARSE), seed=0)
    size = {layer.name: layer.size for layer in method.blueprint.layers} | {"output": 2}
    asked = sum(round(0.02 * size[link.source] * size[link.target]) for link in method.blueprint.links)
    assert sum(method.budget(2).connections.values()) == asked


def test_the_widest_network_costs_no_more_to_describe_than_the_narrowest() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    blueprint = build_small_cnn((3, 8, 8), (10_000_000, 1_000, 10))
    assert [layer.size for layer in blueprint.layers] == [3, 10_000_000, 1_000, 10, 0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 * 1024  # KiB
