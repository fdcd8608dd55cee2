import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import tomli_w

import spacenet
from spacenet.cli.main import main
from spacenet.methods.base import Method
from tests.cli.support import SMALL, outcome
from tests.support import clouds_file
from tests.warm import start


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    return clouds_file(tmp_path)


@pytest.fixture
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(npz: Path, out: Path, *more: str) -> int:
    return main(["run", str(npz), "--out", str(out), *SMALL, "--no-report", *more])


def test_a_run_ends_in_the_matrix_and_a_summary(npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(npz, tmp_path / "run") == 0
    out, err = capsys.readouterr()
    for words in ("Accuracy in %", "Layers", "hidden2", "ACC", "AIA", "BWT", "task-IL ACC", "Results are in"):
        assert words in out
    assert "task 3/3 learned (4, 5)" in err
    assert "\x1b[" not in out + err  # plain where it is not a terminal


def test_json_is_all_there_is_on_stdout(npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(npz, tmp_path / "run", "--json", "--quiet") == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert err == ""


def test_several_seeds(npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(npz, tmp_path / "runs", "--seeds", "2", "--seed", "7", "--workers", "2") == 0
    out, err = capsys.readouterr()
    assert "mean ± std" in out
    assert "spacenet-density seed 8 finished: ACC" in err
    assert json.loads((tmp_path / "runs" / "summary.json").read_text())["seeds"] == [7, 8]
    assert main(["run", "--resume", str(tmp_path / "runs"), "--quiet", "--no-report"]) == 0  # nothing left to do


def test_settings_from_a_file_and_from_the_line(npz: Path, tmp_path: Path) -> None:
    assert run(npz, tmp_path / "one", "--quiet", "--tasks", "0,1/5,2", "--method", "static-sparse") == 0
    again = [
        "run",
        "--config",
        str(tmp_path / "one" / "config.toml"),
        "--out",
        str(tmp_path / "two"),
        "--quiet",
        "--no-report",
    ]
    assert main(again) == 0
    assert outcome(tmp_path / "one") == outcome(tmp_path / "two")
    again[4] = str(tmp_path / "three")
    assert main([*again, "--tasks", "2,0/3,1", "--seed", "4"]) == 0
    metrics = json.loads((tmp_path / "three" / "metrics.json").read_text())
    assert (metrics["seed"], metrics["method"]) == (4, "static-sparse")
    assert [task["labels"] for task in metrics["tasks"]] == [["2", "0"], ["3", "1"]]
    again[4] = str(tmp_path / "four")
    assert main([*again, "--method", "naive"]) == 0  # the file's settings of static-sparse do not get in the way


@pytest.mark.usefixtures("_in_an_empty_folder")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "split-nothing"], "unknown stream 'split-nothing'"),
        (["run", "--method", "magic"], "unknown method 'magic'"),
        (["run", "missing.npz"], "missing.npz"),
        (["run", "--epochs", "0"], "--epochs: 0 is out of range (1 or more)"),
        (["run", "--seeds", "0"], "--seeds: 0 is out of range (1 or more)"),
        (["run", "--seed", "-1"], "--seed: -1 is out of range (0 or more)"),
        (["run", "--selected", "999"], "999 units of hidden1 cannot be selected"),
        (["run", "--tasks", "0,1/1"], "class 1 is in more than one task"),
        (["run", "--resume", "nowhere"], "nowhere holds no run"),
        (["run", "--resume", "nowhere", "--epochs", "9"], "settings come from the folder"),
        (["run", "--config", "nothing.toml"], "nothing.toml cannot be read"),
        (["fly"], "unknown command 'fly'"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err
    assert not list(tmp_path.rglob("*.toml")), "nothing half-made is left behind"


@pytest.mark.parametrize("arguments", [["run", "--epochs", "many"], ["run", "--no-such-option"], ["data", "list", "x"]])
def test_options_that_do_not_parse_exit_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("spacenet: ")


def test_a_run_makes_its_method_once_and_writes_its_configuration_once(
    npz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: dict[str, int] = {}

    def count(owner: object, name: str, key: str) -> None:
        function = getattr(owner, name)

        def counted(*arguments: object, **options: object) -> object:
            calls[key] = calls.get(key, 0) + 1
            return function(*arguments, **options)

        monkeypatch.setattr(owner, name, counted)

    count(Method, "__init__", "methods")
    count(tomli_w, "dumps", "TOML written")
    count(tomllib, "loads", "TOML read")
    assert run(npz, tmp_path / "run", "--quiet") == 0
    # The second method is that of the model file, which is read back before it gets its name.
    assert calls == {"methods": 2, "TOML written": 1}


def test_running_out_of_space_exits_with_1(npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(npz, tmp_path / "run", "--hidden", "30", "16") == 1
    out, err = capsys.readouterr()
    assert "hidden2 is full: the next task needs 10 free units, 6 are left" in err
    assert "--expand auto makes room" in err
    assert "expand='auto'" not in err
    assert "Accuracy in %" in out  # of the two tasks that were learned


def test_the_package_is_a_command_too() -> None:
    done = subprocess.run([sys.executable, "-m", "spacenet", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{spacenet.__version__}\n"
    done = subprocess.run([sys.executable, "-m", "spacenet", "fly"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("spacenet: unknown command 'fly'")


def _start(npz: Path, out: Path) -> "subprocess.Popen[str]":
    arguments = ["run", str(npz), "--out", str(out), *SMALL, "--epochs", "60", "--no-report"]
    process: subprocess.Popen[str] = start(
        ["spacenet", *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return process


def _wait_for_state(process: "subprocess.Popen[str]", out: Path) -> None:
    deadline = time.monotonic() + 60
    while not (out / "state.safetensors").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_killed_and_interrupted_for_real_it_goes_on(npz: Path, tmp_path: Path) -> None:
    assert run(npz, tmp_path / "whole", "--quiet", "--epochs", "60") == 0
    out = tmp_path / "run"
    killed = _start(npz, out)
    _wait_for_state(killed, out)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert not (out / "metrics.json").exists()
    command = ["spacenet", "run", "--resume", str(out)]
    interrupted = start(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    before = (out / "state.safetensors").stat().st_mtime_ns
    while (out / "state.safetensors").stat().st_mtime_ns == before:
        time.sleep(0.01)
    interrupted.send_signal(signal.SIGINT)
    _, err = interrupted.communicate()
    assert interrupted.returncode == 130
    assert f"interrupted; continue with: spacenet run --resume {out}" in err
    assert "Traceback" not in err
    assert main(["run", "--resume", str(out), "--quiet", "--no-report"]) == 0
    assert outcome(out) == outcome(tmp_path / "whole")


def test_tensorboard_gets_every_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacenet.report.tensorboard.run_plots", lambda run: [])  # tests/report/test_tensorboard.py
    folder = tmp_path / "runs"
    arguments = ["run", str(clouds_file(tmp_path)), "--epochs", "1", "--quiet", "--no-report", "--tensorboard"]
    assert main([*arguments, "--seeds", "2", "--hidden", "30", "--out", str(folder)]) == 0
    assert all(list((folder / f"seed-{seed}" / "tensorboard").glob("events*")) for seed in (0, 1))
