"""Several processes that share every batch. Started for real, over gloo, so these tests take some seconds."""

from pathlib import Path

import pytest
import torch
from spacenet.experiments.batch import execute

from spacenet.config.presets import preset
from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError
from spacenet.experiments import launch as module
from spacenet.experiments.launch import launch
from spacenet.experiments.run import create_folder
from spacenet.methods.spacenet import SpaceNet
from spacenet.training.hardware import Hardware
from spacenet.training.loop import learn_task
from spacenet.utils.files import load_tensors, save_tensors
from tests.nets.test_convolutions import images, tiny_cnn

TRAINING = TrainingConfig(epochs=3, batch_size=10, learning_rate=0.05, momentum=0.9, augment="crop-flip", devices=2)


def learn_and_save(hardware: Hardware, folder: Path) -> float:
    """In each process: learn two tasks with a network that has batch norm, keep the ledger in a file of its own."""
    torch.set_num_threads(1)
    settings = SpaceNet.Settings(selected=(8, 8, 10, 10, 20), reserved=(2,), connections=(0.1,), rewire_fraction=0.5)
    method = SpaceNet(tiny_cnn(), settings, seed=0)
    losses: list[float] = []
    for task in images(2):
        learn_task(
            method,
            task,
            TRAINING,
            hardware=hardware,
            on_batch=lambda done, total: None,
            on_epoch=lambda epoch, optimizer: losses.append(epoch.loss),
        )
    save_tensors(folder / f"rank-{hardware.fabric.global_rank}", method.ledger.tensors(), {"losses": losses})
    return losses[-1]


def test_all_processes_end_with_the_same_ledger_bit_for_bit(tmp_path: Path) -> None:
    last = launch(TRAINING, learn_and_save, tmp_path)
    (first, facts), (second, other_facts) = (load_tensors(tmp_path / f"rank-{rank}") for rank in (0, 1))
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    assert facts == other_facts
    assert last == facts["losses"][-1] < facts["losses"][0]


def test_a_run_on_two_devices_is_a_run_like_any_other(tmp_path: Path) -> None:
    over = {"data": {"tasks": "0,1/2,3"}, "training": {"epochs": 10, "devices": 2, "device": "cpu"}}
    create_folder(preset("split-digits", "spacenet", over), tmp_path / "run")
    outcome = execute(tmp_path / "run")
    assert outcome.error is None
    assert outcome.metrics is not None
    assert outcome.metrics["hardware"].startswith("2 × CPU")
    assert outcome.metrics["acc"] > 60
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "analysis.safetensors",
        "config.toml",
        "metrics.json",
        "model.safetensors",
        "run.log",
    ]


def test_without_fabric_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "lightning_fabric", None)
    monkeypatch.setitem(__import__("sys").modules, "lightning", None)
    with pytest.raises(SettingsError, match=r"spacenet\[distributed\]"):
        module._fabric()


def test_more_devices_than_samples_in_a_batch() -> None:
    with pytest.raises(SettingsError, match="devices: 3 processes cannot share batches of 2"):
        TrainingConfig(batch_size=2, devices=3)
