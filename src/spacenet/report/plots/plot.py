"""What a plot is, how all of them look, and how they become SVG, PNG and PDF.

Colors of text, lines and background are placeholders that a page replaces by its own, so that plots follow its light
and dark form. Colors with a meaning differ with any kind of color vision.
"""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spacenet.report.table import Table
from spacenet.utils.extras import require_extra
from spacenet.utils.files import save_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # matplotlib is optional, and imported when something is drawn
    Axes = Figure = Any

INK, MUTED, LINE, GROUND = "#1b1f24", "#5b6571", "#d4d9df", "#ffffff"  # text, secondary text, lines, background
CSS_VARIABLES = {INK: "--ink", MUTED: "--muted", LINE: "--line", GROUND: "--ground"}  # the page's names for them
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#a6a11c")
"""Okabe and Ito's colors, without the pale yellow and with two more: one for each of up to eight tasks or methods."""
COLORMAP = "cividis"  # for amounts: brighter is more, with any color vision
FigureFormat = Literal["svg", "png", "pdf"]
WIDTH = 7.2  # inches of a plot over the page's whole width; its text is then as large as the page's
DPI = 200
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text: it is small, can be searched, and follows the page's font
    "svg.hashsalt": "spacenet",  # the same plot gives the same file
    "pdf.fonttype": 42,  # TrueType, which journals ask for
    "font.family": "sans-serif",
    "font.size": 9,
    "text.parse_math": False,  # a class may be named $x_{$
    "grid.color": LINE,
    "legend.columnspacing": 1.2,
    "legend.handletextpad": 0.4,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), MUTED),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor"), "none"),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
}


@dataclass(frozen=True)
class Plot:
    """A plot, drawn when it is needed."""

    name: str
    """Of its file, without suffix: capacity-map."""
    title: str
    """What it shows, as a sentence."""
    text: str
    """The text alternative: what is drawn, and the numbers that matter."""
    draw: Callable[[], Figure]
    table: Table | None = None
    """Its data, where a table can show them."""

    def svg(self) -> str:
        """The content of an SVG file."""
        return _number_ids(self._render(format="svg", metadata={"Date": None, "Creator": None}).decode())

    def inline_svg(self) -> str:
        """For a page: follows its colors and its width, has a text alternative, and shares no id with other plots."""
        drawn = self.svg()
        for color, name in CSS_VARIABLES.items():
            drawn = drawn.replace(color, f"var({name})")
        drawn = _number_ids(drawn, f"{self.name}-")
        opening = (
            f'<svg class="plot" viewBox="{_view_box(drawn)}" role="img" aria-label="{escape(self.text)}" '
            'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        )
        return opening + drawn[drawn.index(">", drawn.index("<svg")) + 1 :]

    def png(self) -> bytes:
        """The content of a PNG file, on a transparent background."""
        return self._render(format="png", dpi=DPI)

    def pdf(self) -> bytes:
        """The content of a PDF file, with its fonts embedded. The same plot gives the same file."""
        return self._render(format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})

    def save(self, folder: Path, formats: Sequence[FigureFormat] = ("svg", "png")) -> list[Path]:
        """Write it as a file of each format, for a paper."""
        written = []
        for each in formats:
            content: bytes | str = getattr(self, each)()
            path = folder / f"{self.name}.{each}"
            save_bytes(path, content.encode() if isinstance(content, str) else content)
            written.append(path)
        return written

    def _render(self, **options: Any) -> bytes:
        file = io.BytesIO()
        with import_matplotlib().rc_context(STYLE):
            self.draw().savefig(file, **options)
        return file.getvalue()


def import_matplotlib(module: str = "matplotlib") -> Any:
    """Matplotlib or a module of it, or an error that says how to install it."""
    return require_extra("report", "report", module)


def new_figure(height: float) -> Figure:
    """An empty figure, in inches. It is not pyplot's: nothing is shown, nothing has to be closed."""
    figure: Figure = import_matplotlib("matplotlib.figure").Figure(figsize=(WIDTH, height), layout="constrained")
    return figure


def new_axes(height: float) -> tuple[Figure, Axes]:
    """A figure with one pair of axes."""
    figure = new_figure(height)
    return figure, figure.subplots()


def task_colors(count: int) -> Sequence[str]:
    """A color for each task or method: from the palette as far as it goes, else in order of brightness."""
    if count <= len(PALETTE):
        return PALETTE[:count]
    matplotlib = import_matplotlib()
    shades = matplotlib.colormaps["viridis"]
    return [matplotlib.colors.to_hex(shades(0.05 + 0.9 * number / (count - 1))) for number in range(count)]


def svg_width(svg: str) -> float:
    """The width of an SVG drawing in points."""
    return float(_view_box(svg).split()[2])


def _view_box(svg: str) -> str:
    return str(re.findall(r'viewBox="([^"]+)"', svg)[0])


def _number_ids(svg: str, prefix: str = "") -> str:
    """Number the ids that something refers to, and drop the others.

    Matplotlib makes some ids from floats whose last digits vary, and gives equal images the same one.
    """
    used = dict.fromkeys(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    names = {name: f"{prefix}e{number}" for number, name in enumerate(used)}
    svg = re.sub(r' id="([^"]+)"', lambda found: f' id="{names[found[1]]}"' if found[1] in names else "", svg)
    return re.sub(r'(url\(#|href="#)([^")]+)', lambda found: found[1] + names[found[2]], svg)
