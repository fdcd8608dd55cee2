import os
from pathlib import Path

import pytest

from spacenet.config.presets import BENCHMARKS, preset
from spacenet.data.streams import build_stream
from spacenet.errors import SettingsError
from spacenet.experiments.run import Run, check, create_folder
from spacenet.methods import METHODS, get_method
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.methods.shared.sparse_settings import AdaptiveSettings
from spacenet.nets import build_net

needs_data = pytest.mark.skipif("SPACENET_DATA" not in os.environ, reason="SPACENET_DATA names no folder with MNIST")


def test_static_sparse_has_the_very_settings_of_spacenet() -> None:
    for stream, preset_name in (
        (stream, preset_name) for stream, presets in BENCHMARKS.items() for preset_name in presets
    ):
        adaptive, static = (preset(stream, method, preset_name=preset_name) for method in ("spacenet", "static-sparse"))
        assert (adaptive.data, adaptive.net, adaptive.training) == (static.data, static.net, static.training)
        assert vars(static.options).items() <= vars(adaptive.options).items()


@pytest.mark.parametrize("stream", ["split-mnist", "split-fashion-mnist"])
def test_the_papers_architecture_and_connections(stream: str) -> None:
    config = preset(stream, "spacenet")
    assert config.net.hidden == (400, 400)
    assert vars(config.options)["connections"] == (10_000, 1_640, 80)
    assert config.training.epochs == {"split-mnist": 4, "split-fashion-mnist": 20}[stream]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_learn_the_embedded_digits(method: str) -> None:
    check(preset("split-digits", method))


def test_the_embedded_digits_are_learned(tmp_path: Path) -> None:
    create_folder(preset("split-digits", "spacenet"), tmp_path / "run")
    metrics = Run(tmp_path / "run").execute()
    assert metrics["acc"] > 75
    assert metrics["task_incremental"]["acc"] > 95


@needs_data
def test_split_mnist_is_learned(tmp_path: Path) -> None:
    create_folder(preset("split-mnist", "spacenet"), tmp_path / "run")
    metrics = Run(tmp_path / "run").execute()
    assert metrics["acc"] > 70  # one seed; ten of them are in docs/results.md
    assert metrics["bwt"] > -16
    assert metrics["connections"] == 5 * (10_000 + 1_640 + 80)
    assert all(layer["reserved"] == 200 for layer in metrics["layers"][:2])


@pytest.mark.parametrize("stream", ["split-digits", "npz"])
@pytest.mark.parametrize("net", ["small-cnn", "resnet-18", "wrn-10-1"])
def test_another_net_than_the_papers_has_settings_that_work(stream: str, net: str) -> None:
    config = preset(stream, "spacenet", {"net": {"net": net}})
    assert config.net.hidden == ()
    digits = build_stream("split-digits")
    method = get_method("spacenet")(build_net(config.net, digits.input_shape), config.options, 0)
    assert method.check(digits) == []


def test_experiments_of_a_stream_are_chosen_by_name() -> None:
    assert preset("icifar-100", "spacenet").net.net == "small-cnn"
    assert preset("icifar-100", "spacenet", preset_name="wrn-28-10").net.net == "wrn-28-10"
    expanded = preset("cifar-10-100", "spacenet", preset_name="expanded").options
    assert isinstance(expanded, AdaptiveSettings)
    assert expanded.expand == "6:conv2=8,conv3=8"
    with pytest.raises(SettingsError, match="preset: icifar-100 has no 'expanded'; it has small-cnn, wrn-28-10"):
        preset("icifar-100", "spacenet", preset_name="expanded")


@pytest.mark.parametrize(
    ("stream", "variant", "shape", "classes", "tasks"),
    [
        ("split-mnist", "mlp", (28, 28), 2, 5),
        ("split-cifar-10", "small-cnn", (3, 32, 32), 2, 5),
        ("icifar-100", "small-cnn", (3, 32, 32), 20, 5),
        ("icifar-100", "wrn-28-10", (3, 32, 32), 20, 5),
        ("cifar-10-100", "small-cnn", (3, 32, 32), 10, 6),
    ],
)
def test_with_a_larger_first_task_all_others_still_fit(
    stream: str, preset_name: str, shape: tuple[int, ...], classes: int, tasks: int
) -> None:
    """Whichever units a task reserves: a run of one epoch chooses others than a long one, and once it was full."""
    for seed in range(3):
        config = preset(stream, "spacenet-density", preset_name=preset_name)
        method = get_method("spacenet-density")(build_net(config.net, shape), config.options, seed)
        assert isinstance(method, SparseMethod)
        assert method.space_left(classes) >= tasks
