"""`spacenet report`: a page that shows what a run did, or a comparison. Other commands write it when they end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import arg

from spacenet.cli.forms import parse
from spacenet.cli.output import output_file
from spacenet.errors import SettingsError
from spacenet.report.page.build import default_page_path, page_from_folders, save_figures, save_page, save_tables
from spacenet.report.plots.plot import FigureFormat
from spacenet.utils.text import format_bytes

SUFFIXES = (".html", ".htm")


@dataclass(frozen=True)
class ReportOptions:
    """Show what was learned, forgotten and confused, and how the network's space was used: one HTML file that needs
    nothing else. One run, or its seeds, gives its page; several methods on one stream give a comparison.
    """

    folders: Annotated[
        tyro.conf.Positional[tuple[Path, ...]],
        arg(metavar="DIR …", help="A run, a folder of seeds, a comparison, or several of them.", help_behavior_hint=""),
    ]
    out: Path | None = None
    """The file to write (default: report.html in DIR; for several DIRs, in the current folder)."""
    figures: Path | None = None
    """Write every plot into this folder too."""
    format: tuple[FigureFormat, ...] = ("svg", "png")
    """The formats of these plots: svg, png, pdf, or several."""
    tables: Path | None = None
    """Write every table, and the data of every plot, into this folder as LaTeX (booktabs) and CSV."""
    beside: Path | None = None
    """Another run on the same stream, static-sparse's say, to compare how both use the inputs."""


def report(arguments: list[str]) -> int:
    options = parse(ReportOptions, arguments, "report")
    if not options.folders:
        raise SettingsError("give the folder of a run: spacenet report DIR")
    path = output_file(options.out) if options.out else default_page_path(options.folders).expanduser()
    if path.exists() and path.suffix not in SUFFIXES:
        raise SettingsError(f"{path} exists and is not a page, it would be lost; choose another file", setting="out")
    page = page_from_folders([folder.expanduser() for folder in options.folders], options.beside)
    save_page(page, path)
    print(f"Wrote {path} ({format_bytes(path.stat().st_size)}); open it in a browser")
    if options.figures is not None:
        written = save_figures(page, options.figures.expanduser(), options.format)
        print(f"Wrote {len(written)} files of figures to {options.figures}")
    if options.tables is not None:
        written = save_tables(page, options.tables.expanduser())
        print(f"Wrote {len(written)} files of tables to {options.tables}")
    return 0
