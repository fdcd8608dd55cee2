"""`--encoder` on folders of photos and tables of texts, with tiny encoders."""

import json
from pathlib import Path

import numpy as np
import pytest

from spacenet.cli.main import main
from spacenet.encoders import loading
from spacenet.encoders.loading import encoder_name
from tests.encoders.support import FEATURES, one_color, pictures, save_exported, save_pictures, sentences, tiny_texts

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


def test_images_of_one_color_are_unknown(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    fit = ["fit", "first", "--encoder", "tiny.pt2", "--out", "model.safetensors", "--epochs", "2", "--quiet"]
    assert main(fit) == 0
    (here / "flat" / "gray").mkdir(parents=True)
    for number, image in enumerate(one_color(5)):
        Image.fromarray(image.transpose(1, 2, 0)).save(here / "flat" / "gray" / f"{number}.png")
    np.save(here / "flat.npy", one_color(5))
    capsys.readouterr()
    assert main(["predict", "model.safetensors", "flat", "flat.npy", "--unknown", "0.001", "--format", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["unknown"], each["typicality"]) for each in lines] == [(True, 0.0)] * 10
    assert main(["evaluate", "model.safetensors", "first", "flat", "--unknown", "0.01", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["detection"]["found"] == 100.0


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


def test_arrays_of_images(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.concatenate([pictures(6, label, (30, 26)) for label in (0, 1)])
    np.savez("train.npz", x=x, y=["red"] * 6 + ["green"] * 6)
    np.savez("more.npz", x=pictures(6, 2).transpose(0, 2, 3, 1), y=["blue"] * 6)
    fit = ["fit", "train.npz", "--encoder", "tiny.pt2", "--out", "model.safetensors", "--epochs", "10", "--quiet"]
    assert main([*fit, "--include-encoder"]) == 0
    Path("tiny.pt2").unlink()  # its weights are in the model's file
    assert main(["learn", "model.safetensors", "more.npz", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["inspect", "model.safetensors"]) == 0
    assert "weights in the file (" in capsys.readouterr().out.replace("\n", " ")
    assert main(["evaluate", "model.safetensors", "train.npz", "more.npz", "--quiet"]) == 0
    np.save("last.npy", x.transpose(0, 2, 3, 1))
    np.save("first.npy", x)
    np.savez("x.npz", x=x)
    capsys.readouterr()
    answers = []
    for name in ("first.npy", "last.npy", "x.npz"):
        assert main(["predict", "model.safetensors", name, "--format", "csv"]) == 0
        answers.append([line.split(",")[1:] for line in capsys.readouterr().out.splitlines()[1:]])
    assert [row[1] for row in answers[0]] == ["red"] * 6 + ["green"] * 6
    assert answers[0] == answers[1] == answers[2]
    np.save("gray.npy", x[:, 0])
    assert main(["predict", "model.safetensors", "gray.npy"]) == 0
    np.save("features.npy", np.ones((2, FEATURES)))
    assert main(["predict", "model.safetensors", "features.npy"]) == 0
    np.save("floats.npy", x / 255)
    assert main(["predict", "model.safetensors", "floats.npy"]) == 2
    assert "takes images as bytes (0 to 255)" in capsys.readouterr().err


def test_weights_without_an_encoder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("numbers.npz", x=np.eye(4), y=[0, 1, 0, 1])
    assert main(["fit", "numbers.npz", "--out", "model.safetensors", "--include-encoder"]) == 2
    assert "--include-encoder: goes with --encoder" in capsys.readouterr().err
