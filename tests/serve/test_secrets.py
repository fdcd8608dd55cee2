"""Files of tokens: who may read them, what they hold, and that they can be exchanged while the service runs."""

import logging
import os
from logging.handlers import BufferingHandler
from pathlib import Path

import pytest

from spacenet.errors import SettingsError
from spacenet.serve.secrets import TokenFile, read_secret
from tests.serve.tokens import token_file

ONE, OTHER = "0123456789abcdef", "fedcba9876543210=="


def _file(path: Path) -> TokenFile:
    return TokenFile(path, "token_file")


def test_each_line_is_a_token(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(f"{ONE}\r\n\n  {OTHER}".encode())
    path.chmod(0o600)
    held = _file(path)
    for token, found in {ONE: True, OTHER: True, ONE[:-1]: False, ONE + "0": False, "": False}.items():
        assert held.holds(token.encode()) == found, token


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no token; make one with: openssl"),
        ("\n \n", "holds no token"),
        (f"{ONE}\nsecret-too-short\n", ""),
        (f"{ONE}\nsecret-short\n", "the token in line 2 is shorter than 16 characters"),
        (f"{ONE}\nsecret with spaces and more\n", "line 2 is no token"),
        ("secret\0secret\0secret\n", "line 1 is no token"),
        ("secretsecretsecretß\n", "line 1 is no token"),
        ("a" * 70_000, "larger than 64 KiB"),
    ],
)
def test_what_is_no_token_is_said_without_telling_it(tmp_path: Path, content: str, words: str) -> None:
    path = token_file(tmp_path / "tokens", content)
    if not words:
        assert _file(path).holds(b"secret-too-short")
        return
    with pytest.raises(SettingsError, match=words) as info:
        _file(path)
    assert "secret" not in str(info.value)


@pytest.mark.skipif(os.name != "posix", reason="permissions of files are POSIX's")
@pytest.mark.parametrize(
    ("mode", "good"), [(0o600, True), (0o400, True), (0o440, True), (0o604, False), (0o620, False)]
)
def test_others_must_not_read_or_change_it(tmp_path: Path, mode: int, good: bool) -> None:
    path = token_file(tmp_path / "tokens", ONE, mode=mode)
    if good:
        assert read_secret(path, "token_file") == f"{ONE}\n".encode()
    else:
        with pytest.raises(SettingsError, match=f"other users can read or change .* are {mode:04o}.*chmod 600"):
            read_secret(path, "token_file")


def test_what_is_not_there_or_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read .*nowhere: No such file"):
        _file(tmp_path / "nowhere")
    with pytest.raises(SettingsError, match="cannot read"):
        _file(tmp_path)


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    held = _file(token_file(tmp_path / "tokens", ONE))
    token_file(tmp_path / "new", OTHER).replace(tmp_path / "tokens")
    assert (held.holds(ONE.encode()), held.holds(OTHER.encode())) == (False, True)


def test_a_faulty_or_missing_file_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, handler = logging.Logger("alone"), BufferingHandler(100)
    log.addHandler(handler)
    monkeypatch.setattr("spacenet.serve.secrets.log", log)
    held = _file(token_file(tmp_path / "tokens", ONE))
    token_file(tmp_path / "tokens", "short-secret")
    assert held.holds(ONE.encode())
    (tmp_path / "tokens").unlink()
    assert held.holds(ONE.encode())
    assert held.holds(ONE.encode())
    messages = [each.getMessage() for each in handler.buffer]
    assert len(messages) == 2
    assert all("stay as they were" in each and "secret" not in each for each in messages)
