import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacenet.report.plots.drawing import place_labels, share_text, share_texts, spread_labels, task_text, tasks_text


@given(st.lists(st.floats(0, 100), min_size=1, max_size=18))
def test_labels_are_spread_in_order_and_within_bounds(places: list[float]) -> None:
    moved = spread_labels(places, 5, 0, 100)
    order = np.argsort(places, kind="stable")
    assert (np.diff(moved[order]) >= 5 - 1e-6).all()
    assert moved.min() >= -1e-6
    assert moved.max() <= 100 + 1e-6


def test_labels_with_room_stay_where_they_are() -> None:
    assert spread_labels([50, 10, 90], 5, 0, 100) == pytest.approx([50, 10, 90])
    assert spread_labels([50, 50], 6, 0, 100) == pytest.approx([47, 53])


def test_labels_of_points_do_not_cover_each_other() -> None:
    points = [(100.0, 100.0), (100.0, 100.0), (103.0, 101.0), (100.0, 99.0), (395.0, 5.0)]
    size, bar = (60.0, 11.0), (60.0, 99.0, 140.0, 101.0)
    corners = place_labels(points, [size] * 5, (400, 200), [bar])
    boxes = [(x, y, x + size[0], y + size[1]) for x, y in corners] + [bar]
    for number, a in enumerate(boxes):
        for b in boxes[:number]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    assert all(x >= 0 and y >= 0 and x + 60 <= 400 and y + 11 <= 200 for x, y in corners)


def test_shares_do_not_pretend() -> None:
    texts = [share_text(value) for value in (0, 0.01, 0.4, 12.4, 99.5, 99.99, 100)]
    assert texts == ["0 %", "under 0.1 %", "0.4 %", "12 %", "99.5 %", "over 99.9 %", "100 %"]


def test_shares_close_together_are_told_apart() -> None:
    assert share_texts([99.3, 98.9, 97.4]) == ["99.3 %", "98.9 %", "97.4 %"]
    assert share_texts([100.0, 99.96, 98.0]) == ["100.0 %", "over 99.9 %", "98.0 %"]
    assert share_texts([99.3, 98.9, 76.1]) == ["99.3 %", "99 %", "76 %"]


def test_tasks_name_their_classes_if_short() -> None:
    assert task_text(0, ["0", "1"]) == "task 1 (0, 1)"
    assert task_text(1, ["an aquarium fish", "a bee"]) == "task 2"
    assert task_text(2, [str(number) for number in range(10)]) == "task 3 (0 … 9)"


def test_of_many_tasks_only_the_extremes_are_told() -> None:
    assert tasks_text(np.array([90.0, 5.25])) == "task 1 90.0 %, task 2 5.2 %"
    assert tasks_text(np.array([50.0, 90.0, 10.0, 60.0]), most=3) == "from task 3 10.0 % to task 2 90.0 %"
