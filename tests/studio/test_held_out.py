import numpy as np

from spacenet.studio.held_out import choose_held_out


def test_a_part_of_each_class_is_held_out() -> None:
    y = np.array(["a"] * 20 + ["b"] * 5 + ["c"] * 2 + ["d"])
    held = choose_held_out(y)
    assert {label: int(held[y == label].sum()) for label in "abcd"} == {"a": 4, "b": 1, "c": 0, "d": 0}
    assert (held == choose_held_out(y)).all()
