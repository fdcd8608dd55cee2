"""`--encoder` on folders of photos and tables of texts, with tiny encoders."""

import json
from pathlib import Path

import pytest

from spacenet.cli.main import main
from spacenet.encoders import loading
from spacenet.encoders.loading import encoder_name
from tests.encoders.support import save_exported, save_pictures, sentences, tiny_texts

pytest.importorskip("PIL", reason="images need the extra 'images'")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    save_exported(tmp_path / "tiny.pt2")
    save_pictures(tmp_path / "first", {"red": 0, "green": 1})
    save_pictures(tmp_path / "more", {"blue": 2})
    return tmp_path


def test_from_photos_to_a_label(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit = ["fit", "first", "--encoder", "tiny.pt2", "--out", "model.safetensors", "--epochs", "10", "--quiet"]
    assert main(fit) == 0
    assert main(["learn", "model.safetensors", "more", "--quiet"]) == 0
    assert main(["evaluate", "model.safetensors", "first", "more", "--quiet", "--json"]) == 0
    capsys.readouterr()
    assert main(["predict", "model.safetensors", "more/blue/1.png", "first", "--format", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 13
    assert lines[0]["label"] == "blue"


def test_damaged_photos(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "first" / "red" / "3.png").write_bytes(b"no image")
    fit = ["fit", "first", "--encoder", "tiny.pt2", "--out", "model.safetensors", "--epochs", "2", "--quiet"]
    assert main(fit) == 2
    assert "3.png: not an image that can be read" in capsys.readouterr().err
    assert not (here / "model.safetensors").exists()
    assert main([*fit, "--damaged", "skip"]) == 0
    assert "1 of 12 images cannot be read and are left out: " in capsys.readouterr().err
    assert (here / "model.safetensors").is_file()


def test_methods_are_compared_on_the_same_features(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compare = ["compare", "first", "--encoder", "tiny.pt2", "--methods", "ncm,slda", "--classes-per-task", "1"]
    assert main([*compare, "--no-report", "--quiet", "--format", "csv", "--workers", "1"]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split(",")[1] for row in rows] == ["ncm", "slda"]


def test_mistakes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit = ["fit", "first", "--out", "model.safetensors", "--quiet"]
    assert main([*fit, "--encoder", "efficient-net"]) == 2
    assert "--encoder: unknown encoder 'efficient-net'" in capsys.readouterr().err
    assert main([*fit, "--encoder", "tiny.pt2", "--image-size", "32"]) == 2
    assert "--image-size: the encoder" in capsys.readouterr().err


def test_a_run_with_an_encoder_has_the_defaults_of_features(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "first", "--encoder", "tiny.pt2", "--classes-per-task", "1", "--epochs", "2", "--quiet"]
    assert main([*run, "--out", "runs/first", "--no-report"]) == 0
    assert "spacenet-density on first" in capsys.readouterr().out
    digits = ["run", "split-digits", *run[2:4], *run[6:], "--tasks", "0,1/2,3"]
    assert main([*digits, "--out", "runs/digits", "--no-report"]) == 0
    assert "spacenet-density on split-digits" in capsys.readouterr().out


def save_texts(path: Path, *labels: str) -> None:
    lines = [f'{label},"{text}"' for text, label in zip(*sentences(list(labels)), strict=True)]
    path.write_text("\n".join(["topic,text", *lines]), encoding="utf-8")


def test_from_texts_to_a_label(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_own", {})
    name, columns = encoder_name(tiny_texts()) or "", ["--label", "topic"]
    save_texts(here / "first.csv", "weather", "food")
    save_texts(here / "more.csv", "sea")
    fit = ["fit", "first.csv", *columns, "--encoder", name, "--out", "model.safetensors", "--epochs", "10", "--quiet"]
    assert main(fit) == 0
    assert main(["learn", "model.safetensors", "more.csv", *columns, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "model.safetensors", "first.csv", "more.csv", *columns, "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 100
    (here / "new.csv").write_text('text\n"eel, 3"\naioli\n', encoding="utf-8")
    assert main(["predict", "model.safetensors", "new.csv", "--format", "jsonl"]) == 0
    assert [json.loads(line)["label"] for line in capsys.readouterr().out.splitlines()] == ["sea", "food"]
