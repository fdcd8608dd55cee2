"""What a picture is, how all of them look, and how they become SVG and PNG.

Colours of text, lines and ground are written as marks that the page replaces by its own, so that pictures follow its
light and dark form. Colours that mean something stay apart for people with any kind of colour vision.
"""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacenet.utils.extras import require_extra
from spacenet.utils.files import save_bytes, save_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, LINE, GROUND = "#1b1f24", "#5b6571", "#d4d9df", "#ffffff"
"""Text, lesser text, lines and empty places."""
MARKS = {INK: "--ink", MUTED: "--muted", LINE: "--line", GROUND: "--ground"}
"""The page's names for them (CSS variables)."""
TASKS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#a6a11c")
"""Okabe and Ito's colours, without the pale yellow and with two more: one for each of up to eight tasks or methods."""
AMOUNT = "cividis"
"""The colour map for amounts: brighter is more, in any colour vision."""
WIDTH = 7.2
"""Inches of a picture over the page's whole width; letters are then as large as the page's."""
DPI = 200


@dataclass(frozen=True)
class Plot:
    """A picture, drawn when it is needed."""

    name: str
    """Of its file, without suffix: capacity-map."""
    title: str
    """What to see in it, as a sentence."""
    text: str
    """The same for those who do not see it: what is drawn, and the figures that matter."""
    draw: Callable[[], "Figure"]

    def svg(self) -> str:
        """A file of its own."""
        file = io.BytesIO()
        with _look():
            self.draw().savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        return _numbered(file.getvalue().decode())

    def inline(self) -> str:
        """For a page: follows its colours and its width, says what it shows, and shares no name with other pictures."""
        drawn = self.svg()
        body = drawn[drawn.index("<svg") :]
        for colour, name in MARKS.items():
            body = body.replace(colour, f"var({name})")
        body = re.sub(r'\bid="([^"]+)"', rf'id="{self.name}-\1"', body)
        body = re.sub(r'(url\(#|href="#)', rf"\g<1>{self.name}-", body)
        size = re.search(r'viewBox="([^"]+)"', body)
        assert size is not None
        opening = (
            f'<svg class="picture" viewBox="{size[1]}" role="img" aria-label="{escape(self.text)}" '
            'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        )
        return opening + body[body.index(">", body.index("<svg")) + 1 :]

    def png(self) -> bytes:
        """The same as pixels, on a transparent ground."""
        file = io.BytesIO()
        with _look():
            self.draw().savefig(file, format="png", dpi=DPI)
        return file.getvalue()

    def save(self, folder: Path) -> list[Path]:
        """Write it as SVG and PNG, for a paper."""
        save_text(folder / f"{self.name}.svg", self.svg())
        save_bytes(folder / f"{self.name}.png", self.png())
        return [folder / f"{self.name}.svg", folder / f"{self.name}.png"]


def new_figure(height: float, width: float = WIDTH) -> "Figure":
    """An empty figure, in inches. No pyplot: nothing is shown, nothing has to be closed."""
    figure_class: Any = require_extra("report", "report", "matplotlib.figure").Figure
    figure: Figure = figure_class(figsize=(width, height), layout="constrained")
    return figure


def colours(count: int) -> Sequence[str]:
    """A colour for each of so many tasks or methods: of their own as far as they go, then in order of brightness."""
    if count <= len(TASKS):
        return TASKS[:count]
    matplotlib = require_extra("report", "report", "matplotlib")
    shades = matplotlib.colormaps["viridis"]
    return [matplotlib.colors.to_hex(shades(0.05 + 0.9 * number / (count - 1))) for number in range(count)]


def _look() -> Any:
    """The settings of all pictures."""
    return require_extra("report", "report", "matplotlib").rc_context(
        {
            "svg.fonttype": "none",  # text stays text: it is small, can be searched, and follows the page's font
            "svg.hashsalt": "spacenet",  # the same picture gives the same file
            "font.family": "sans-serif",
            "font.size": 9,
            "text.parse_math": False,  # a class may be called $x_{$
            "text.color": INK,
            "axes.edgecolor": MUTED,
            "axes.labelcolor": INK,
            "axes.facecolor": "none",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.facecolor": "none",
            "savefig.facecolor": "none",
            "xtick.color": MUTED,
            "ytick.color": MUTED,
            "xtick.labelcolor": INK,
            "ytick.labelcolor": INK,
            "grid.color": LINE,
            "legend.frameon": False,
        }
    )


def _numbered(drawn: str) -> str:
    """The same SVG with names in the order in which they come. Matplotlib makes some of them from numbers whose last
    digits are not the same every time."""
    names = {name: f"e{number}" for number, name in enumerate(dict.fromkeys(re.findall(r'\bid="([^"]+)"', drawn)))}
    return re.sub(r'(\bid="|url\(#|href="#)([^")]+)', lambda found: found[1] + names.get(found[2], found[2]), drawn)
