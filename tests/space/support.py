"""Small networks to test the space with, and a plain dense network that is written without any of its code."""

from dataclasses import dataclass

import torch
from hypothesis import reject
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from spacenet.errors import SpaceFull
from spacenet.nets.mlp import build_mlp
from spacenet.space.allocation import allocate, select
from spacenet.space.budget import ResolvedBudget
from spacenet.space.ledger import Connections, Ledger
from spacenet.space.pack import Units
from spacenet.space.rewiring import reserve
from spacenet.space.workspace import Workspace
from spacenet.utils.optimizers import SGD


@dataclass(frozen=True)
class Case:
    """A network, what each task asks of it, and how many tasks it has learned."""

    inputs: int = 6
    hidden: tuple[int, ...] = (12, 11)
    selected: int = 4
    reserved: int = 2
    tasks: int = 3
    seed: int = 0
    masked_dense: bool = False

    def budget(self) -> ResolvedBudget:
        names = [f"hidden{i + 1}" for i in range(len(self.hidden))]
        widths = [self.inputs, *[self.selected] * len(names), 2]
        links = ["input", *names, "output"]
        connections = {f"{a}-{b}": m * n // 2 for a, b, m, n in zip(links, links[1:], widths, widths[1:], strict=False)}
        return ResolvedBudget(dict.fromkeys(names, self.selected), dict.fromkeys(names, self.reserved), connections)

    def rng(self, *key: int) -> torch.Generator:
        return torch.Generator().manual_seed(hash((self.seed, *key)) % 2**31)


cases = st.builds(
    Case,
    inputs=st.integers(3, 8),
    hidden=st.lists(st.integers(10, 14), min_size=1, max_size=4).map(tuple),
    selected=st.integers(3, 4),
    reserved=st.integers(0, 2),
    tasks=st.integers(0, 3),
    seed=st.integers(0, 1000),
)


def allocate_or_reject(
    case: Case, ledger: Ledger, selection: Units, task: int, rng: torch.Generator
) -> dict[str, Connections]:
    """Cases are passed over in which too many tasks happen to have selected the same units."""
    try:
        return allocate(ledger, case.budget(), selection, task, rng)
    except SpaceFull:
        reject()


def open_task(
    case: Case, ledger: Ledger, task: int, all_outputs: bool = False, masked_dense: bool | None = None
) -> Workspace:
    """Allocate the next task of two classes and open its workspace."""
    rng = case.rng(task)
    selection = select(ledger, case.budget(), torch.arange(2 * task, 2 * task + 2), rng)
    new = allocate_or_reject(case, ledger, selection, task, rng)
    for connections in new.values():
        connections.value.mul_(3)  # with the usual small values most of such a small network would be dead
    ledger.grow("output", 2)
    outputs = torch.arange(0 if all_outputs else 2 * task, 2 * task + 2)
    return Workspace(
        ledger,
        selection,
        new,
        outputs=outputs,
        masked_dense=case.masked_dense if masked_dense is None else masked_dense,
    )


def train(case: Case, workspace: Workspace, task: int, steps: int = 3, rewire: bool = True) -> None:
    """A few steps on random data, with momentum and weight decay so that anything trainable would move."""
    rng = case.rng(task, 1)
    optimizer = SGD(workspace.named_parameters(), 0.1, momentum=0.9, weight_decay=0.1)
    for _ in range(steps):
        x = torch.randn(8, case.inputs, generator=rng)
        output = workspace(x, workspace.frozen_inputs.precompute(x))
        optimizer.zero_grad()
        workspace.backward(F.cross_entropy(output, torch.randint(output.shape[1], (8,), generator=rng)))
        workspace.step(optimizer)
        if rewire:
            workspace.rewire(0.3, optimizer)


def finish(case: Case, workspace: Workspace, task: int) -> None:
    workspace.commit(task)
    names = [p.name for p in workspace.ledger.blueprint.hidden]
    importance = {name: workspace.importance(name) for name in names}
    reserve(workspace.ledger, task, workspace.selection, importance, case.budget().reserved)


def learned(case: Case) -> Ledger:
    """A ledger that has learned the case's tasks."""
    ledger = Ledger(build_mlp((case.inputs,), case.hidden))
    for task in range(case.tasks):
        workspace = open_task(case, ledger, task)
        train(case, workspace, task)
        finish(case, workspace, task)
    return ledger


def dense_forward(ledger: Ledger, x: Tensor, workspace: Workspace | None = None, task: int = 0) -> Tensor:
    """Every unit of the full network, weights entered one by one; a task in training counts too if one is given."""
    new = {} if workspace is None else workspace.connections(task)
    h = x
    for link in ledger.blueprint.links:
        weight = torch.zeros(ledger.size(link.target), ledger.size(link.source))
        for connections in (ledger.connections[link.name], *([new[link.name]] if new else [])):
            for source, target, value in zip(
                connections.source.tolist(), connections.target.tolist(), connections.value.tolist(), strict=True
            ):
                weight[target, source] = value
        bias = ledger.units[f"{link.target}.bias"].clone()
        if workspace is not None:
            bias[workspace.selection[link.target]] = workspace.unit_params[f"{link.target}.bias"]
        h = h @ weight.T + bias
        if link.target != "output":
            h = h.clamp(min=0)
    return h
