"""The parts of a multipart/form-data body, which is in memory already and bounded."""

import logging
from dataclasses import dataclass, field

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from spacenet.serve.messages import RequestError

MAX_PARTS = 1000
MAX_PART_HEADERS = 4096
"""Bytes of the headers of one part."""
logging.getLogger("python_multipart.multipart").setLevel(logging.CRITICAL)  # clients are told, and could fill the log


@dataclass
class Part:
    """A field of a form, or a file in it."""

    name: str = ""
    filename: str | None = None
    chunks: list[bytes] = field(default_factory=list)

    @property
    def content(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def where(self) -> str:
        """What messages call it."""
        return (self.filename or self.name)[:100]


class _Collector:
    """Gathers the parts while the parser goes through the body."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.complete = False
        self._name, self._value, self._size = b"", b"", 0

    def callbacks(self) -> dict[str, object]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_part_data": self._data,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        if len(self.parts) == MAX_PARTS:
            raise RequestError(f"the form has more than {MAX_PARTS:,} fields; send fewer at a time", 413)
        self.parts.append(Part())
        self._size = 0

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += self._header(data[start:end])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += self._header(data[start:end])

    def _header(self, content: bytes) -> bytes:
        self._size += len(content)
        if self._size > MAX_PART_HEADERS:
            raise RequestError("the headers of a field of the form are too long")
        return content

    def _header_end(self) -> None:
        if self._name.lower() == b"content-disposition":
            _, options = parse_options_header(self._value)
            part = self.parts[-1]
            part.name = options.get(b"name", b"").decode("utf-8", "replace")
            if b"filename" in options:
                part.filename = options[b"filename"].decode("utf-8", "replace")
        self._name = self._value = b""

    def _data(self, data: bytes, start: int, end: int) -> None:
        self.parts[-1].chunks.append(data[start:end])

    def _end(self) -> None:
        self.complete = True


def read_parts(body: bytes, boundary: bytes) -> list[Part]:
    """The fields and files of a form, in their order."""
    if not 0 < len(boundary) <= 200:
        raise RequestError("the content type multipart/form-data needs a boundary", 400)
    collector = _Collector()
    try:
        parser = MultipartParser(boundary, collector.callbacks())  # type: ignore[arg-type]
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise RequestError(f"the form is damaged: {str(error)[:200]}", 400) from error
    if not collector.complete:
        raise RequestError("the form is cut off", 400)
    return collector.parts


def read_boundary(header: str) -> tuple[str, bytes]:
    """The kind of a body, and what separates the parts of a form, from the header Content-Type."""
    if ";" not in header:
        return header.strip().lower(), b""
    kind, options = parse_options_header(header.encode("latin-1", "replace"))
    return kind.decode("latin-1").strip().lower(), options.get(b"boundary", b"")
