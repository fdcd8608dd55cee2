"""How a model file holds what a method keeps that does not divide a network among tasks: its tensors under method/, as
they are, and the samples of earlier tasks under samples/, if it keeps some.

The method says what its state must look like (`Method.check_state`), and must then give back what the file holds and
answer a few inputs.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from spacenet.data.preprocessing import Array, Normalization
from spacenet.data.stream import Samples
from spacenet.errors import SpacenetError
from spacenet.methods.base import PROGRESS, Method
from spacenet.methods.shared.memory import Memory
from spacenet.model.file_parts import Arrays, expect
from spacenet.space.blueprint import Blueprint

if TYPE_CHECKING:
    from spacenet.model.model import Model

STATE, SAMPLES = "method/", "samples/"
TYPES = (np.float16, np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_)
"""Of what methods keep."""
MAX_NEW = 2**24
"""Numbers that a method may create before it is given those of the file; beyond that, as many as the file holds."""
INPUTS = 2
"""Inputs that a method must answer when it is loaded."""
FAILURES: tuple[type[Exception], ...] = (ArithmeticError, AssertionError, AttributeError, LookupError)
FAILURES += (RuntimeError, SpacenetError, TypeError, ValueError)
"""What torch and methods raise where numbers do not go together."""


def encode_state(model: "Model") -> Arrays:
    """What a model's method keeps, as arrays."""
    state = {name: tensor for name, tensor in model.method.state().items() if not name.startswith(PROGRESS)}
    arrays: Arrays = {STATE + name: tensor.numpy() for name, tensor in state.items()}
    if len(model.method.memory) and not model.method.needs_old_data:
        samples = model.method.memory.samples()
        arrays[SAMPLES + "x"] = _pack_inputs(model.fitted_normalization, samples)
        arrays[SAMPLES + "y"] = samples.y.numpy().astype(np.int32)
    return arrays


def _pack_inputs(normalization: Normalization, samples: Samples) -> Array:
    """The inputs of kept samples: as bytes where they come from bytes and give the same bits again."""
    if samples.value_bytes == 1:
        raw = np.rint(normalization.invert(samples.x)).clip(0, 255).astype(np.uint8)
        if torch.equal(normalization(raw), samples.x):
            return raw
    return np.asarray(samples.x.numpy())


def check_new_numbers(kind: type[Method], blueprint: Blueprint, settings: Any, arrays: Arrays) -> None:
    """Raise `ValueError` if a new method of this kind would be far larger than what the file holds."""
    new, held = kind.count_new_numbers(kind.suit_network(blueprint, settings), settings), _count_numbers(arrays)
    expect(new <= max(MAX_NEW, held), f"a network of {new:,} weights, of which it holds {held:,}")


def _count_numbers(arrays: Arrays) -> int:
    return sum(array.size for name, array in arrays.items() if name.startswith(STATE))


def load_state(model: "Model", arrays: Arrays) -> None:
    """Give a model's method what a file holds, once nothing wrong is found with it."""
    method, counts = model.method, [len(task) for task in model.tasks]
    unknown = sorted(name for name in arrays if not name.startswith((STATE, SAMPLES)))
    expect(not unknown, f"unknown content ({', '.join(unknown[:3])})")
    held = {name.removeprefix(STATE): array for name, array in arrays.items() if name.startswith(STATE)}
    expect(all(array.dtype in TYPES for array in held.values()), "what the method keeps is not made of numbers")
    state = {name: torch.from_numpy(array) for name, array in held.items()}
    expect(not any(name.startswith(PROGRESS) for name in state), "unknown content")
    method.set_progress(counts, len(counts))
    memory = _read_samples(model, arrays)
    progress = {
        PROGRESS + "classes": torch.tensor(counts, dtype=torch.int32),
        PROGRESS + "tasks": torch.tensor(len(counts), dtype=torch.int32),
    }
    try:
        method.check_state(state, model.input_shape)
        method.load_state({**state, **progress})
        method.memory = memory
        again, answer = method.state(), method.predict_all(torch.zeros(INPUTS, *model.input_shape))
    except FAILURES as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"what it holds is not what {method.name} keeps ({reason})") from error
    expect(_equal(again, {**state, **progress}), f"what it holds is not what {method.name} keeps")
    expect(answer.shape == (INPUTS, sum(counts)), "it does not have an output for each of its classes")


def _read_samples(model: "Model", arrays: Arrays) -> Memory:
    found = {name: array for name, array in arrays.items() if name.startswith(SAMPLES)}
    if not found:
        return Memory()
    expect(found.keys() == {SAMPLES + "x", SAMPLES + "y"}, "samples without classes, or classes without samples")
    x, y = found[SAMPLES + "x"], found[SAMPLES + "y"]
    expect(not model.method.needs_old_data, f"samples, which a model of {model.method.name} does not hold")
    expect(y.dtype == np.int32 and y.ndim == 1 and len(y) > 0, "the classes of its samples are not numbers")
    expect(bool(((y >= 0) & (y < len(model.outputs))).all()), "a sample of a class that does not exist")
    expect(x.dtype in (np.uint8, np.float32) and x.shape == (len(y), *model.input_shape), "samples of another shape")
    size = 1 if x.dtype == np.uint8 else 4
    inputs = model.fitted_normalization(x) if size == 1 else torch.from_numpy(x)
    expect(bool(inputs.isfinite().all()), "samples that are not made of numbers")
    return Memory.of(Samples(inputs, torch.from_numpy(y).long(), value_bytes=size), model.method.classes)


def _equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        tensor.dtype == other[name].dtype and torch.equal(tensor.cpu(), other[name]) for name, tensor in one.items()
    )
