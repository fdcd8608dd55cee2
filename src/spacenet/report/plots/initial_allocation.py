"""How a task's connections lay before it trained: allocation follows from the seed, so it can be done once more."""

import torch

from spacenet.data.stream import Samples, Task
from spacenet.report.run_data import RunFacts
from spacenet.space.cut import Units
from spacenet.space.ledger import FREE, Connections, Ledger


def laid_out(facts: RunFacts, task: int) -> tuple[Units, dict[str, Connections]] | None:
    """The units that were selected for a task and its connections as they were laid at first; None without a space."""
    if facts.model is None:
        return None
    model, first = facts.model, sum(map(len, facts.model.tasks[:task]))
    method = model.recipe.build(model.method.blueprint)
    method.ledger = ledger_before(facts, task)
    labels = model.tasks[task]
    method.plan.carry_out(method.ledger, task)
    return method.allocate(Task(task, labels, range(first, first + len(labels)), _NoData()))


def ledger_before(facts: RunFacts, task: int) -> Ledger:
    """The ledger without all that this task and later ones did: connections, reservations and units added."""
    assert facts.model is not None
    now, sizes = facts.model.method.ledger, {p.name: p.size for p in facts.model.method.blueprint.layers}
    if task:
        sizes |= {layer["name"]: layer["units"] for layer in facts.metrics["tasks"][task - 1]["layers"]}
    then = Ledger(now.blueprint)
    for layer in now.blueprint.layers:
        state = now.state[layer.name][: sizes[layer.name]]
        then.state[layer.name] = torch.where(state < task, state, FREE)
        then.units |= {key: now.units[key][: sizes[layer.name]] for key in layer.keys()}
    then.connections = {name: held[held.owner < task] for name, held in now.connections.items()}
    return then


class _NoData:
    """Allocation asks for none."""

    def samples(self, task: Task, *, train: bool) -> Samples:
        raise NotImplementedError
