from dataclasses import replace

import pytest
import torch

from spacenet.data.stream import Stream
from spacenet.errors import SettingsError
from spacenet.methods.pathnet import PathNet, PathNetSettings, next_generation
from spacenet.utils.optimizers import SGD
from tests.methods.parts import answers, learn_one, right
from tests.methods.support import TRAINING, learn, make, small_stream
from tests.nets.test_convolutions import TRAINING as CNN_TRAINING
from tests.nets.test_convolutions import images, tiny_cnn

SMALL = {"modules": 6, "active": 2, "population": 4}


def learned(stream: Stream) -> PathNet:
    method = make(PathNet, SMALL)
    assert isinstance(method, PathNet)
    learn(method, stream, replace(TRAINING, momentum=0.9, weight_decay=0.01))
    return method


def test_modules_are_equal_groups_of_a_layers_units() -> None:
    method = make(PathNet, {"modules": 5, "active": 2}, hidden=(10, 3))
    assert isinstance(method, PathNet)
    units = method.units_of(torch.tensor([[1, 4], [2, 2]], dtype=torch.uint8))
    assert units["hidden1"].tolist() == [2, 3, 8, 9]
    assert units["hidden2"].tolist() == [2]  # three units cannot make five modules


def test_the_less_fit_of_two_becomes_a_mutated_copy_of_the_other() -> None:
    limits, copies, changed = torch.tensor([[20], [20]]), 200, 0
    loser, winner = torch.tensor([[9, 9, 9], [9, 9, 9]]), torch.tensor([[0, 1, 2], [17, 18, 19]])
    for seed in range(copies):
        rng = torch.Generator().manual_seed(seed)
        after = next_generation(torch.stack([loser, winner]), torch.tensor([0.4, 0.6]), limits, rng)
        assert torch.equal(after[1], winner)
        shift = (after[0] - winner + 10) % 20 - 10  # round the layer's end
        assert int(shift.abs().max()) <= 2
        changed += int((shift != 0).sum())
    # Each of 6 numbers mutates with 1/6, and one mutation in five is by 0.
    assert changed / copies == pytest.approx(0.8, abs=0.15)


def test_of_an_odd_population_one_path_stays_as_it_is() -> None:
    population = torch.arange(3)[:, None, None].expand(3, 2, 2).clone() * 5
    after = next_generation(population, torch.tensor([0.9, 0.5, 0.1]), torch.tensor([[20], [20]]), torch.Generator())
    same = [torch.equal(a, b) for a, b in zip(after, population, strict=True)]
    assert same.count(True) >= 2
    assert same[0]


def test_a_path_is_the_network_with_all_others_silent() -> None:
    stream = small_stream()
    method = learned(stream[:2])
    units, values = method.units_of(method.paths[0]), dict(method.params)
    silent = {name: torch.ones(30, dtype=torch.bool).index_fill(0, kept, False) for name, kept in units.items()}
    for link in method.blueprint.links[1:]:
        weight = values[link.name].detach().clone()
        weight[:, silent[link.source]] = 0.0
        values[link.name] = torch.nn.Parameter(weight)
    dense = method.blueprint.forward(values, stream[0].test.x)[:, :2]
    assert 5 <= len(units["hidden1"]) <= 10
    torch.testing.assert_close(answers(method, stream[0].test.x, 0), dense)


def test_earlier_models_stay_to_the_bit_and_the_rest_starts_anew() -> None:
    stream = small_stream()
    method = learned(stream[:1])
    x = torch.cat([task.test.x for task in stream])
    before, used = answers(method, x, 0), method.used()
    values = {name: value.detach().clone() for name, value in method.params.items()}
    # Unused units are as at the beginning: no bias. Those of the path have learned one, if they were ever active.
    assert not bool(values["hidden1.bias"][~used["hidden1.bias"]].any())
    assert bool(values["hidden1.bias"].any())
    sources = method.units_of(method.paths[0])["hidden1"]
    assert int(used["hidden1-hidden2"].sum()) == len(sources) * int(used["hidden2.bias"].sum())
    for task in (stream[1], stream[2]):
        learn_one(method, task)
    assert torch.equal(answers(method, x, 0), before)
    for name, mask in used.items():
        assert torch.equal(method.params[name][mask], values[name][mask])
        assert int(method.used()[name].sum()) >= int(mask.sum())
    assert min(right(method, task) for task in stream) > 0.9


def test_all_paths_of_the_population_are_trained_in_turn() -> None:
    method, task = make(PathNet, SMALL), small_stream()[0]
    assert isinstance(method, PathNet)
    seen: list[list[float]] = []
    next_epoch = method.begin_epoch

    def begin_epoch(epoch: int) -> None:
        seen.append(method.fitness[1].tolist())
        next_epoch(epoch)

    method.begin_epoch = begin_epoch  # type: ignore[method-assign]
    learn_one(method, task)
    batches = len(task.train) // TRAINING.batch_size
    # Six epochs in which each path has its share, then two (a quarter, rounded) for the best alone.
    shares = [10.0 * len(range(turn, batches, 4)) for turn in range(4)]
    assert seen[1:] == [shares] * 6 + [[10.0 * batches]]
    assert method.fitness.shape == (2, 1)


def test_the_fittest_path_is_kept() -> None:
    method, task = make(PathNet, SMALL | {"refine_epochs": 0.0}), small_stream()[0]
    assert isinstance(method, PathNet)
    method.begin_task(task, task.train)
    method.epochs(1)
    method.begin_epoch(0)
    third = method.population[2].clone()
    method.fitness = torch.tensor([[5.0, 8.0, 6.0, 0.0], [10.0, 20.0, 10.0, 0.0]])  # 0.5, 0.4, 0.6, not trained
    method.end_epoch(0, SGD(method.parameters(), 0.1), last=True)
    method.end_task(task)
    assert torch.equal(method.paths[0], third)


def test_batch_norm_follows_the_batch_in_the_path_alone() -> None:
    method, stream = PathNet(tiny_cnn(), PathNetSettings(modules=6, active=2, population=2), seed=0), images(2)
    learn(method, stream[:1], CNN_TRAINING)
    used, before = method.used(), answers(method, stream[0].test.x, 0)
    means = method.params["conv2.norm2.mean"].detach().clone()
    assert torch.equal(means != 0.0, used["conv2.norm2.mean"])
    learn_one(method, stream[1], CNN_TRAINING)
    assert torch.equal(answers(method, stream[0].test.x, 0), before)
    assert torch.equal(method.params["conv2.norm2.mean"] != 0.0, method.used()["conv2.norm2.mean"])
    assert int(method.used()["conv2.norm2.mean"].sum()) > int(used["conv2.norm2.mean"].sum())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"modules": 0}, "modules"),
        ({"modules": 256}, "modules"),
        ({"active": 0}, "active"),
        ({"active": 11}, "active"),
        ({"population": 1}, "population"),
        ({"refine_epochs": -1.0}, "refine_epochs"),
    ],
)
def test_settings_that_cannot_work(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        PathNetSettings(**wrong)  # type: ignore[arg-type]
