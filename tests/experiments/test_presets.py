import os
from pathlib import Path

import pytest

from spacenet.experiments.presets import preset
from spacenet.experiments.run import Run, check, create_folder
from spacenet.methods import METHODS

needs_data = pytest.mark.skipif("SPACENET_DATA" not in os.environ, reason="SPACENET_DATA names no folder with MNIST")


def test_static_sparse_has_the_very_settings_of_spacenet() -> None:
    for stream in ("split-digits", "split-mnist", "split-fashion-mnist"):
        adaptive, static = preset(stream, "spacenet"), preset(stream, "static-sparse")
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
