"""What a page consists of, and how it becomes one HTML file: everything inside, nothing from elsewhere, no script.

Names of classes and files come from outside. They are text to the template, which escapes all text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from spacenet.report.plots.plot import Plot
from spacenet.utils.extras import require_extra
from spacenet.utils.files import save_bytes

PIXELS_PER_POINT = 1.5
"""How large pictures are drawn: their letters are then a little smaller than the page's."""
LEAST_WIDTH = 560
"""Pixels to which a wide picture may shrink; below that it is moved sideways in its box."""


@dataclass(frozen=True)
class Number:
    """One of the figures at the top."""

    name: str
    value: str
    meaning: str
    """In plain words."""
    std: str = ""
    """Its standard deviation over several seeds."""


@dataclass(frozen=True)
class Table:
    """Texts in rows; the first of each row names it."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    """The first columns are words, the others figures."""


@dataclass(frozen=True)
class Exhibit:
    """A picture, and its figures where they are few enough to be read."""

    plot: Plot
    data: Table | None = None


@dataclass(frozen=True)
class Command:
    """A line to type, and what it does."""

    purpose: str
    line: str


@dataclass(frozen=True)
class Section:
    """A part of the page under its own heading. What is empty does not show."""

    title: str
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    exhibits: Sequence[Exhibit] = ()
    commands: Sequence[Command] = ()
    files: Sequence[tuple[str, str]] = ()
    """Name and text of files; they are folded up."""

    @property
    def empty(self) -> bool:
        return not any((self.notes, self.tables, self.exhibits, self.commands, self.files))


@dataclass(frozen=True)
class Page:
    """All of it."""

    title: str
    lead: str
    """Below the title: what this is, in a sentence."""
    sections: Sequence[Section]
    alarms: Sequence[str] = ()
    """What must not be overlooked: warnings, and why it stopped early."""
    numbers: Sequence[Number] = ()
    foot: str = ""

    @property
    def plots(self) -> list[Plot]:
        return [exhibit.plot for section in self.sections for exhibit in section.exhibits]


def to_html(page: Page) -> str:
    """The page as one HTML text."""
    jinja: Any = require_extra("report", "report", "jinja2")
    surroundings = jinja.Environment(
        autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    surroundings.globals["drawing"] = _drawing
    text: str = surroundings.from_string(_file("page.html.j2")).render(
        page=page, sections=[section for section in page.sections if not section.empty], css=_file("page.css")
    )
    return text


def save_page(page: Page, path: Path) -> None:
    """Write it. Names that are no proper Unicode, as file names may be, lose what cannot be written."""
    save_bytes(path, to_html(page).encode("utf-8", "replace"))


def save_figures(page: Page, folder: Path) -> list[Path]:
    """Write every picture as files of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    return [path for plot in page.plots for path in plot.save(folder)]


def _drawing(plot: Plot) -> dict[str, Any]:
    """For the template: the SVG, its width in pixels, and the least that it may get."""
    svg = _named_once(plot.inline())
    found = re.search(r'viewBox="\S+ \S+ (\S+) \S+"', svg)
    assert found is not None
    width = round(float(found[1]) * PIXELS_PER_POINT)
    return {"svg": svg, "width": width, "least": min(width, LEAST_WIDTH)}


def _named_once(svg: str) -> str:
    """Without the names that nothing refers to: equal images have the same one, and a page may use it only once."""
    wanted = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    return re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in wanted else "", svg)


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
