"""Several processes that share every batch. Started for real, over gloo, so these tests take some seconds."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from spacenet.config.model import PreprocessingConfig
from spacenet.config.training import TrainingConfig
from spacenet.data.stream import Stream
from spacenet.errors import MissingExtraError, SettingsError, SpaceFull
from spacenet.experiments.engines import launch
from spacenet.experiments.jobs import Job, execute
from spacenet.methods.spacenet import SpaceNet
from spacenet.nets.small_cnn import build_small_cnn
from spacenet.training.hardware import Hardware
from spacenet.training.loop import Epoch, learn_task
from spacenet.utils.optimizers import Optimizer
from spacenet.utils.tensors import load_tensors, save_tensors
from tests.experiments.support import config
from tests.nets.test_convolutions import foreign_net

SHAPE = (3, 8, 8)
TRAINING = TrainingConfig(epochs=3, batch_size=10, learning_rate=0.05, momentum=0.9, augment="crop-flip", devices=2)


def images(tasks: int = 2, per_class: int = 12) -> Stream:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(2 * tasks), per_class)
    x = (rng.normal(size=(2 * tasks, *SHAPE))[y] + 0.5 * rng.normal(size=(len(y), *SHAPE))).astype(np.float32)
    return Stream.from_arrays(x, y, x, y).with_preprocessing(PreprocessingConfig(centering=0.0, standardize="all"))


def learn_and_save(hardware: Hardware, folder: Path) -> dict[str, list[float]]:
    """In each process: learn two tasks with networks that have batch norm, keep the ledgers in files of its own."""
    torch.set_num_threads(1)
    sizes = {"small-cnn": (8, 8, 10, 10, 20), "mobilenet-v2": (0,)}
    nets = {"small-cnn": build_small_cnn(SHAPE, (12, 12, 14, 14, 30)), "mobilenet-v2": foreign_net("mobilenet-v2")}
    losses: dict[str, list[float]] = {name: [] for name in nets}
    for name, net in nets.items():
        settings = SpaceNet.Settings(selected=sizes[name], reserved=(2,), connections=(0.1,), rewire_fraction=0.5)
        method = SpaceNet(net, settings, seed=0)
        of_net = losses[name]

        def note(epoch: Epoch, optimizer: Optimizer, of_net: list[float] = of_net) -> None:
            of_net.append(epoch.loss)

        for task in images():
            learn_task(method, task, TRAINING, hardware=hardware, on_batch=lambda done, total: None, on_epoch=note)
        rank = hardware.fabric.global_rank
        save_tensors(folder / f"{name}-{rank}", method.ledger.tensors(), {"losses": losses[name]})
    return losses


def test_all_processes_end_with_the_same_ledger_bit_for_bit(tmp_path: Path) -> None:
    losses = launch(TRAINING, learn_and_save, tmp_path)
    for net, of_net in losses.items():
        (first, facts), (second, other_facts) = (load_tensors(tmp_path / f"{net}-{rank}") for rank in (0, 1))
        assert first.keys() == second.keys()
        for name, tensor in first.items():
            assert torch.equal(tensor, second[name]), name
        assert facts == other_facts == {"losses": of_net}
        assert of_net[-1] < of_net[0]


def test_a_run_on_two_devices_is_a_run_like_any_other_also_when_it_runs_out_of_space(tmp_path: Path) -> None:
    training = {"epochs": 10, "devices": 2, "device": "cpu"}
    settings = config(tmp_path, training=training, net={"hidden": [30, 16]})
    outcome = execute(Job(settings, folder=tmp_path / "run"))
    assert isinstance(outcome.error, SpaceFull)
    assert outcome.data is not None
    assert outcome.data.metrics["tasks_learned"] == 2
    assert outcome.data.metrics["hardware"].startswith("2 × CPU")
    assert outcome.data.metrics["acc"] > 60
    assert outcome.data.model is not None
    assert outcome.data.analysis.confusion is not None
    assert outcome.data.folder == tmp_path / "run"
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "analysis.safetensors",
        "config.toml",
        "metrics.json",
        "model.safetensors",
        "run.log",
    ]


def test_without_fabric_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("lightning")] + ["lightning_fabric", "lightning"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"spacenet-cl\[distributed\]"):
        launch(TRAINING, learn_and_save)


def test_more_devices_than_samples_in_a_batch() -> None:
    with pytest.raises(SettingsError, match="devices: 3 processes cannot share batches of 2"):
        TrainingConfig(batch_size=2, devices=3)
