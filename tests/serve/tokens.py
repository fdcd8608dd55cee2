"""Token files for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spacenet.serve.access import Tokens
from spacenet.serve.gate import Access
from spacenet.serve.secrets import TokenFile
from tests.serve.support import Service, service

READING, TEACHING = "reading-token-0123", "teaching-token-0123"


def token_file(path: Path, *tokens: str, mode: int = 0o600) -> Path:
    path.write_text("".join(f"{token}\n" for token in tokens))
    path.chmod(mode)
    return path


def both_tokens(folder: Path) -> Tokens:
    reading, teaching = token_file(folder / "reading", READING), token_file(folder / "teaching", TEACHING)
    return Tokens(TokenFile(reading, "token_file"), TokenFile(teaching, "teach_token_file"))


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@contextmanager
def guarded_service(folder: Path) -> Iterator[Service]:
    """A service that learns and asks for tokens."""
    with service(folder, learns=True, access=Access(both_tokens(folder))) as it:
        yield it
