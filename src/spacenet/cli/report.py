"""`spacenet report`: a page that shows what a run did, or a comparison. Other commands make it when they end."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import arg

from spacenet.cli.options import MARKERS
from spacenet.errors import SettingsError, SpacenetError
from spacenet.option_types import OptionalPath
from spacenet.report.page.build import build_page, usual_place
from spacenet.report.page.page import save_figures, save_page
from spacenet.report.tables import bytes_text

DESCRIPTION = (
    "Show what was learned, forgotten and confused, and how the network's space was used: one HTML file that needs "
    "nothing else. One run, or its seeds, gives its page; several methods on one stream give a comparison."
)
SUFFIXES = (".html", ".htm")


@dataclass(frozen=True)
class ReportOptions:
    """What the page is about, and where it goes."""

    folders: Annotated[
        tyro.conf.Positional[tuple[Path, ...]],
        arg(metavar="DIR …", help="A run, a folder of seeds, a comparison, or several of them.", help_behavior_hint=""),
    ]
    out: OptionalPath = None
    """The file to write (default: report.html in DIR; of several DIRs, in the folder you are in)."""
    figures: OptionalPath = None
    """Write every picture into this folder too, as SVG and PNG."""
    beside: OptionalPath = None
    """Another run on the same stream, spacenet's beside static-sparse's say, to see both look at the inputs."""

    def __post_init__(self) -> None:
        if not self.folders:
            raise SettingsError("which run? Give its folder: spacenet report DIR")


def report(arguments: list[str]) -> int:
    """Carry out `spacenet report …`."""
    options = tyro.cli(ReportOptions, prog="spacenet report", description=DESCRIPTION, args=arguments, config=MARKERS)
    path = (options.out or usual_place(options.folders)).expanduser()
    if options.out is not None and (path.is_dir() or not path.parent.is_dir()):
        raise SettingsError(f"out: {path} is not a file in a folder that is there")
    if path.exists() and path.suffix not in SUFFIXES:
        raise SettingsError(f"out: {path} is there and is no page, it would be lost; choose another file")
    page = build_page([folder.expanduser() for folder in options.folders], options.beside)
    save_page(page, path)
    print(f"Wrote {path} ({bytes_text(path.stat().st_size)}); open it in a browser")
    if options.figures is not None:
        written = save_figures(page, options.figures.expanduser())
        print(f"Wrote {len(written)} files of figures to {options.figures}")
    return 0


def report_after(folders: Sequence[Path], path: Path, *, silent: bool, failures: Sequence[str] | None = None) -> None:
    """Make the page when runs have ended. They are saved by then, so whatever goes wrong here is a line, no failure."""
    try:
        save_page(build_page(folders, failures=failures), path)
        line = f"Pictures of it are in {path}"
    except SpacenetError as error:
        line = f"No page of pictures was made: {error}"
    except Exception as error:  # a fault of ours must not look as if the run had failed
        line = f"No page of pictures was made: {type(error).__name__}: {error} (a fault in the program)"
    if not silent:
        print(line)
