"""`spacenet export MODEL --to onnx|torch`: the packed network in a file that is used without spacenet."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from tyro.conf import arg

from spacenet.cli.options import MARKERS
from spacenet.config.plain import to_plain
from spacenet.errors import SettingsError
from spacenet.model import export as files
from spacenet.model.file import load_model
from spacenet.option_types import Flag, OptionalPath
from spacenet.report.tables import bytes_text, table

DESCRIPTION = (
    "Write a model's network for use without spacenet. Unused units are gone; raw samples go in as 32-bit numbers, "
    "probabilities of the classes come out. The file is loaded and compared with the model before it gets its name."
)


@dataclass(frozen=True)
class Options:
    """Which model, as what, and where to."""

    model: Annotated[tyro.conf.Positional[Path], arg(metavar="MODEL")]
    """A model file, as spacenet run and spacenet learn write it."""
    to: Literal["onnx", "torch"]
    """onnx: one ONNX file. torch: a .pt2 file that torch.export.load reads."""
    out: OptionalPath = None
    """The file to write (default: beside the model, as .onnx or .pt2)."""
    json: Flag = False
    """Print what was written as JSON instead of tables."""


def export(arguments: list[str]) -> int:
    """Carry out `spacenet export …`."""
    options = tyro.cli(Options, prog="spacenet export", description=DESCRIPTION, args=arguments, config=MARKERS)
    source = options.model.expanduser()
    model = load_model(source)
    path = (options.out or source.with_suffix(files.FORMATS[options.to].suffix)).expanduser()
    if path.is_dir() or not path.parent.is_dir():
        raise SettingsError(f"out: {path} is not a file in a folder that is there")
    if path.resolve() == source.resolve():
        raise SettingsError(f"out: {path} is the model itself, which would be lost; choose another file")
    exported = files.export(model, path, options.to)
    if options.json:
        print(json.dumps(to_plain(exported), indent=1))
    else:
        _show(exported)
    return 0


def _show(exported: files.Exported) -> None:
    rows = [[layer.name, f"{layer.packed:,}", f"{layer.units:,}"] for layer in exported.layers]
    Console().print(table("Units in the file", ["layer", "packed", "of"], rows))
    print(f"Classes: {', '.join(map(str, exported.classes))}")
    print(f"Checked against the model: probabilities differ by at most {exported.max_difference:.1e}")
    print(f"Wrote {exported.path} ({bytes_text(exported.bytes)})")
