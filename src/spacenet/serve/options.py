"""What a request wants to know of each sample, as its query or its JSON body says."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spacenet.errors import SettingsError
from spacenet.model.unknown import check_coverage, check_rate
from spacenet.serve.messages import COVERAGE, TOP, UNKNOWN, PredictRequest, RequestError

MAX_TOP = 10**6
FRACTION: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
PARAMETERS: list[dict[str, Any]] = [
    {"name": "top", "in": "query", "schema": {"type": "integer", "minimum": 1, "default": 1, "description": TOP}},
    {"name": "unknown", "in": "query", "schema": {**FRACTION, "description": UNKNOWN}},
    {"name": "coverage", "in": "query", "schema": {**FRACTION, "description": COVERAGE}},
]
RESIZE: dict[str, Any] = {
    "name": "resize",
    "in": "query",
    "schema": {"type": "boolean", "default": False, "description": "Resize images to the size that the model takes."},
}


@dataclass(frozen=True)
class AnswerOptions:
    """How many classes are listed, at which rate samples are unknown, and the coverage of sets, if they are wanted."""

    top: int = 1
    unknown: float | None = None
    coverage: float | None = None

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> "AnswerOptions":
        """From the address of a request."""
        options = cls(_top(query.get("top", "1")))
        return options.with_rates(_number(query, "unknown"), _number(query, "coverage"))

    def of_body(self, request: PredictRequest) -> "AnswerOptions":
        """The same with what the body says, which goes before."""
        options = self if request.top is None else replace(self, top=_top(str(request.top)))
        return options.with_rates(request.unknown, request.coverage)

    def with_rates(self, unknown: object, coverage: object) -> "AnswerOptions":
        """The same with these rates, where they are given. Raises `RequestError` unless they lie between 0 and 1."""
        if unknown is None and coverage is None:
            return self
        try:
            return replace(
                self,
                unknown=self.unknown if unknown is None else check_rate(unknown),
                coverage=self.coverage if coverage is None else check_coverage(coverage),
            )
        except SettingsError as error:
            raise RequestError(str(error)) from error


def read_flag(query: Mapping[str, str], name: str) -> bool:
    """A yes or no in an address."""
    text = query.get(name, "false").lower()
    if text not in ("true", "false", "1", "0"):
        raise RequestError(f"{name}: {text[:20]!r} is neither true nor false")
    return text in ("true", "1")


def _top(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 8 and 1 <= int(text) <= MAX_TOP):
        raise RequestError(f"top: {text[:20]!r} is not a number of classes (need 1 or more)")
    return int(text)


def _number(query: Mapping[str, str], name: str) -> float | None:
    text = query.get(name)
    if text is None:
        return None
    try:
        return float(text[:40])
    except ValueError:
        raise RequestError(f"{name}: {text[:20]!r} is not a number between 0 and 1") from None
