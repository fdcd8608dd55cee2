"""How close training comes to what its arithmetic must cost: `python -m benchmarks.floor`, from the repository's root.

Split MNIST on one thread, task by task in turns; for each task the shortest time counts.

naive     against a plain PyTorch loop over the same 784-400-400-n network
spacenet  against a loop without autograd over a dense 784-80-80-2 network, the size of a task's workspace

Like training, the loops report the mean loss and the accuracy of every epoch.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.command import load, measured, read_options
from spacenet.config.presets import preset_config
from spacenet.data.streams import build_stream
from spacenet.data.task import Task
from spacenet.methods import get_method
from spacenet.methods.shared.sparse_settings import SparseSettings
from spacenet.nets import build_net
from spacenet.report.table import Table
from spacenet.training.loop import learn_task

STREAM = "split-mnist"
LIMITS = {"naive": 1.15, "spacenet": 1.4}
"""The ratios that training should stay below."""


@dataclass(frozen=True)
class Options:
    """Training against loops written by hand."""

    repeats: int = 7
    """How often each task is learned in each form."""
    data_dir: Path | None = None
    """Where MNIST is (default: the environment variable SPACENET_DATA)."""
    json: Path | None = None
    """Also write the raw figures to this file."""


@dataclass(frozen=True)
class Shape:
    """What a loop trains, and how."""

    hidden: int
    outputs: int
    epochs: int
    batch_size: int
    learning_rate: float


Loop = Callable[[Tensor, Tensor, Shape], list[float]]


def glorot(targets: int, sources: int, rng: torch.Generator) -> Tensor:
    bound = (6 / (sources + targets)) ** 0.5
    return torch.empty(targets, sources).uniform_(-bound, bound, generator=rng)


class Figures:
    """Mean loss and accuracy of an epoch."""

    def __init__(self) -> None:
        self.loss, self.correct = torch.zeros(()), torch.zeros(())

    def add(self, loss: Tensor, output: Tensor, target: Tensor) -> None:
        self.loss += loss * len(target)
        self.correct += (output.argmax(1) == target).sum()


def train_plainly(x: Tensor, y: Tensor, shape: Shape) -> list[float]:
    """The usual loop over tensors in memory, with autograd and torch's SGD; returns each epoch's figures."""
    rng = torch.Generator().manual_seed(0)
    sizes = [x.shape[1], shape.hidden, shape.hidden, shape.outputs]
    weights = [nn.Parameter(glorot(b, a, rng)) for a, b in pairwise(sizes)]
    biases = [nn.Parameter(torch.zeros(size)) for size in sizes[1:]]
    optimizer = torch.optim.SGD([*weights, *biases], shape.learning_rate)
    reported: list[float] = []
    for _ in range(shape.epochs):
        figures = Figures()
        for rows in torch.randperm(len(x), generator=rng).split(shape.batch_size):
            h = x.index_select(0, rows)
            for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
                h = torch.relu(F.linear(h, weight, bias))
            output, target = F.linear(h, weights[-1], biases[-1]), y.index_select(0, rows)
            loss = F.cross_entropy(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            figures.add(loss.detach(), output, target)
        reported += [float(figures.loss) / len(x), float(figures.correct) / len(x)]
    return reported


def train_by_hand(x: Tensor, y: Tensor, shape: Shape) -> list[float]:
    """Forward pass, gradients and updates of a dense network of two hidden layers, without autograd."""
    rng, rate = torch.Generator().manual_seed(0), shape.learning_rate
    w1, w2 = glorot(shape.hidden, x.shape[1], rng), glorot(shape.hidden, shape.hidden, rng)
    w3 = glorot(shape.outputs, shape.hidden, rng)
    b1, b2, b3 = torch.zeros(shape.hidden), torch.zeros(shape.hidden), torch.zeros(shape.outputs)
    reported: list[float] = []
    for _ in range(shape.epochs):
        figures = Figures()
        for rows in torch.randperm(len(x), generator=rng).split(shape.batch_size):
            inputs, target = x.index_select(0, rows), y.index_select(0, rows)
            h1 = torch.addmm(b1, inputs, w1.t()).relu_()
            h2 = torch.addmm(b2, h1, w2.t()).relu_()
            output = torch.addmm(b3, h2, w3.t())
            logarithms = output.log_softmax(1)
            figures.add(F.nll_loss(logarithms, target), output, target)
            d3 = logarithms.exp_()
            d3[torch.arange(len(rows)), target] -= 1
            d3 /= len(rows)
            d2 = (d3 @ w3).mul_(h2 > 0)
            d1 = (d2 @ w2).mul_(h1 > 0)
            for weight, bias, gradient, h in ((w3, b3, d3, h2), (w2, b2, d2, h1), (w1, b1, d1, inputs)):
                weight.addmm_(gradient.t(), h, alpha=-rate)
                bias.sub_(gradient.sum(0), alpha=rate)
        reported += [float(figures.loss) / len(x), float(figures.correct) / len(x)]
    return reported


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Measure both ratios and print them with the times."""
    torch.set_num_threads(1)
    figures: dict[str, Any] = {"torch": torch.__version__, "load_at_the_start": load(), "repeats": options.repeats}
    for method, loop in (("naive", train_plainly), ("spacenet", train_by_hand)):
        figures[method] = compare(method, loop, options)
    rows = []
    for method, limit in LIMITS.items():
        ours, floor = figures[method]["seconds"], figures[method]["floor_seconds"]
        rows.append([method, f"{ours:.2f}", f"{floor:.2f}", f"{ours / floor:.2f}", f"{limit}"])
    columns = ["method", "training, s", "loop by hand, s", "ratio", "should stay below"]
    console.print(Table("Split MNIST, one thread, 5 tasks of 4 epochs", columns, rows))
    return figures


def compare(method: str, loop: Loop, options: Options) -> dict[str, float]:
    """Seconds of learning all tasks with a method and with a loop: the sums of the shortest times of each task."""
    config = preset_config(STREAM, method)
    stream = build_stream(replace(config.stream, data_dir=options.data_dir))
    model = config.model
    ours, floor = ([float("inf")] * len(stream) for _ in range(2))
    for _ in range(options.repeats):
        learner = get_method(method)(build_net(model.net, stream.input_shape), model.method_settings, model.seed)
        for task in stream:
            settings = model.method_settings
            hidden = settings.selected[0] if isinstance(settings, SparseSettings) else model.net.hidden[0]
            outputs = task.classes.stop if method == "naive" else len(task.classes)
            training = model.training
            epochs = training.epochs_of(task.index, len(task.train))
            shape = Shape(hidden, outputs, epochs, training.batch_size, training.initial_rate)
            x, y = task.train.x.flatten(1), task.train.y - (task.classes.stop - outputs)
            floor[task.index] = min(floor[task.index], _seconds(partial(loop, x, y, shape)))
            ours[task.index] = min(ours[task.index], _seconds(partial(learn, learner, task, training)))
    return {"seconds": sum(ours), "floor_seconds": sum(floor), "ratio": sum(ours) / sum(floor)}


def learn(learner: Any, task: Task, training: Any) -> None:
    learn_task(learner, task, training, on_batch=lambda done, total: None, on_epoch=lambda epoch, optimizer: None)


def _seconds(call: Callable[[], object]) -> float:
    """Processor time, so that other processes disturb it less."""
    began = time.process_time()
    call()
    return time.process_time() - began


def main(arguments: list[str] | None = None) -> int:
    return measured("floor", read_options(Options, "floor", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
