"""The parts of a page, and how it becomes one HTML file: self-contained, without scripts.

Names of classes and files come from users. They are text to the template, which escapes all text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from spacenet.report.plots.plot import Plot, svg_width
from spacenet.report.table import Table
from spacenet.utils.extras import require_extra

PIXELS_PER_POINT = 1.5  # the size of plots: their text is then a little smaller than the page's
MIN_WIDTH = 560  # pixels to which a wide plot may shrink; below that it scrolls in its box
MAX_COLUMNS = 13  # of the data of a plot; wider tables are left out


@dataclass(frozen=True)
class Metric:
    """One of the numbers at the top."""

    name: str
    value: str
    meaning: str
    std: str = ""  # its standard deviation over several seeds


@dataclass(frozen=True)
class Section:
    """A part of the page under its own heading. Empty sections are not shown."""

    title: str
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    plots: Sequence[Plot] = ()
    commands: Sequence[tuple[str, str]] = ()  # what a command line is for, and the line
    files: Sequence[tuple[str, str]] = ()  # name and content of files; they are collapsed

    @property
    def empty(self) -> bool:
        return not any((self.tables, self.notes, self.plots, self.commands, self.files))


@dataclass(frozen=True)
class Page:
    """A whole page."""

    title: str
    lead: str  # one or two sentences below the title
    sections: Sequence[Section]
    notices: Sequence[str] = ()  # what a reader must not miss: warnings, failed runs, and why a run stopped early
    metrics: Sequence[Metric] = ()
    footer: str = ""

    @property
    def plots(self) -> list[Plot]:
        return [plot for section in self.sections for plot in section.plots]

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by the name of a file: those of sections, and the data of plots."""
        found: dict[str, Table] = {}
        for section in self.sections:
            for number, table in enumerate(section.tables, 1):
                name = "-".join(re.findall(r"[a-z0-9]+", section.title.lower()))
                found[name if len(section.tables) == 1 else f"{name}-{number}"] = table
            found |= {plot.name: plot.table for plot in section.plots if plot.table}
        return found

    def to_html(self) -> str:
        """The page as one HTML text."""
        jinja: Any = require_extra("report", "report", "jinja2")
        environment = jinja.Environment(
            autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        sections = [section for section in self.sections if not section.empty]
        template = environment.from_string(_resource("page.html.j2"))
        return str(template.render(page=self, sections=sections, css=_resource("page.css"), render=_render))


def _render(plot: Plot) -> dict[str, Any]:
    """For the template: the SVG, its width in pixels, its smallest width, and the table of the data if it has room."""
    svg = plot.inline_svg()
    width = round(svg_width(svg) * PIXELS_PER_POINT)
    table = plot.table if plot.table and len(plot.table.columns) <= MAX_COLUMNS else None
    return {"svg": svg, "width": width, "min_width": min(width, MIN_WIDTH), "table": table}


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
