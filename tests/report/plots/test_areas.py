from spacenet.report.plots.areas import BRIGHT, DARK, half_of, letters_on, listed, some_of


def test_letters_stand_out_from_the_ground() -> None:
    assert letters_on("#000080") == BRIGHT
    assert letters_on("#ffee00") == DARK


def test_half_of_the_connections_lie_in_the_fullest_units() -> None:
    assert half_of([1, 1, 1, 1]) == 2
    assert half_of([1, 9, 1, 1]) == 1
    assert half_of([0, 0]) == 0


def test_of_many_numbers_the_first_and_the_last_are_named() -> None:
    assert some_of(3, 8) == [0, 1, 2]
    assert some_of(1, 8) == [0]
    assert len(some_of(100, 8)) == 8
    assert some_of(100, 8)[:: len(some_of(100, 8)) - 1] == [0, 99]
    assert listed(["1", "2"]) == "1, 2"
    assert listed([str(number) for number in range(100)]).startswith("0, 1, 2, 3, 4, 5, …, 94")
