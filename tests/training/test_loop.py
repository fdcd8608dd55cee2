import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

from spacenet.config.training import TrainingConfig
from spacenet.data.stream import Samples, Task
from spacenet.errors import RunError, SettingsError
from spacenet.methods.naive import Naive
from spacenet.training.loop import Position, learn_task, make_optimizer, warn_of_chance
from spacenet.utils.optimizers import Optimizer
from tests.methods.support import TRAINING, learn, make, small_stream


def test_the_same_seed_gives_the_same_bits() -> None:
    results = []
    for seed in (1, 1, 2):
        method = make(Naive, seed=seed)
        learn(method, small_stream())
        results.append(torch.cat([value.flatten() for value in method.network_state().values()]))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_epochs_are_reported() -> None:
    epochs = learn(make(Naive), small_stream()[:1])
    assert [(e.task, e.epoch, e.epochs) for e in epochs] == [(0, number, 6) for number in range(6)]
    assert epochs[-1].accuracy > 90
    assert epochs[-1].loss < 0.5


class Idle(Naive):
    """Trains its first task only, and notes what the loop asks of it."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.asked: list[str] = []

    def begin_task(self, task: Task, data: Samples) -> None:
        self.asked.append("begin")
        super().begin_task(task, data)

    def epochs(self, planned: int) -> int:
        return 0 if self.tasks_learned else planned

    def named_parameters(self) -> dict[str, nn.Parameter]:
        self.asked.append("parameters")
        return super().named_parameters()

    def end_task(self, task: Task) -> None:
        self.asked.append("end")
        super().end_task(task)


def test_a_task_without_epochs_begins_and_ends_and_that_is_all() -> None:
    method, stream = make(Idle), small_stream()
    assert isinstance(method, Idle)
    assert len(learn(method, stream[:1])) == TRAINING.epochs
    assert "parameters" in method.asked
    method.asked.clear()
    assert learn(method, list(stream)[1:]) == []
    assert method.asked == ["begin", "end"] * 2
    assert method.classes == [task.classes for task in stream]


def test_divergence_is_an_error_for_people() -> None:
    wild = TrainingConfig(epochs=5, batch_size=4, learning_rate=1000.0, momentum=0.99)
    with pytest.raises(RunError, match=r"training diverged: .* task 1, epoch .* smaller learning_rate"):
        learn(make(Naive), small_stream(), wild)


def test_divergence_in_the_last_step_is_an_error_too() -> None:
    """The loss of a single step is that before it, and finite."""
    once = TrainingConfig(epochs=1, batch_size=1000, learning_rate=1000.0)
    task = small_stream()[0]
    task.train.x.mul_(1e15)
    task.train.y.copy_(task.train.y.roll(10))  # so that not all are right by chance
    with pytest.raises(RunError, match=r"training diverged: after task 1, scores .* smaller learning_rate"):
        learn(make(Naive), [task], once)


@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": 0},
        {"batch_size": 0},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"momentum": 1.0},
        {"weight_decay": -1.0},
        {"threads": 0},
    ],
)
def test_settings_out_of_range(settings: dict[str, float]) -> None:
    with pytest.raises(SettingsError):
        TrainingConfig(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_the_state_of_the_optimizer_is_restored(name: str) -> None:
    settings = TrainingConfig(optimizer=name, momentum=0.9)  # type: ignore[arg-type]
    values = []
    for interrupted in (False, True):
        method = make(Naive)
        optimizer = make_optimizer(method, settings)
        for step in range(4):
            if interrupted and step == 2:
                saved = {key: tensor.clone() for key, tensor in optimizer.state_tensors().items()}
                optimizer = make_optimizer(method, settings)
                optimizer.load_state_tensors(saved)
            for number, parameter in enumerate(method.parameters()):
                parameter.grad = torch.full_like(parameter, 0.1 * (step + number))
            optimizer.step()
        values.append(torch.cat([p.detach().flatten() for p in method.parameters()]))
    assert torch.equal(values[0], values[1])


def test_parameters_that_appear_in_the_middle_are_trained() -> None:
    class Growing(Naive):
        grown: torch.nn.Parameter | None = None

        def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
            if epoch == 1:
                self.grown = torch.nn.Parameter(torch.ones(1))

        def named_parameters(self) -> dict[str, nn.Parameter]:
            return super().named_parameters() | ({} if self.grown is None else {"grown": self.grown})

        def loss(self, output: torch.Tensor, batch: object) -> torch.Tensor:
            loss = super().loss(output, batch)  # type: ignore[arg-type]
            return loss if self.grown is None else loss + self.grown.sum()

    method = make(Growing)
    learn(method, small_stream()[:1])
    assert isinstance(method, Growing)
    assert method.grown is not None
    assert method.grown.item() < 0.5


def test_the_first_task_may_be_learned_longer() -> None:
    settings = replace(TRAINING, epochs=2, first_epochs=5)
    epochs = learn(make(Naive), small_stream()[:2], settings)
    assert [epoch.epochs for epoch in epochs] == [5] * 5 + [2] * 2


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_step_size_goes_down_like_half_a_cosine_wave(optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []
    step = Naive.step

    def noting(self: Naive, used: Optimizer) -> None:
        rates.append(float(used.rate))
        step(self, used)

    monkeypatch.setattr(Naive, "step", noting)
    task = small_stream()[:1]
    settings = TrainingConfig(
        epochs=4,
        batch_size=len(task[0].train),
        learning_rate=0.2,
        schedule="cosine",
        optimizer=optimizer,  # type: ignore[arg-type]
    )
    learn(make(Naive), task, settings)
    assert rates == pytest.approx([0.2, 0.2 * (1 + 0.5**0.5) / 2, 0.1, 0.2 * (1 - 0.5**0.5) / 2])


def test_training_imports_no_compiler() -> None:
    """torch._dynamo takes longer to import than a small network to train."""
    program = """
import sys
from spacenet.methods import get_method
from tests.methods.support import learn, make, small_stream
for method in ("naive", "spacenet"):
    learn(make(get_method(method)), small_stream()[:1])
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_checkpoint_of_another_optimizer_is_a_run_error() -> None:
    stream, method = small_stream(), make(Naive)
    learn(method, stream[:1])
    method.begin_task(stream[1], stream[1].train)
    start = Position(1, {"0/mean": torch.zeros(3)})
    with pytest.raises(RunError, match="the saved state of the optimizer"):
        learn_task(
            method, stream[1], TRAINING, start=start, on_batch=lambda *numbers: None, on_epoch=lambda *figures: None
        )


def test_a_one_cycle_rate_rises_and_then_falls() -> None:
    training = TrainingConfig(learning_rate=0.5, schedule="one-cycle")
    rates = [training.rate(epoch, 20) for epoch in range(20)]
    top = rates.index(max(rates))
    assert 0 < rates[0] < 0.2
    assert top in (3, 4)
    assert max(rates) == pytest.approx(0.5, rel=0.02)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert 0 < rates[-1] < 0.01
    assert TrainingConfig(learning_rate=0.5, schedule="one-cycle").rate(0, 1) > 0.1


def test_a_task_that_is_not_learned_is_warned_of() -> None:
    y = torch.tensor([4] * 6 + [5] * 4)
    assert warn_of_chance(1, 61.0, y) is not None
    assert "task 2 was hardly learned: the training accuracy ended at 61.0 %" in (warn_of_chance(1, 61.0, y) or "")
    assert warn_of_chance(1, 80.0, y) is None
    assert warn_of_chance(1, 0.0, y[:6]) is None  # one class alone
