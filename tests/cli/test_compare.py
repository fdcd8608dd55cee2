import csv
import json
from pathlib import Path

import pytest

from spacenet.cli.main import main
from spacenet.experiments.run import METRICS, Run, RunData, load_config
from tests.cli.support import QUICK
from tests.support import clouds_file


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    (tmp_path / "quick.toml").write_text(QUICK)
    data = [str(clouds_file(tmp_path)), "--config", str(tmp_path / "quick.toml"), "--workers", "1"]
    return ["compare", *data, "--methods", "naive,spacenet", "--out", str(tmp_path / "out"), "--quiet", "--no-report"]


def test_a_comparison_leaves_tables_of_every_kind(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*arguments, "--seeds", "2"]) == 0
    shown = capsys.readouterr().out
    assert "clouds, 2 seeds, mean ± standard deviation (test set)" in shown
    assert "(test set) (continued)" in shown  # too wide for 80 columns
    assert max(len(line) for line in shown.splitlines() if "Runs and tables" not in line) <= 80
    facts = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert [row["method"] for row in facts["rows"]] == ["naive", "spacenet"]
    assert facts["rows"][0]["relative_time"] == 1.0
    with (tmp_path / "out" / "comparison.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert float(lines[1]["acc"]) == facts["rows"][1]["acc"]["mean"]
    assert "| spacenet | Architectural |" in (tmp_path / "out" / "comparison.md").read_text()


def test_finished_runs_are_not_repeated(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    monkeypatch.setattr(Run, "execute", None)
    assert main([*arguments, "--format", "json"]) == 0
    text = capsys.readouterr().out
    assert json.loads(text[text.index("{") :])["failures"] == []


def test_a_run_that_fails_is_reported_and_the_others_go_on(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    execute = Run.execute
    fault = ZeroDivisionError("of all things")

    def faulty(run: Run) -> RunData:
        if run.config.model.method == "naive":
            raise fault
        return execute(run)

    monkeypatch.setattr(Run, "execute", faulty)
    assert main([*arguments, "--format", "markdown"]) == 1
    out, err = capsys.readouterr()
    assert "spacenet" in out
    assert "| naive |" not in out
    assert "spacenet: naive seed 0: ZeroDivisionError: of all things" in err


def test_what_is_done_is_kept_when_interrupted(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    execute = Run.execute

    def interrupted(run: Run) -> RunData:
        if run.config.model.method == "spacenet":
            raise KeyboardInterrupt
        return execute(run)

    monkeypatch.setattr(Run, "execute", interrupted)
    assert main(arguments) == 130
    assert "the same command continues where it stopped" in capsys.readouterr().err
    assert (tmp_path / "out" / "naive" / "seed-0" / METRICS).is_file()
    monkeypatch.undo()
    assert main(arguments) == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--methods", "nothing"], "unknown method 'nothing'"),
        (["--seeds", "0"], "--seeds: 0 is out of range (1 or more)"),
        (["--engine", "dask"], "--address: the address of the dask cluster is missing"),
        (["--preset", "nothing"], "unknown preset of clouds 'nothing'"),
    ],
)
def test_bad_input_is_explained(
    arguments: list[str], more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, *more]) == 2
    assert message in capsys.readouterr().err


def test_more_seeds_extend_a_folder_and_settings_of_one_method_hold(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--set", "epochs=2", "--set", "spacenet.epochs=1"]
    assert main([*arguments, *more, "--format", "csv"]) == 0
    first = next(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert (first["acc_std"], first["aia_std"], first["forgetting_std"]) == ("", "", "")
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob(METRICS)}
    assert len(times) == 2
    assert main([*arguments, *more, "--seeds", "2", "--format", "latex"]) == 0
    text = capsys.readouterr().out
    assert text == (tmp_path / "out" / "comparison.tex").read_text()
    assert r"\caption{clouds, 2 seeds, mean $\pm$ standard deviation (test set)}" in text
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert main([*arguments, *more, "--seed", "1", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["seeds"] for row in found["rows"]] == [2, 2]
    epochs = [load_config(tmp_path / "out" / name / "seed-1").model.training.epochs for name in ("naive", "spacenet")]
    assert epochs == [2, 1]


def test_a_stream_that_is_cut_otherwise_gets_a_folder_of_its_own(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Path] = []

    def compare(stream: str, *, out: Path, **options: object) -> None:
        asked.append(out)
        raise KeyboardInterrupt

    monkeypatch.setattr("spacenet.api.compare", compare)
    for more in ([], ["--seeds", "3"], ["--methods", "ewc"], ["--classes-per-task", "3"], ["--set", "epochs=1"]):
        assert main(["compare", "split-digits", *more]) == 130
    plain, seeds, methods, cut, settings = asked
    assert plain == seeds == methods == Path("comparisons/split-digits")
    assert len({plain, cut, settings}) == 3
