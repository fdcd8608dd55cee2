from pathlib import Path
from typing import Any

from spacenet.cli.folders import default_folder


def test_the_folder_follows_from_what_is_compared() -> None:
    plain = default_folder("comparisons", "split-digits", {"data_dir": Path("there"), "net": None, "own": {}})
    assert plain == Path("comparisons/split-digits")
    cut = default_folder("comparisons", "split-digits", {"classes_per_task": 5, "shuffle_classes": 0})
    assert cut == Path("comparisons/split-digits-5-per-task-shuffled-0")
    cut = default_folder("comparisons", "split-digits", {"classes_per_task": 2, "first_classes": 4})
    assert cut == Path("comparisons/split-digits-4-first-2-per-task")
    others: list[dict[str, Any]] = [
        {"tasks": "0,1/2"},
        {"tasks": "0,1/3"},
        {"epochs": 2},
        {"own": {"ewc": {"epochs": 2}}},
    ]
    found = [default_folder("comparisons", "split-digits", each).name for each in others]
    assert len({plain.name, *found}) == 5
    assert all(name.startswith("split-digits-") for name in found)
    assert found == [default_folder("comparisons", "split-digits", each).name for each in others]


def test_data_of_ones_own_is_named_after_its_file() -> None:
    one, other = (
        default_folder("comparisons", "custom", {"npz": Path(place)}).name for place in ("/a/my data.npz", "/b/x.npz")
    )
    assert one.startswith("custom-my-data-")
    assert other.startswith("custom-x-")
