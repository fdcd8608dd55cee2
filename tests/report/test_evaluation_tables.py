from dataclasses import replace

import numpy as np

from spacenet.report.evaluation_tables import confusions_table, evaluation_tables, mistakes_table, unknown_text
from tests.report.made_up import evaluation, made_up_mistakes


def test_all_tables_of_a_small_evaluation() -> None:
    found = evaluation()
    tables = {table.title: table for table in evaluation_tables(found)}
    assert list(tables) == [
        "Accuracy on each task",
        "Old against new classes",
        "Precision and recall of each class",
        "Samples by true class (row) and predicted class (column)",
        "Calibration",
        "The most confident mistakes",
        "Evaluation",
    ]
    assert tables["Accuracy on each task"].rows[1] == ["2", "2, 3", "52", "81.0", "95.0"]
    # 4 old classes with 26 samples each: 21 right, 3 as another old one, 2 as a new one.
    assert tables["Old against new classes"].rows[0] == ["old classes", "104", "80.8", "12", "8"]
    assert tables["Precision and recall of each class"].rows[5] == ["5", "3", "80.8", "80.8", "80.8", "26"]
    assert tables["Evaluation"].rows[0] == ["accuracy", "80.77 %", "of 156 samples"]
    assert tables["Evaluation"].notes == ["7 samples with unknown labels left out: <b>cat (7)."]
    assert unknown_text(replace(found, unknown={})) == ""


def test_of_many_classes_the_worst_are_listed() -> None:
    tables = {table.title: table for table in evaluation_tables(evaluation(tasks=20))}
    assert len(tables["The 15 worst of 40 classes, by F1"].rows) == 15
    assert len(tables["The most frequent confusions"].rows) == 10


def test_the_most_frequent_confusions_come_first() -> None:
    counts = np.array([[5, 3, 0], [9, 1, 0], [0, 1, 7]])
    assert confusions_table(counts, ["a", "b", "c"]).rows == [
        ["b", "a", "9", "90.0"],
        ["a", "b", "3", "37.5"],
        ["c", "b", "1", "12.5"],
    ]


def test_mistakes_have_values_unless_they_are_images() -> None:
    assert len(mistakes_table(made_up_mistakes((3,))).columns) == 7
    images = mistakes_table(made_up_mistakes((4, 4)), 5)
    assert (len(images.columns), len(images.rows)) == (4, 5)
