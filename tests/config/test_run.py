from pathlib import Path

import pytest

from spacenet.config.model import ModelConfig, merge, nest_settings
from spacenet.config.presets import preset_config
from spacenet.config.run import RunConfig, read_toml
from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError
from spacenet.registry import METHODS, STREAMS


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("method", METHODS)
def test_every_preset_survives_its_toml(stream: str, method: str, tmp_path: Path) -> None:
    config = preset_config(stream, method, {"seed": 3, "stream": {"data": "a b.npz", "tasks": "0/1"}})
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml())
    assert RunConfig.from_plain(read_toml(path)) == config


def test_later_layers_win() -> None:
    layers: list[dict[str, object]] = [{"training": {"epochs": 7}}, {"training": {"batch_size": 9}}]
    training = preset_config("split-mnist", "spacenet", *layers).model.training
    assert (training.epochs, training.batch_size) == (7, 9)
    assert merge({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}) == {"a": {"b": 3, "c": 2}}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"training": {"epoch": 3}}, r"\[training\]: unknown setting 'epoch', did you mean 'epochs'"),
        ({"training": {"epochs": "three"}}, r"\[training\]: epochs must be an integer, not 'three'"),
        ({"training": {"epochs": 2.5}}, "epochs"),
        ({"method": {"select": 3}}, r"\[method\] of spacenet: unknown setting 'select', did you mean 'selected'"),
        ({"method": {"selected": "80"}}, "selected"),
        ({"method": {"selected": [80.5]}}, "selected"),
        ({"method": {"name": 3}}, r"\[method\]: name must be text"),
        ({"method": {"name": "spacnet"}}, "unknown method 'spacnet', did you mean 'spacenet'"),
        ({"method": "spacenet"}, r"\[method\] must be a section"),
        ({"trainings": {}}, "unknown section 'trainings', did you mean 'training'"),
        ({"training": {"optimizer": "magic"}}, "optimizer: unknown value 'magic'"),
        ({"training": {"epochs": 0}}, r"epochs: 0 is out of range \(1 or more\)"),
        ({"stream": 3}, r"\[stream\] must be a section"),
        ({"stream": {"nam": "x"}}, r"\[stream\]: unknown setting 'nam'"),
        ({"seed": "one"}, "seed: 'one' is not an integer"),
        ({"seed": True}, "seed: True is not an integer"),
        ({"training": {"epochs": 16**5000}}, r"\[training\]: epochs has a number with more than 300 digits"),
        ({"method": 16**5000}, r"\[method\] must be a section with settings, not a value of the type int, too large"),
        ({"seed": -1}, r"seed: -1 is out of range \(0 or more\)"),
    ],
)
def test_mistakes_are_named(values: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        RunConfig.from_plain(values)


def test_whole_numbers_are_fine_where_fractions_are_meant() -> None:
    values = {"training": {"learning_rate": 1}, "method": {"name": "spacenet", "connections": [5, 5]}}
    model = ModelConfig.from_plain(values)
    assert (model.training.learning_rate, vars(model.method_settings)["connections"]) == (1.0, (5.0, 5.0))


def test_one_number_may_stand_for_a_list() -> None:
    listed, alone = (
        RunConfig.from_plain({"method": {"name": "spacenet", "selected": selected}, "net": {"hidden": hidden}})
        for selected, hidden in (([80], [9]), (80, 9))
    )
    assert listed == alone


def test_settings_are_replaced_by_their_own_names() -> None:
    model = preset_config("split-digits", "spacenet").model
    changed = model.replace(epochs=2, hidden=(7,), rewire_fraction=0.1, centering=0.0)
    assert (changed.training.epochs, changed.net.hidden, changed.preprocessing.centering) == (2, (7,), 0.0)
    assert vars(changed.method_settings)["rewire_fraction"] == 0.1
    assert changed.flat()["epochs"] == 2
    with pytest.raises(SettingsError, match="unknown setting of spacenet 'epoch', did you mean 'epochs'"):
        model.replace(epoch=2)
    with pytest.raises(SettingsError, match="epochs: 0 is out of range"):
        model.replace(epochs=0)


def test_another_seed_is_the_same_run_otherwise() -> None:
    config = preset_config("split-digits", "spacenet")
    assert config.with_seed(4).model.seed == 4
    assert config.with_seed(4).with_seed(0) == config


def test_files_that_are_no_toml(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_toml(tmp_path / "nothing.toml")
    (tmp_path / "bad.toml").write_text("a = = 1")
    with pytest.raises(SettingsError, match="not a TOML file"):
        read_toml(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "1" * 5000, "not a TOML file"),
        ("a = " + "[" * 5000 + "]" * 5000, "not a TOML file"),
        ("stream = 3", r"\[stream\] must be a section with settings, not 3"),
        ("method = 'spacenet'", r"\[method\] must be a section"),
        ("net = []", r"\[net\] must be a section"),
        ("[stream]\nname = 3.5", r"\[stream\]: name must be text"),
        ("[method]\nname = ['a']", r"\[method\]: name must be text"),
    ],
)
def test_toml_files_that_are_no_settings(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(SettingsError, match=words):
        read_toml(tmp_path / "bad.toml")


def test_few_samples_are_seen_more_often() -> None:
    training = TrainingConfig(batch_size=32)
    assert [training.epochs_of(1, samples) for samples in (100_000, 2_000, 10)] == [4, 9, 100]
    assert TrainingConfig(epochs=3).epochs_of(1, 10) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[training]\nepoch = 3", r"\[training\]: unknown setting 'epoch', did you mean 'epochs'"),
        ("[training]\nepochs = 'three'", r"\[training\]: epochs: must be an integer, not 'three'"),
        ("[training]\nepochs = 0", r"\[training\]: epochs: 0 is out of range"),
        ("[traning]\nepochs = 3", "unknown section 'traning', did you mean 'training'"),
        (
            "[method]\nname = 'ewc'\nstrenght = 3",
            r"\[method\]: unknown setting of ewc 'strenght', did you mean 'stren",
        ),
        ("[method]\nstrength = 3", r"\[method\]: 'strength' is a setting of ewc, .*, not of naive"),
        ("[methods.ewk.method]\nstrength = 3", "unknown method 'ewk', did you mean 'ewc'"),
        (
            "[methods.ewc.training]\nlr = 3",
            r"\[methods.ewc.training\]: unknown setting 'lr', did you mean 'learn",
        ),
        ("[methods.ewc]\nstrenght = 3", "unknown setting of ewc 'strenght', did you mean 'strength'"),
        ("seed = 'x'", "seed: must be an integer, not 'x'"),
    ],
)
def test_mistakes_in_a_file_are_named_with_the_file(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=f"mine.toml: {words}"):
        read_toml(path, "naive")


def test_settings_of_one_method_may_be_given_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[methods.ewc]\nstrength = 3\nepochs = 2\n[methods.ewc.net]\nhidden = [9]\n")
    (own,) = read_toml(path)["methods"].values()
    assert nest_settings("ewc", own) == {"method": {"strength": 3}, "training": {"epochs": 2}, "net": {"hidden": [9]}}
