import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacenet.errors import DataError, SettingsError
from spacenet.model.labels import Label, Tasks, distinct, find_class, merge, read_class, read_new_label, rename

CLASSES = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True).map(tuple), min_size=1, max_size=4)


def labels_of(tasks: Tasks) -> list[Label]:
    return [label for task in tasks for label in task]


@given(CLASSES, st.data())
def test_another_name_and_back_again_is_nothing(tasks: Tasks, data: st.DataObject) -> None:
    old = data.draw(st.sampled_from(labels_of(tasks)))
    renamed = rename(tasks, old, "other")
    assert [len(task) for task in renamed] == [len(task) for task in tasks]
    assert old not in labels_of(renamed)
    assert rename(renamed, "other", old) == tasks


@given(CLASSES, st.data())
def test_merged_classes_are_one_and_the_others_are_as_they_were(tasks: Tasks, data: st.DataObject) -> None:
    classes = distinct(labels_of(tasks))
    chosen = data.draw(st.lists(st.sampled_from(classes), min_size=1, max_size=3, unique=True))
    into = data.draw(st.sampled_from([*classes, "new"]))
    together = {*chosen, into} & {*classes}
    if len(together) < 2:
        with pytest.raises(SettingsError, match="two classes are needed"):
            merge(tasks, chosen, into)
        return
    expected = [into if label in together else label for label in labels_of(tasks)]
    assert labels_of(merge(tasks, chosen, into)) == expected


def test_labels_of_different_types_are_different_classes() -> None:
    assert rename([(1, 2.5)], 1, True) == [(True, 2.5)]
    assert distinct([1, True, 1.0, 1]) == [1, True, 1.0]
    with pytest.raises(DataError, match="of the type str, and the model knows int labels"):
        rename([(1, 2)], "1", "one")
    with pytest.raises(DataError, match="of the type str, and the model knows int labels"):
        rename([(1, 2)], 2, "1")
    with pytest.raises(DataError, match="of the type str, and the model knows int labels"):
        merge([(1, 2), (3,)], [1, 2], "3")


def test_mistakes_say_what_to_do() -> None:
    with pytest.raises(SettingsError, match="unknown class 'dgo', did you mean 'dog'"):
        rename([("cat", "dog")], "dgo", "wolf")
    with pytest.raises(SettingsError, match="there is a class 'dog' already") as info:
        rename([("cat", "dog")], "cat", "dog")
    assert "spacenet edit MODEL merge cat --into dog" in info.value.for_cli()
    assert "merge(['cat'], into='dog')" in str(info.value)
    with pytest.raises(SettingsError, match=r"rename\(old, new\)"):
        merge([("cat", "dog")], ["cat"], "wolf")
    with pytest.raises(DataError):
        rename([("cat", "dog")], "cat", "\ud800")
    with pytest.raises(DataError):
        rename([(1.5, 2.5)], 1.5, float("nan"))


def test_texts_are_read_as_labels() -> None:
    assert [read_class(text, [1, 2.0, True, "x"]) for text in ("1", "2.0", "True", "x")] == [1, 2.0, True, "x"]
    assert find_class(3, [3]) == 3
    with pytest.raises(SettingsError, match="unknown class '7'"):
        read_class("7", [1, 2])
    pairs: list[tuple[str, Label]] = [("7", 1), ("x", 1), ("7", "a"), ("2", 0.5), ("True", False)]
    found = [read_new_label(text, like) for text, like in pairs]
    assert found == [7, "x", "7", 2.0, True]
    assert [type(each) for each in found] == [int, str, str, float, bool]
