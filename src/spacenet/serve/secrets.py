"""Files with secrets: tokens, one in each line, and private keys. Others must not be able to read them."""

import hashlib
import hmac
import logging
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from spacenet.errors import SettingsError

MAX_BYTES = 64 * 1024
MIN_LENGTH = 16
"""Characters of a token."""
TOKEN = re.compile(rb"[A-Za-z0-9._~+/-]+=*")
"""What can stand in an Authorization header (RFC 6750)."""
HOW_TO = "make one with: openssl rand -hex 32 > FILE; chmod 600 FILE"
log = logging.getLogger("spacenet")


def read_secret(path: Path, setting: str) -> bytes:
    """The content of a file that only its owner and group may read, and only its owner may change."""
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise SettingsError(f"{path} is not a file", setting=setting)
            if os.name == "posix" and facts.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
                found = f"its permissions are {stat.S_IMODE(facts.st_mode):04o}"
                reason = f"other users can read or change {path} ({found}); run chmod 600 on it"
                raise SettingsError(reason, setting=setting)
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror or error}", setting=setting) from error
    if len(content) > MAX_BYTES:
        raise SettingsError(f"{path} is larger than {MAX_BYTES // 1024} KiB", setting=setting)
    return content


class TokenFile:
    """The tokens in a file. When the file has changed, it is read again; of each token only the SHA-256 is kept."""

    def __init__(self, path: Path, setting: str) -> None:
        self.path, self._setting = path, setting
        self._signature = self._look()
        self._digests = self._read()

    def holds(self, token: bytes) -> bool:
        """Whether this is one of the tokens; how long it takes does not depend on which, or how much of it is right."""
        if (signature := self._look()) != self._signature:
            self._signature = signature
            self._read_again()
        digest = hashlib.sha256(token).digest()
        return sum(hmac.compare_digest(digest, each) for each in self._digests) > 0

    def shares_token_with(self, other: "TokenFile") -> bool:
        return not set(self._digests).isdisjoint(other._digests)

    def _look(self) -> tuple[int, ...] | None:
        try:
            facts = self.path.stat()
        except OSError:
            return None
        return facts.st_ino, facts.st_ctime_ns, facts.st_mtime_ns, facts.st_size

    def _read_again(self) -> None:
        try:
            self._digests = self._read()
        except SettingsError as error:
            log.warning("spacenet: warning: the tokens of %s stay as they were: %s", self.path, error.message)
        else:
            log.info("spacenet: %s was read again: %d tokens", self.path, len(self._digests))

    def _read(self) -> Sequence[bytes]:
        """The digests of the tokens. Messages give the number of a line, never what it holds."""
        lines = [line.strip() for line in read_secret(self.path, self._setting).splitlines()]
        for number, line in enumerate(lines, 1):
            if not line:
                continue
            if not TOKEN.fullmatch(line):
                reason = f"line {number} is no token: letters, digits and . _ ~ + / - are allowed"
                raise SettingsError(f"{self.path}: {reason}; {HOW_TO}", setting=self._setting)
            if len(line) < MIN_LENGTH:
                reason = f"the token in line {number} is shorter than {MIN_LENGTH} characters"
                raise SettingsError(f"{self.path}: {reason}; {HOW_TO}", setting=self._setting)
        if not any(lines):
            raise SettingsError(f"{self.path} holds no token; {HOW_TO}", setting=self._setting)
        return [hashlib.sha256(line).digest() for line in lines if line]
