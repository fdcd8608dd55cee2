from spacenet.report.plots.drawing import BRIGHT, DARK, evenly_chosen, round_ticks, text_color, units_with_half


def test_text_stands_out_from_the_background() -> None:
    assert text_color("#000080") == BRIGHT
    assert text_color("#ffee00") == DARK


def test_half_of_the_connections_lie_in_the_fullest_units() -> None:
    assert units_with_half([1, 1, 1, 1]) == 2
    assert units_with_half([1, 9, 1, 1]) == 1
    assert units_with_half([0, 0]) == 0


def test_of_many_numbers_some_are_chosen_with_the_first_and_the_last() -> None:
    assert evenly_chosen(3, 8) == [0, 1, 2]
    assert evenly_chosen(1, 8) == [0]
    assert len(evenly_chosen(100, 8)) == 8
    assert evenly_chosen(100, 8)[:: len(evenly_chosen(100, 8)) - 1] == [0, 99]


def test_ticks_of_a_logarithmic_axis_are_round() -> None:
    assert round_ticks(0.13, 6.0) == [0.2, 0.5, 1.0, 2.0, 5.0]
    assert round_ticks(8.0, 1200.0) == [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
