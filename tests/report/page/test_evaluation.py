from dataclasses import replace

from spacenet.report.page.evaluation import evaluation_page
from tests.report.made_up import evaluation


def test_a_page_shows_the_whole_evaluation() -> None:
    page = evaluation_page(evaluation(), "model.safetensors", "test.csv")
    assert page.title == "model.safetensors on test.csv"
    assert [section.title for section in page.sections if not section.empty] == [
        *("Tasks", "Precision and recall", "Confusion", "Calibration", "Wrong predictions")
    ]
    assert [plot.name for plot in page.plots] == ["class-scores", "task-confusion", "class-confusion", "calibration"]
    assert [metric.name for metric in page.metrics] == [
        *("Accuracy", "Old classes", "New classes", "Mean confidence", "ECE")
    ]
    assert page.notices == ["7 samples with unknown labels left out: <b>cat (7)."]


def test_tasks_without_new_classes_are_not_numbered_wrongly() -> None:
    found = evaluation()
    again = replace(found, tasks=(*found.tasks, replace(found.tasks[0], number=4)))
    assert "task-confusion" not in [plot.name for plot in evaluation_page(again, "m", "d").plots]
