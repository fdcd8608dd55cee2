from pathlib import Path
from typing import Any

import pytest
from spacenet.experiments.batch import Outcome

from spacenet.errors import RunError, SettingsError
from spacenet.experiments.comparison import chosen_methods, configs, prepare, rows, settings_file
from spacenet.methods import METHODS, method_names


def metrics(method: str, **over: Any) -> dict[str, Any]:
    plain = {"acc": 50.0, "bwt": -10.0, "parameters": 7, "extra_bytes": 0, "images_kept": 0, "units_added": 0}
    return {"method": method, "seconds": 2.0, "task_incremental": {"acc": 90.0}, **plain, **over}


def test_methods_are_named_or_all() -> None:
    assert chosen_methods(" naive, spacenet,naive") == ["naive", "spacenet"]
    assert chosen_methods("all") == method_names()
    assert next(iter(METHODS)) == "naive"
    with pytest.raises(SettingsError, match="there is no 'nothing'"):
        chosen_methods("naive,nothing")
    with pytest.raises(SettingsError, match="none are named"):
        chosen_methods(",")


def test_a_file_holds_settings_for_all_and_for_one(tmp_path: Path) -> None:
    file = tmp_path / "all.toml"
    file.write_text("[training]\nepochs = 3\n[methods.spacenet.options]\nsilent_outputs = 1\n")
    made = configs("split-digits", ["naive", "spacenet"], settings_file(file), {"data": {"validation": 0.2}})
    assert [config.training.epochs for config in made.values()] == [3, 3]
    assert vars(made["spacenet"].options)["phantom_classes"] == 1
    assert made["naive"].data.validation == 0.2
    file.write_text("[options]\nx = 1\n")
    with pytest.raises(SettingsError, match=r"write \[methods.NAME.options\]"):
        settings_file(file)


def test_runs_that_are_there_are_taken_and_others_not_mixed_in(tmp_path: Path) -> None:
    one = configs("split-digits", ["naive"], {}, {})
    first, _ = prepare(one, range(2), tmp_path)
    assert list(first.values()) == ["naive seed 0", "naive seed 1"]
    assert prepare(one, range(3), tmp_path)[0].items() > first.items()
    moved = configs("split-digits", ["naive"], {}, {"data": {"data_dir": str(tmp_path)}})
    assert prepare(moved, range(2), tmp_path)[0] == first
    other = configs("split-digits", ["naive"], {}, {"training": {"epochs": 1}})
    with pytest.raises(RunError, match=r"other settings \(training.epochs\)"):
        prepare(other, range(1), tmp_path)


def test_a_method_that_cannot_take_part_is_left_out_with_its_reason(tmp_path: Path) -> None:
    settings = {"methods": {"spacenet": {"options": {"selected": [999]}}}}
    labels, refused = prepare(configs("split-digits", ["naive", "spacenet"], settings, {}), [0], tmp_path)
    assert list(labels.values()) == ["naive seed 0"]
    assert len(refused) == 1
    assert refused[0].startswith("spacenet: selected: 999 units")
    assert not (tmp_path / "spacenet").exists()


def test_rows_are_means_over_seeds_in_the_methods_order() -> None:
    runs = [metrics("spacenet", acc=70.0), metrics("spacenet", acc=74.0), metrics("naive", seconds=4.0)]
    outcomes = [Outcome(Path(str(number)), run) for number, run in enumerate(runs)]
    outcomes.append(Outcome(Path("failed"), metrics("joint"), "stopped in the middle", 1))
    naive, spacenet = rows(outcomes)
    assert (naive.method, naive.times, naive.seeds) == ("naive", 1.0, 1)
    assert (spacenet.acc.mean, spacenet.times, spacenet.strategy) == (72.0, 0.5, "Architectural")
    assert spacenet.acc.sd == pytest.approx(2.8284, abs=1e-3)
    assert rows(outcomes[:2])[0].times is None
