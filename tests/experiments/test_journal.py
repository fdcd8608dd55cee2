from pathlib import Path

import pytest

from spacenet.errors import FileError
from spacenet.experiments.journal import Journal


def test_lines_are_read_from_any_number_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "x")
    assert list(journal.read_logs(0)) == []
    journal.append_logs([{"n": 0}, {"n": 1}])
    assert list(journal.read_logs(0)) == [{"n": 0}, {"n": 1}]
    journal.append_logs([{"n": 2}])
    assert list(journal.read_logs(2)) == [{"n": 2}]
    assert list(journal.read_logs(1)) == [{"n": 1}, {"n": 2}]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_half_a_line_is_none_and_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'{"n":0}\n{"n":')
    journal = Journal(tmp_path / "x")
    assert list(journal.read_logs(0)) == [{"n": 0}]
    journal.append_logs([{"n": 1}])
    assert list(journal.read_logs(1)) == [{"n": 1}]
    assert (tmp_path / "x").read_bytes() == b'{"n":0}\n{"n":1}\n'


def test_a_journal_that_cannot_be_written_is_an_error_for_people(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file or directory"):
        Journal(tmp_path / "gone" / "x").append_logs([{"n": 0}])
