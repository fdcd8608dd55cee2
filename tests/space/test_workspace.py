from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from spacenet.space.ledger import Ledger
from spacenet.space.workspace import Workspace
from spacenet.utils.optimizers import SGD
from tests.space.support import Case, cases, dense_forward, finish, learned, open_task, train


@given(cases, st.booleans(), st.booleans())
def test_it_computes_what_the_plain_dense_network_computes(case: Case, all_outputs: bool, masked_dense: bool) -> None:
    ledger = learned(case)
    workspace = open_task(case, ledger, case.tasks, all_outputs, masked_dense)
    train(case, workspace, case.tasks)
    x = torch.randn(16, case.inputs, generator=case.rng(99))
    expected = dense_forward(ledger, x, workspace, case.tasks)[:, workspace.units["output"]]
    got = workspace(x, workspace.frozen_inputs.precompute(x))
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)


@given(cases, st.booleans())
def test_compact_and_whole_train_alike(case: Case, all_outputs: bool) -> None:
    results = []
    for masked_dense in (False, True):
        ledger = learned(case)
        workspace = open_task(case, ledger, case.tasks, all_outputs, masked_dense)
        train(case, workspace, case.tasks, steps=2, rewire=False)
        results.append((workspace.connections(case.tasks), workspace.importance("hidden1")))
    (compact, importance), (dense, dense_importance) = results
    for name in compact:
        assert torch.equal(compact[name].source, dense[name].source)
        assert torch.equal(compact[name].target, dense[name].target)
        torch.testing.assert_close(compact[name].value, dense[name].value, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(importance, dense_importance, atol=1e-5, rtol=1e-3)


@given(cases)
def test_a_compact_workspace_holds_no_unit_it_does_not_need(case: Case) -> None:
    ledger = learned(case)
    workspace = open_task(case, ledger, case.tasks)
    first = ledger.blueprint.hidden[0].name
    # Units of the first hidden layer see only the inputs: unless selected, they are constants and stay outside.
    assert torch.equal(workspace.units[first], workspace.selection[first])
    last = ledger.blueprint.hidden[-1].name
    # With the old classifiers set aside, only selected units of the last hidden layer reach an output.
    assert torch.equal(workspace.units[last], workspace.selection[last])


@given(cases)
def test_a_frozen_weight_never_changes_by_a_bit(case: Case) -> None:
    ledger = learned(case)
    before = {name: tensor.clone() for name, tensor in ledger.tensors().items()}
    workspace = open_task(case, ledger, case.tasks)
    train(case, workspace, case.tasks)
    finish(case, workspace, case.tasks)
    for link in ledger.blueprint.links:
        count = len(before[f"links/{link.name}/owner"])
        for field in ("source", "target", "owner", "value"):
            after = ledger.tensors()[f"links/{link.name}/{field}"]
            assert torch.equal(after[:count], before[f"links/{link.name}/{field}"])
    for layer in ledger.blueprint.layers[1:]:
        kept = torch.ones(ledger.size(layer.name), dtype=torch.bool)
        kept[workspace.selection[layer.name]] = False
        kept = kept[: len(before[f"units/{layer.name}.bias"])]
        after = ledger.units[f"{layer.name}.bias"][: len(kept)]
        assert torch.equal(after[kept], before[f"units/{layer.name}.bias"][kept])


@given(cases)
def test_rewiring_keeps_the_number_and_grows_only_at_open_positions_between_selected_units(case: Case) -> None:
    ledger = learned(case)
    workspace = open_task(case, ledger, case.tasks)
    train(case, workspace, case.tasks, rewire=False)
    for opened in workspace.links.values():
        opened.importance += torch.rand(len(opened.importance), generator=case.rng(3))  # dead units have none
    before = workspace.connections(case.tasks)
    moved = workspace.rewire(0.5)
    after = workspace.connections(case.tasks)
    assert "output" not in {workspace.links[name].link.target for name in moved}
    for link in ledger.blueprint.links:
        old, new = before[link.name], after[link.name]
        assert len(old) == len(new) == case.budget().connections[link.name]
        pairs = list(zip(new.source.tolist(), new.target.tolist(), strict=True))
        owned = ledger.connections[link.name]
        assert len(set(pairs)) == len(pairs)
        assert not set(pairs) & set(zip(owned.source.tolist(), owned.target.tolist(), strict=True))
        assert set(new.source.tolist()) <= set(workspace.selection[link.source].tolist())
        assert set(new.target.tolist()) <= set(workspace.selection[link.target].tolist())
        if link.name in moved:
            assert len(moved[link.name]) == len(old) // 2
            assert not new.value[moved[link.name]].any()
            assert not workspace.links[link.name].importance[moved[link.name]].any()


def test_importance_is_the_sum_of_gradient_times_actual_change() -> None:
    case = Case(inputs=30, tasks=1)
    workspace = open_task(case, learned(case), 1)
    optimizer = SGD(workspace.named_parameters(), 0.1, momentum=0.9, weight_decay=0.01)
    (own,) = workspace.named_parameters().values()
    expected = torch.zeros_like(own)
    for step in range(3):
        x = torch.randn(8, case.inputs, generator=case.rng(step))
        output = workspace(x, workspace.frozen_inputs.precompute(x))
        optimizer.zero_grad()
        workspace.backward(F.cross_entropy(output, torch.zeros(8, dtype=torch.long)))
        old = own.detach().clone()
        workspace.step(optimizer)
        assert own.grad is not None
        expected += (own.grad * (own.detach() - old)).abs()
    found = torch.cat([opened.importance for opened in workspace.links.values()])
    assert torch.equal(found, expected[: len(found)])
    assert found.any()


@given(cases, st.booleans())
def test_the_blueprints_derivative_gives_the_bits_of_autograd(case: Case, all_outputs: bool) -> None:
    found = []
    for derivative in (True, False):
        ledger = learned(case)
        if not derivative:
            ledger.blueprint = replace(ledger.blueprint, derivative=None)
        workspace = open_task(case, ledger, case.tasks, all_outputs)
        train(case, workspace, case.tasks)
        x = torch.randn(9, case.inputs, generator=case.rng(4))
        output = workspace(x, workspace.frozen_inputs.precompute(x))
        (own,) = workspace.named_parameters().values()
        own.grad = None
        second = workspace(-x, workspace.frozen_inputs.precompute(-x))
        workspace.backward(output.square().sum() + second.sum())
        found.append([output.detach(), own.detach(), own.grad])
    for ours, autograd in zip(*found, strict=True):
        assert ours is not None
        assert autograd is not None
        assert torch.equal(ours, autograd)


def test_a_moved_connection_has_no_momentum() -> None:
    case = Case(tasks=1)
    workspace = open_task(case, learned(case), 1)
    optimizer = SGD(workspace.named_parameters(), 0.1, momentum=0.9)
    x = torch.randn(8, case.inputs, generator=case.rng(3))
    output = workspace(x, workspace.frozen_inputs.precompute(x))
    workspace.backward(F.cross_entropy(output, torch.zeros(8, dtype=torch.long)))
    workspace.step(optimizer)
    (momentum,) = optimizer.state_tensors().values()
    momentum.fill_(1.0)
    moved = workspace.rewire(0.5, optimizer)
    start = 0
    for name, opened in workspace.links.items():
        part = momentum[start : start + len(opened.params)]
        kept = torch.ones(len(part), dtype=torch.bool)
        if name in moved:
            kept[moved[name]] = False
        assert torch.equal(part != 0, kept)
        start += len(part)
    assert momentum[start:].all()


def test_a_units_importance_sums_over_ingoing_connections_and_an_inputs_over_outgoing_ones() -> None:
    workspace = open_task(Case(tasks=0), learned(Case(tasks=0)), 0)
    training = workspace.links["input-hidden1"]
    training.importance.copy_(torch.arange(1.0, len(training.params) + 1))
    target, source = training.ends()
    ingoing = [float(training.importance[target == place].sum()) for place in range(4)]
    outgoing = [float(training.importance[source == place].sum()) for place in range(6)]
    assert workspace.importance("hidden1").tolist() == ingoing
    assert workspace.importance("input").tolist() == outgoing


@given(cases)
def test_reopened_from_its_tensors_it_is_the_same_to_the_bit(case: Case) -> None:
    ledger = learned(case)
    workspace = open_task(case, ledger, case.tasks)
    train(case, workspace, case.tasks)
    saved = {name: tensor.clone() for name, tensor in workspace.state(case.tasks).items()}
    copy = Ledger(ledger.blueprint)
    copy.load(ledger.tensors())
    outputs = torch.arange(2 * case.tasks, 2 * case.tasks + 2)
    again = Workspace.reopen(copy, saved, outputs=outputs, masked_dense=False)
    for one in (workspace, again):
        train(case, one, case.tasks + 50)
        finish(case, one, case.tasks)
    for name, tensor in ledger.tensors().items():
        assert torch.equal(tensor, copy.tensors()[name])
