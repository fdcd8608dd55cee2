import tomllib
from pathlib import Path

import pytest

from spacenet.cli.main import main
from tests.support import clouds_file

pytestmark = pytest.mark.filterwarnings("ignore")  # optuna says that parts of it may still change


def test_the_best_settings_are_a_file_that_run_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "quick.toml").write_text("[training]\nepochs = 1\n[net]\nhidden = [20]\n")
    data, out = clouds_file(tmp_path), tmp_path / "out"
    command = ["sweep", str(data), "--method", "naive", "--config", str(tmp_path / "quick.toml")]
    assert main([*command, "--trials", "2", "--workers", "1", "--out", str(out)]) == 0
    printed, progress = capsys.readouterr()
    assert "trial 2/2: ACC" in progress
    best = tomllib.loads(printed)
    assert best == tomllib.loads((out / "best.toml").read_text())
    assert best["stream"]["validation"] == 0.0
    assert main(["run", "--config", str(out / "best.toml"), "--out", str(tmp_path / "run"), "--quiet"]) == 0
    assert "test set" in (tmp_path / "run" / "metrics.json").read_text()


def test_a_setting_that_is_given_is_not_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", str(clouds_file(tmp_path)), "--method", "ewc", "--trials", "1", "--out", str(tmp_path / "out")]
    given = ["epochs=1", "ewc.hidden=20", "learning_rate=0.05"]
    assert main([*command, *(word for each in given for word in ("--set", each))]) == 0
    best = tomllib.loads(capsys.readouterr().out)
    assert (best["training"]["epochs"], best["training"]["learning_rate"]) == (1, 0.05)
    assert best["net"]["hidden"] == [20]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--validation", "0"], "--validation: 0.0 is out of range (more than 0, less than 1)"),
        (["--set", "ewc.strength=5"], "ewc.strength=5: "),
        (["--trials", "0"], "--trials: 0 is out of range (1 or more)"),
    ],
)
def test_bad_input_is_explained(more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "split-digits", "--method", "naive", *more]) == 2
    assert message in capsys.readouterr().err
