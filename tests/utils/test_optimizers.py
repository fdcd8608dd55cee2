"""The optimizers give the bits of torch's own."""

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor, nn

from spacenet.errors import RunError
from spacenet.utils.optimizers import SGD, Adam, Optimizer, Parameters

SHAPES = [(7, 5), (130,), (3, 2, 3, 3), (1,), ()]
Make = Callable[[Parameters], Optimizer]


def new_parameters(seed: int) -> list[nn.Parameter]:
    rng = Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=rng)) for shape in SHAPES]


def set_gradients(parameters: list[nn.Parameter], seed: int, *, gaps: bool = False) -> None:
    rng = Generator().manual_seed(seed)
    for number, parameter in enumerate(parameters):
        gradient = torch.randn(parameter.shape, generator=rng)
        parameter.grad = None if gaps and (seed + number) % 3 == 0 else gradient


def assert_same_bits(ours: list[nn.Parameter], theirs: list[nn.Parameter]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a.detach().view(-1).view(torch.int32), b.detach().view(-1).view(torch.int32))


@given(
    st.integers(0, 1000),
    st.sampled_from([0.0, 0.5, 0.9]),
    st.sampled_from([0.0, 1e-4, 0.1]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_sgd_is_torchs(seed: int, momentum: float, decay: float, gaps: bool, foreach: bool, ahead: bool) -> None:
    ours, theirs = new_parameters(seed), new_parameters(seed)
    nesterov = ahead and momentum > 0
    optimizer = SGD(ours, 0.1, momentum, decay, nesterov=nesterov)
    expected = torch.optim.SGD(theirs, 0.1, momentum, weight_decay=decay, foreach=foreach, nesterov=nesterov)
    for step in range(20):
        expected.param_groups[0]["lr"] = 0.1 / (1 + step // 5)
        optimizer.set_rate(expected.param_groups[0]["lr"])
        for parameters in (ours, theirs):
            set_gradients(parameters, seed + step, gaps=gaps)
        optimizer.step()
        expected.step()
        assert_same_bits(ours, theirs)


@given(st.integers(0, 1000), st.sampled_from([0.0, 1e-4, 0.1]), st.booleans())
def test_adam_is_torchs(seed: int, decay: float, gaps: bool) -> None:
    ours, theirs = new_parameters(seed), new_parameters(seed)
    optimizer, expected = (
        Adam(ours, 0.1, weight_decay=decay),
        torch.optim.Adam(theirs, 0.1, weight_decay=decay, fused=True),
    )
    for step in range(20):
        expected.param_groups[0]["lr"] = 0.1 / (1 + step // 5)
        optimizer.set_rate(expected.param_groups[0]["lr"])
        for parameters in (ours, theirs):
            set_gradients(parameters, seed + step, gaps=gaps)
        optimizer.step()
        expected.step()
        assert_same_bits(ours, theirs)


def momentum(parameters: Parameters) -> Optimizer:
    return SGD(parameters, 0.1, 0.9, 0.01)


def adam(parameters: Parameters) -> Optimizer:
    return Adam(parameters, 0.1)


KINDS = pytest.mark.parametrize("make", [momentum, adam])


def run(make: Make, interrupted: bool) -> list[nn.Parameter]:
    parameters = new_parameters(0)
    optimizer = make(parameters)
    for step in range(6):
        if interrupted and step == 3:
            saved = {name: tensor.clone() for name, tensor in optimizer.state_tensors().items()}
            optimizer = make(parameters)
            optimizer.load_state_tensors(saved)
        set_gradients(parameters, step)
        optimizer.step()
    return parameters


@KINDS
def test_the_state_is_restored(make: Make) -> None:
    assert_same_bits(run(make, True), run(make, False))


@KINDS
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: {**state, "9/momentum": torch.zeros(1)}, "unknown content"),
        (lambda state: {**state, "a": torch.zeros(1)}, "unknown content"),
        (lambda state: {**state, "0/speed": torch.zeros(7, 5)}, r"unknown content \(speed\)"),
        (lambda state: {name: torch.zeros(2) for name in state}, "of the wrong size"),
    ],
)
def test_a_state_that_does_not_fit_is_a_run_error(
    make: Make, change: Callable[[dict[str, Tensor]], dict[str, Tensor]], words: str
) -> None:
    parameters = new_parameters(0)
    optimizer = make(parameters)
    set_gradients(parameters, 0)
    optimizer.step()
    with pytest.raises(RunError, match=words):
        make(parameters).load_state_tensors(change(optimizer.state_tensors()))


def test_a_state_of_which_a_part_is_missing_is_a_run_error() -> None:
    parameters = new_parameters(0)
    with pytest.raises(RunError, match="square is missing"):
        Adam(parameters, 0.1).load_state_tensors({"1/mean": torch.zeros(130)})


@KINDS
def test_rows_that_are_reset_have_no_past(make: Make) -> None:
    parameters = new_parameters(0)
    optimizer = make(parameters)
    set_gradients(parameters, 0)
    optimizer.step()
    rows = torch.tensor([3, 100])
    optimizer.reset(parameters[1], rows)
    for name, tensor in optimizer.state_tensors().items():
        if name.startswith("1/") and tensor.dim():
            assert not tensor[rows].any()
            assert int((tensor != 0).sum()) == 128
        elif tensor.dim():
            assert tensor.all()


def test_gradients_are_removed() -> None:
    parameters = new_parameters(0)
    set_gradients(parameters, 0)
    SGD(parameters, 0.1).zero_grad()
    assert all(parameter.grad is None for parameter in parameters)


def test_no_slow_import() -> None:
    """torch._dynamo takes longer to import than a small network to train."""
    program = """
import sys, torch
from spacenet.utils.optimizers import Adam, SGD
for kind in (SGD, Adam):
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    optimizer = kind([parameter], 0.1, weight_decay=0.1)
    optimizer.step()
    optimizer.reset(parameter, torch.tensor([0]))
    assert parameter[0] != 1
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@KINDS
def test_the_state_belongs_to_names_in_whatever_order_parameters_are_built(make: Make) -> None:
    """A resumed method may build its parameters in the order of a file. By position, each would get another's state."""
    parameters = dict(zip(("square", "layer/1", "maps", "layer", "one"), new_parameters(0), strict=True))
    optimizer = make(parameters)
    set_gradients(list(parameters.values()), 0)
    optimizer.step()
    saved = dict(sorted(optimizer.state_tensors().items()))
    again = make(dict(sorted(parameters.items())))
    again.load_state_tensors(saved)
    assert again.state.keys() == optimizer.state.keys()
    for parameter, history in optimizer.state.items():
        assert all(torch.equal(tensor, again.state[parameter][kind]) for kind, tensor in history.items())


@KINDS
def test_a_state_by_position_is_not_loaded_into_named_parameters(make: Make) -> None:
    parameters = new_parameters(0)
    optimizer = make(parameters)
    set_gradients(parameters, 0)
    optimizer.step()
    with pytest.raises(RunError, match="has to start again"):
        make({f"p{number}": p for number, p in enumerate(parameters)}).load_state_tensors(optimizer.state_tensors())
