"""Fake data files of a few bytes."""

import gzip
import hashlib
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import numpy as np

from spacenet.data.files import TEST_IMAGES, TEST_LABELS, TRAIN_IMAGES, TRAIN_LABELS, DataFile, encode_idx

SHAPE = (2, 2)
TRAIN = np.arange(15, dtype=np.uint8).reshape(3, 5) * 17
TEST = np.array([[1, 0, 255, 10, 99], [0, 100, 9, 1, 0]], dtype=np.uint8)
CONTENTS = {
    TRAIN_IMAGES: encode_idx(TRAIN[:, 1:].reshape(-1, *SHAPE)),
    TRAIN_LABELS: encode_idx(TRAIN[:, 0]),
    TEST_IMAGES: encode_idx(TEST[:, 1:].reshape(-1, *SHAPE)),
    TEST_LABELS: encode_idx(TEST[:, 0]),
}
PACKED = {f"{name}.gz": gzip.compress(content) for name, content in CONTENTS.items()}
CORRUPT = {
    "not gzip": b"<html>sorry</html>",
    "empty": b"",
    "truncated": PACKED[f"{TRAIN_IMAGES}.gz"][:-14],
    "bad bytes": b"\x1f\x8b" + b"\xff" * 40,
    "bomb": gzip.compress(bytes(10_000_000)),
    "huge": bytes(1_000_000),
    "other content": gzip.compress(CONTENTS[TRAIN_IMAGES][:-1] + b"!"),
}


def files() -> tuple[DataFile, ...]:
    return tuple(DataFile(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in CONTENTS.items())


def fill(folder: Path, packed: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (PACKED if packed else CONTENTS).items():
        (folder / name).write_bytes(content)
    return folder


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


class Handler(BaseHTTPRequestHandler):
    """Serves /good/FILE, and /cut/FILE that breaks off, /wrong/FILE, /endless/FILE, /plain/FILE (decompressed).

    What is in `archives` is served at its path.
    """

    requests: ClassVar[list[str]] = []
    archives: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if self.path in self.archives:
            self.send(self.archives[self.path])
            return
        kind, name = self.path.strip("/").split("/")
        body = PACKED.get(name)
        if body is None:
            self.send_error(404)
            return
        answers = {"good": body, "cut": body, "wrong": gzip.compress(b"something else"), "endless": bytes(1_000_000)}
        answers["plain"] = CONTENTS[name.removesuffix(".gz")]
        if kind not in answers:
            self.send_error(404)
            return
        self.send(answers[kind], cut=kind == "cut")

    def send(self, body: bytes, cut: bool = False) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)

    def log_message(self, *args: object) -> None:
        pass
