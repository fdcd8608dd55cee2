"""Where a stream may stand among the arguments, and which settings the flags are."""

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest

from spacenet import registry
from spacenet.api.settings import STREAM_SETTINGS
from spacenet.cli.main import main
from spacenet.cli.options import NO_FLAGS, stream_first
from spacenet.config.model import sort_into_sections
from spacenet.config.presets import preset_config
from spacenet.registry import DATASETS, METHODS

QUICK = ["--epochs", "1", "--tasks", "0,1/2,3", "--quiet", "--no-report"]


def config(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "config.toml").read_text())


def text_of_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as info:
        main([*arguments, "--help"])
    assert info.value.code == 0
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize("option", [["--out", "split-mnist"], ["--out=split-mnist"]])
def test_a_folder_with_the_name_of_a_stream_is_a_folder(
    option: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", *QUICK, *option]) == 0
    assert config(tmp_path / "split-mnist")["stream"]["name"] == "split-digits"
    assert config(tmp_path / "split-mnist")["net"]["hidden"] == [200, 200]  # its preset, too


@pytest.mark.parametrize(
    "arguments",
    [
        ["split-mnist", *QUICK, "--hidden", "30", "20"],
        [*QUICK, "split-mnist", "--hidden", "30", "20"],
        ["--hidden", "30", "20", "split-mnist", *QUICK],
        [*QUICK, "--hidden", "30", "20", "--out", "split-digits", "--seed", "0", "split-mnist"],
    ],
    ids=["first", "after a flag without a value", "after a list", "last"],
)
def test_a_stream_may_stand_anywhere(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[tuple[str, dict[str, Any]]] = []

    def run(stream: str, method: str, **options: Any) -> None:
        asked.append((stream, options))
        raise KeyboardInterrupt

    monkeypatch.setattr("spacenet.api.run", run)
    assert main(["run", *arguments]) == 130
    ((stream, options),) = asked
    assert stream == "split-mnist"
    assert options["hidden"] == (30, 20)
    assert options["epochs"] == 1
    assert "centering" not in options  # the preset's own


@pytest.mark.parametrize("method", METHODS)
def test_the_settings_of_a_method_are_its_flags(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = text_of_help(["run", "--method", method], capsys)
    for field in dataclasses.fields(METHODS[method].Settings):
        assert f" --{field.name.replace('_', '-')}" in words, field.name


def test_flags_are_the_names_of_settings(capsys: pytest.CaptureFixture[str]) -> None:
    words = text_of_help(["run", "split-cifar-10", "--method", "spacenet-density"], capsys)
    settings = preset_config("split-cifar-10", "spacenet-density").model.flat()
    assert sort_into_sections("spacenet-density", settings)
    for name in {*settings, *STREAM_SETTINGS} - {*NO_FLAGS}:
        assert f" --{name.replace('_', '-')}" in words, name
    for flag in ("--phantom-classes", "--bn-recalibration-epochs", "--masked-dense"):
        assert flag in words


def test_the_help_of_fetch_names_all_data_sets(capsys: pytest.CaptureFixture[str]) -> None:
    words = text_of_help(["data", "fetch"], capsys)
    assert ", ".join(DATASETS) in words


def test_a_run_is_resumed_where_the_environment_names_a_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPACENET_DATA", str(tmp_path))
    assert main(["run", "split-digits", *QUICK, "--out", str(tmp_path / "run")]) == 0
    assert config(tmp_path / "run")["stream"]["data_dir"] == str(tmp_path)
    assert main(["run", "--resume", str(tmp_path / "run"), "--quiet", "--no-report"]) == 0


def test_installed_packages_are_not_searched_for_every_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look into them takes milliseconds, and a command may have dozens of arguments."""
    looks: list[str] = []

    def look(group: str) -> list[Any]:
        looks.append(group)
        return []

    monkeypatch.setattr(registry, "entry_points", look)
    given = [*QUICK * 10, "--epochs", "1"]
    assert stream_first([*given, "split-mnist"]) == ("split-mnist", ["split-mnist", *given])
    assert len(looks) == 1


def test_a_number_may_be_auto(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experts = ["run", "split-digits", "--method", "spacenet-experts"]
    assert "--statistics-weight NUMBER|auto" in text_of_help(experts, capsys)
    given = ["--statistics-weight", "auto", "--own-statistics-weight", "0.5"]
    assert main([*experts, *QUICK, *given, "--out", str(tmp_path / "run")]) == 0
    again = ["--config", str(tmp_path / "run" / "config.toml"), "--out", str(tmp_path / "again"), "--no-report"]
    assert main(["run", *again, "--quiet"]) == 0
    for name in ("run", "again"):
        method = config(tmp_path / name)["method"]
        assert (method["statistics_weight"], method["own_statistics_weight"]) == ("auto", 0.5)
    for value, message in {"atuo": "'atuo' is not a number or auto", "-1": "-1.0 is out of range (0 to 1e+06)"}.items():
        assert main([*experts, *QUICK, "--statistics-weight", value]) == 2
        assert f"--statistics-weight: {message}" in capsys.readouterr().err
