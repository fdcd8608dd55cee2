from pathlib import Path

import pytest

from spacenet.config.presets import preset
from spacenet.config.run import from_mapping, merge, read_toml, to_toml
from spacenet.data.streams import STREAMS
from spacenet.errors import SettingsError
from spacenet.methods import METHODS


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("method", METHODS)
def test_every_preset_survives_its_toml(stream: str, method: str, tmp_path: Path) -> None:
    config = preset(stream, method, {"seed": 3, "data": {"npz": "a b.npz", "tasks": "0/1"}})
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config))
    assert from_mapping(read_toml(path)) == config


def test_later_layers_win() -> None:
    config = preset("split-mnist", "spacenet", {"training": {"epochs": 7}}, {"training": {"batch_size": 9}})
    assert (config.training.epochs, config.training.batch_size) == (7, 9)
    assert merge({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}) == {"a": {"b": 3, "c": 2}}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"training": {"epoch": 3}}, "epoch"),
        ({"training": {"epochs": "three"}}, "training.epochs"),
        ({"training": {"epochs": 2.5}}, "training.epochs"),
        ({"options": {"select": 3}}, "select"),
        ({"options": {"selected": "80"}}, "selected"),
        ({"options": {"selected": [80.5]}}, "selected"),
        ({"trainings": {}}, "trainings"),
        ({"training": {"optimizer": "magic"}}, "optimizer"),
        ({"training": {"epochs": 0}}, "epochs: 0 is too small"),
        ({"method": 3}, "method"),
    ],
)
def test_mistakes_are_named(values: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        from_mapping(merge({"stream": "split-digits", "method": "spacenet"}, values))


def test_whole_numbers_are_fine_where_fractions_are_meant() -> None:
    values = {"stream": "x", "method": "spacenet", "training": {"learning_rate": 1}, "options": {"connections": [5, 5]}}
    assert from_mapping(values).training.learning_rate == 1.0


def test_one_number_may_stand_for_a_list() -> None:
    listed = from_mapping({"stream": "x", "method": "spacenet", "options": {"selected": [80]}, "net": {"hidden": [9]}})
    assert (
        from_mapping({"stream": "x", "method": "spacenet", "options": {"selected": 80}, "net": {"hidden": 9}}) == listed
    )


def test_files_that_are_no_toml(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_toml(tmp_path / "nothing.toml")
    (tmp_path / "bad.toml").write_text("a = = 1")
    with pytest.raises(SettingsError, match="not a TOML file"):
        read_toml(tmp_path / "bad.toml")
