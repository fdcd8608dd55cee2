"""`spacenet tune`: from a folder of photos to an encoder in a file."""

import json
from pathlib import Path

import pytest

from spacenet.cli.main import main
from tests.encoders.support import SIZE, TinyEncoder, save_pictures, timm_with

pytest.importorskip("PIL", reason="images need the extra 'images'")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    timm_with(TinyEncoder(), monkeypatch)
    return save_pictures(tmp_path / "photos", {"red": 0, "green": 1, "blue": 2})


def test_what_is_written_is_an_encoder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tune = ["tune", "photos", "--encoder", "timm:tiny", "--first-classes", "2", "--epochs", "1", "--quiet"]
    assert main([*tune, "--out", "tuned.pt2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["labels"], found["images"], found["size"]) == (["blue", "green"], 12, SIZE)
    assert (
        main(["fit", "photos", "--encoder", "tuned.pt2", "--out", "model.safetensors", "--epochs", "2", "--quiet"]) == 0
    )
    assert main([*tune, "--out", "other.pt2", "--size", "8"]) == 0
    assert "images of 8 × 8 pixels" in capsys.readouterr().out


def test_mistakes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tune = ["tune", "photos", "--encoder", "timm:tiny", "--quiet"]
    for more, problem in (
        (["--out", "tuned.bin"], "--out: tuned.bin does not end in .pt2"),
        (["--out", "tuned.pt2", "--tasks", "red"], "there is only one"),
        (["--out", "tuned.pt2", "--size", "0"], "--size"),
        (["--out", "photos"], "--out: photos is a folder"),
    ):
        assert main([*tune, *more]) == 2
        assert problem in capsys.readouterr().err
    assert not Path("tuned.pt2").exists()
