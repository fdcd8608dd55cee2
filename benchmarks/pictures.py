"""Plots on pages of the documentation."""

from pathlib import Path

from spacenet.report.plots.plot import GROUND, Plot
from spacenet.utils.files import make_folder, save_text

DOCS = Path(__file__).parent.parent / "docs"


def show_plot(plot: Plot) -> str:
    """Its place on the page; the picture itself is written beside, on a ground of its own, for pages of any color."""
    drawn = plot.svg()
    end = drawn.index(">", drawn.index("<svg")) + 1
    ground = f'<rect width="100%" height="100%" fill="{GROUND}"/>'
    make_folder(DOCS / "pictures")
    save_text(DOCS / "pictures" / f"{plot.name}.svg", drawn[:end] + ground + drawn[end:])
    return f"### {plot.title}\n\n![{plot.text}](pictures/{plot.name}.svg)\n"
