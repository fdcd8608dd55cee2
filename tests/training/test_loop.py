import pytest
import torch

from spacenet.errors import RunError, SettingsError
from spacenet.methods.bounds.naive import Naive
from spacenet.training.loop import load_optimizer, make_optimizer, optimizer_tensors
from spacenet.training.settings import TrainingSettings
from tests.methods.support import TRAINING, learn, make, small_stream


def test_the_same_seed_gives_the_same_bits() -> None:
    results = []
    for seed in (1, 1, 2):
        method = make(Naive, seed=seed)
        learn(method, small_stream())
        results.append(torch.cat([value.flatten() for value in method.model().values()]))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_epochs_are_reported() -> None:
    epochs = learn(make(Naive), small_stream()[:1])
    assert [(e.task, e.epoch, e.epochs) for e in epochs] == [(0, i, TRAINING.epochs) for i in range(TRAINING.epochs)]
    assert epochs[-1].accuracy > 90
    assert epochs[-1].loss < 0.5


def test_divergence_is_an_error_for_people() -> None:
    wild = TrainingSettings(epochs=5, batch_size=4, learning_rate=1e30)
    with pytest.raises(RunError, match=r"training diverged: .* task 1, epoch .* smaller --learning-rate"):
        learn(make(Naive), small_stream(), wild)


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
        TrainingSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_an_optimisers_history_comes_back(name: str) -> None:
    settings = TrainingSettings(optimizer=name, momentum=0.9)  # type: ignore[arg-type]
    values = []
    for interrupted in (False, True):
        method = make(Naive)
        optimizer = make_optimizer(method, settings)
        for step in range(4):
            if interrupted and step == 2:
                saved = {key: tensor.clone() for key, tensor in optimizer_tensors(optimizer).items()}
                optimizer = make_optimizer(method, settings)
                load_optimizer(optimizer, saved)
            for number, parameter in enumerate(method.parameters()):
                parameter.grad = torch.full_like(parameter, 0.1 * (step + number))
            optimizer.step()
        values.append(torch.cat([p.detach().flatten() for p in method.parameters()]))
    assert torch.equal(values[0], values[1])


def test_parameters_that_appear_in_the_middle_are_trained() -> None:
    class Growing(Naive):
        grown: torch.nn.Parameter | None = None

        def end_epoch(self, epoch: int, optimizer: torch.optim.Optimizer, *, last: bool) -> None:
            if epoch == 1:
                self.grown = torch.nn.Parameter(torch.ones(1))

        def parameters(self) -> list[torch.nn.Parameter]:
            return super().parameters() + ([] if self.grown is None else [self.grown])

        def loss(self, output: torch.Tensor, batch: object) -> torch.Tensor:
            loss = super().loss(output, batch)  # type: ignore[arg-type]
            return loss if self.grown is None else loss + self.grown.sum()

    method = make(Growing)
    learn(method, small_stream()[:1])
    assert isinstance(method, Growing)
    assert method.grown is not None
    assert method.grown.item() < 0.5
