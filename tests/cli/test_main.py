import pytest

from spacenet import __version__
from spacenet.cli.main import COMMANDS, main
from spacenet.config.presets import preset_config


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_the_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "run [DATA]" in out
    for name in COMMANDS:
        assert f"\n  {name} " in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__


@pytest.mark.parametrize("method", ["spacenet", "naive"])
def test_help_shows_the_methods_own_settings(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as info:
        main(["run", "--method", method, "--help"])
    assert info.value.code == 0
    out = capsys.readouterr().out
    assert "--learning-rate" in out
    assert ("--rewire-fraction" in out) == (method == "spacenet")
    assert "{None}" not in out


def test_help_shows_the_streams_and_methods_own_defaults_of_lists_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "icifar-100", "--method", "spacenet-density", "--help"])
    words = " ".join(capsys.readouterr().out.replace("│", " ").split())
    options = preset_config("icifar-100", "spacenet-density").model.method_settings
    for name in ("selected", "first_selected", "first_connections"):
        after = words.split(f"--{name.replace('_', '-')} ")[1].split(" --")[0]
        assert f"(default: {' '.join(map(str, getattr(options, name)))})" in after, name
    assert "(default: )" not in words
    assert "(default: None)" not in words
