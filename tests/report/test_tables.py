"""The tables hold the numbers of what they are about."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from spacenet.data.datasets import DatasetListing
from spacenet.experiments.comparison import ComparisonData, compare_runs
from spacenet.experiments.sweep import Trial
from spacenet.methods.density.densities import ClassMemory
from spacenet.model.inspection import FileSizes, Inspection, LayerSpace, TaskSpace
from spacenet.report.tables import (
    Table,
    capacity_text,
    comparison_table,
    datasets_table,
    inspection_tables,
    labels_text,
    learned_table,
    matrix_table,
    run_tables,
    seeds_table,
    summary_table,
    sweep_table,
)
from spacenet.utils.text import MeanStd
from tests.report.made_up import metrics, row, run_data

MATRIX = [[99.0, 0.0], [86.75, 64.25]]


def pairs(table: Table) -> dict[str, str]:
    """A table of names and values."""
    return {row[0]: row[1] for row in table.rows}


def test_the_matrix_is_blank_where_tasks_were_still_to_come() -> None:
    table = matrix_table(run_data(metrics(MATRIX)))
    assert table.columns == ["after task", "1 (0, 1)", "2 (2, 3)"]
    assert table.rows == [["1", "99.0", ""], ["2", "86.8", "64.2"]]
    many = matrix_table(run_data(metrics([[50.0]], classes=20)))
    assert many.columns[1] == "1 (0 … 19)"


def test_the_summary_shows_the_metrics() -> None:
    table = summary_table(run_data(metrics(MATRIX, seed=3)))
    shown = {name: value for name, value, _ in table.rows}
    assert table.title == "spacenet on split-mnist, seed 3"
    assert shown["ACC"] == "75.50 %"
    assert shown["BWT"] == "-12.25"
    assert shown["task-IL ACC"] == "99.00 %"
    assert shown["AIA"] == "87.25 %"
    (kept,) = (row for row in summary_table(run_data(metrics(MATRIX, bwt=-0.001))).rows if row[0] == "BWT")
    assert kept[1] == "+0.00"
    assert shown["connections"] == "288"
    assert shown["memory"] == "2.0 KiB"
    assert shown["time"] == "2.5 s"


def test_a_run_has_a_table_of_layers_if_it_has_a_network() -> None:
    assert [table.title for table in run_tables(run_data())][1] == "Layers"
    assert len(run_tables(run_data(metrics(layers=[])))) == 2
    assert run_tables(run_data({"tasks_learned": 0, "method": "spacenet", "seed": 0})) == []


def test_seeds_end_in_mean_and_standard_deviation() -> None:
    runs = [run_data(metrics(MATRIX, seed=1, acc=76.0)), run_data(metrics(MATRIX, seed=0, acc=74.0))]
    table = seeds_table(runs)
    assert [line[0] for line in table.rows] == ["0", "1", "mean ± std"]
    assert [line[1] for line in table.rows] == ["74.00", "76.00", "75.00 ± 1.41"]
    assert len(seeds_table(runs[:1]).rows) == 1


@pytest.mark.parametrize(("relative", "shown"), [(1.5, "1.5 ×"), (None, "2.0 s")])
def test_times_are_multiples_if_the_reference_was_compared(relative: float | None, shown: str) -> None:
    table = comparison_table(_comparison(row(relative_time=relative)))
    assert table.rows[0][-1] == shown
    assert ("as a multiple of naive's." in table.notes[0]) == (relative is not None)


def test_the_last_accuracy_is_shown_where_it_is_not_acc() -> None:
    even, uneven = row(), row(last_acc=MeanStd(55.0))
    assert comparison_table(_comparison(even)).columns[2:4] == ["ACC %", "AIA %"]
    table = comparison_table(_comparison(even, uneven))
    assert table.columns[2:5] == ["ACC %", "last accuracy %", "AIA %"]
    assert [cells[3] for cells in table.rows] == ["50.00", "55.00"]
    assert "last accuracy" in table.to_latex()
    runs = [run_data(metrics()), run_data(metrics(last_acc=11.25, seed=1))]
    assert "last accuracy %" not in seeds_table(runs[:1]).columns
    assert [cells[2] for cells in seeds_table(runs).rows[:2]] == ["80.00", "11.25"]


def test_a_comparison_has_standard_deviations_of_several_seeds() -> None:
    acc = MeanStd(20.0, 1.5)
    several = row("ewc", strategy="Regularization", seeds=3, acc=acc, last_acc=acc, extra_bytes=2048, images=1000)
    table = comparison_table(_comparison(row(), several))
    assert list(table.columns[2:7]) == ["ACC %", "AIA %", "BWT", "forgetting", "task-IL ACC %"]
    assert table.rows[0][:8] == ("naive", "Bound", "50.00", "60.00", "-9.00", "10.00", "90.00", "1")
    assert table.rows[1][1:4] == ("Regularization", "20.00 ± 1.50", "60.00")
    assert table.rows[1][8:10] == ("2.0 KiB", "1,000")
    assert "`loss_over` own leaves them alone" in table.notes[1]
    assert len(comparison_table(_comparison(row())).notes) == 1


def test_a_table_that_was_kept_without_a_metric_does_without_its_column() -> None:
    table = comparison_table(_comparison(row(aia=None, forgetting=None)))
    assert list(table.columns[2:5]) == ["ACC %", "BWT", "task-IL ACC %"]
    assert len(table.rows[0]) == len(table.columns)


def test_all_that_do_not_differ_from_the_best_are_bold() -> None:
    found = {
        "naive": [99.0, 99.1, 98.9],
        "ewc": [50.0, 51.0, 52.0],
        "si": [68.0, 68.3, 67.7],
        "mas": [67.9, 68.4, 67.8],
    }
    rows = [row(name, strategy="Bound" if name == "naive" else "Regularization") for name in found]
    accs = {name: dict(enumerate(values)) for name, values in found.items()}
    table = comparison_table(_comparison(*rows), accs)
    assert table.bold == [(2, 2), (3, 2)]  # not the bound
    assert table.notes[-1].endswith("Here: mas, si.")
    few = {name: {0: seeds[0], 1: seeds[1]} for name, seeds in accs.items()}
    table = comparison_table(_comparison(*rows), few)
    assert not table.bold
    assert table.notes[-1] == "No ACC is marked as the best: differences are tested with at least 3 seeds."


def test_the_runs_of_a_comparison_decide_what_is_bold() -> None:
    runs = [
        run_data(metrics(MATRIX, method=name, seed=seed, acc=acc + seed))
        for name, acc in (("er", 50.0), ("spacenet", 60.0))
        for seed in range(3)
    ]
    assert comparison_table(compare_runs(runs)).bold == [(1, 2)]


def _comparison(*rows: Any) -> ComparisonData:
    return ComparisonData("split-mnist", "test set", {}, rows)


def test_a_sweep_lists_the_best_trials_first() -> None:
    trials = [Trial(0, {"training.epochs": 3}, 50.0), Trial(1, {"training.epochs": 4}, None)]
    trials += [Trial(number, {"training.learning_rate": 0.1}, 51.0 + number) for number in range(2, 14)]
    table = sweep_table(trials)
    assert len(table.rows) == 10
    assert table.rows[0] == ["14", "64.00", "learning_rate 0.1"]


def test_data_sets() -> None:
    listing = DatasetListing("mnist", 10, 60_000, 10_000, (28, 28), where="/data")
    assert datasets_table([listing]).rows == [["mnist", "10", "60,000", "10,000", "28×28", "/data"]]


def test_room_for_more_tasks() -> None:
    assert [capacity_text(left) for left in (None, 0, 1, 7, 100)] == [
        "not counted: this method does not divide a network among tasks",
        "no room for another task like the last one",
        "room for 1 more task like the last one",
        "room for 7 more tasks like the last one",
        "room for at least 100 more tasks like the last one",
    ]
    assert capacity_text(None, needs_old_data=True) == "this method can only continue with all old data"


def test_of_many_labels_the_first_are_listed() -> None:
    assert labels_text([]) == "none"
    assert labels_text([1, "b\n"]) == "1, b\\n"
    assert labels_text(range(25)).endswith("19, … (25 in all)")


def test_what_was_learned() -> None:
    summary = {
        "task": 3,
        "tasks_added": 1,
        "new_classes": ["a", "b"],
        "seen_before": [],
        "connections": 1200,
        "connections_added": 200,
        "tasks_left": 4,
        "seconds": 2.0,
        "accuracy": None,
        "written": "m.safetensors",
    }
    table = learned_table(summary)
    assert table.title == "Task 3 learned"
    assert pairs(table)["connections"] == "1,200 (200 of them new)"
    assert "accuracy" not in pairs(table)
    assert pairs(learned_table({**summary, "accuracy": 91.234}))["accuracy"].startswith("91.23 %")
    assert learned_table({**summary, "tasks_added": 0}).title == "Known classes updated, without a new task"


def inspect(**over: Any) -> Inspection:
    """A made-up model's inspection."""
    layer = LayerSpace("hidden1", 30, unused=5, never_selected=4, shared=15, reserved=10, several=3, connections=120)
    fields = {
        "method": "spacenet",
        "encoder": None,
        "seed": 1,
        "net": "mlp",
        "hidden": (30,),
        "input_shape": (4, 4),
        "normalization": "minus 0, divided by 1",
        "training": {
            "epochs": 1,
            "batch_size": 10,
            "optimizer": "sgd",
            "learning_rate": 0.1,
            "momentum": 0.5,
            "weight_decay": 0.0,
            "augment": "none",
        },
        "classes": ["a", "b"],
        "layers": [layer],
        "tasks": [TaskSpace(1, ("a", "b"), 10, 160)],
        "inputs": 16,
        "inputs_used": 12,
        "outputs": 2,
        "outputs_connections": 40,
        "connections": 160,
        "weights": 160,
        "tasks_left": 2,
        "needs_old_data": False,
        "divides_network": True,
        "samples_kept": 0,
        "class_memory": None,
        "chosen_settings": {},
        "sizes": FileSizes(2048, 12.8, 4096, 1024, 8192),
        "measured": {"acc": 91.5},
        "measured_on": "split-mnist, test set",
        "measured_after": 1,
    }
    return cast(Inspection, SimpleNamespace(**fields | over))


def test_inspection() -> None:
    model, layers, tasks, sizes, measured = inspection_tables(inspect())
    assert pairs(model)["input"] == "4×4, 12 of 16 units used"
    assert pairs(model)["training"] == "1 epoch, batches of 10, sgd, learning rate 0.1, momentum 0.5"
    assert layers.rows[0] == ["hidden1", "30", "5", "4", "15", "10", "3", "120"]
    assert tasks.rows == [["1", "a, b", "10", "160"]]
    assert pairs(sizes)["file"] == "2.0 KiB, 12.8 bytes per connection"
    assert pairs(measured) == {"ACC": "91.50", "when": "after 1 task", "on": "split-mnist, test set"}


def test_inspection_shows_what_a_method_chose() -> None:
    assert "chosen settings" not in pairs(inspection_tables(inspect())[0])
    chosen = {"statistics_weight": 0.15, "own_statistics_weight": 0.0}
    model = inspection_tables(inspect(chosen_settings=chosen))[0]
    assert pairs(model)["chosen settings"] == "statistics_weight 0.15, own_statistics_weight 0"


def test_inspection_of_a_model_with_class_statistics() -> None:
    memory = ClassMemory("edges", dimensions=100, gaussians=1, directions=19, floats=2000, bytes=16_000)
    model, _, _, sizes = inspection_tables(inspect(class_memory=memory, measured={}))
    expected = "1 Gaussian × 19 directions on 100 edges of images: 2,000 values per class, 15.6 KiB in all"
    assert pairs(model)["class statistics"] == expected
    assert "and class statistics" in pairs(sizes)["to predict"]
