"""`spacenet export MODEL --to onnx|torch|mlflow`: the model in the form that another program takes."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from spacenet import model as model_package
from spacenet.cli.forms import ModelArgument, UnknownOption, parse
from spacenet.cli.output import output_file, print_tables
from spacenet.config.settings import to_plain
from spacenet.config.stream import DataConfig, TableConfig
from spacenet.data.preprocessing import Array
from spacenet.data.sources import read_for_evaluation
from spacenet.errors import SettingsError
from spacenet.model.export import FORMATS, Quantized, export_model
from spacenet.model.exported_part import find_target
from spacenet.model.file import load_model
from spacenet.model.mlflow_model import write_mlflow
from spacenet.model.model import Model
from spacenet.report.tables import Table
from spacenet.utils.files import save_bytes
from spacenet.utils.text import format_bytes, plural

LOADER = Path(model_package.__file__).with_name("onnx_predictor.py")
"""It is read as a file, not imported: it needs onnxruntime."""


DATA = (
    "Samples with labels, to print what quantization costs: .npz, .csv or .parquet with --label, .npy with --label "
    "FILE, or folders of images with one sub-folder per class, as for spacenet evaluate."
)


@dataclass(frozen=True)
class ExportOptions(TableConfig):
    """Write a model for use without spacenet, or with MLflow.

    Unused units are gone; raw samples go in as 32-bit numbers, probabilities of the classes come out, and with
    --unknown how typical each sample is, and whether it is unknown. A model with an encoder is written from pixels on:
    images as bytes (batch, 3, size, size), prepared as the file's metadata say. The file is loaded and compared with
    the model before it gets its name.
    """

    model: ModelArgument
    to: Literal["onnx", "torch", "mlflow"]
    """onnx: one ONNX file. torch: a .pt2 file that torch.export.load reads. mlflow: a folder that MLflow loads and
    serves, with the model file; it needs spacenet there."""
    out: Path | None = None
    """The file or folder to write (default: beside the model, as .onnx, .pt2 or -mlflow)."""
    without_encoder: bool = False
    """Write only the part behind the encoder: features go in."""
    unknown: UnknownOption = None
    with_loader: bool = False
    """Put onnx_predictor.py beside the ONNX file, a Python module that reads it with onnxruntime and numpy alone."""
    quantize: Literal["int8"] | None = None
    """Write the weights of an ONNX file in 8 bits, a quarter of the size; --data prints the loss of accuracy."""
    data: Annotated[tuple[Path, ...], arg(metavar="DATA …", help=DATA, help_behavior_hint="")] = ()
    json: bool = False
    """Print what was written as JSON instead of tables."""


def export(arguments: list[str]) -> int:
    options = parse(ExportOptions, arguments, "export")
    source = options.model.expanduser()
    model = load_model(source)
    if options.to == "mlflow":
        return _export_mlflow(model, source, options)
    path = output_file(options.out or source.with_suffix(FORMATS[options.to].suffix), inputs=[source])
    if options.with_loader and options.to != "onnx":
        raise SettingsError("reads ONNX files only; choose --to onnx", setting="with_loader")
    loader = output_file(path.with_name(LOADER.name), inputs=[source, path]) if options.with_loader else None
    exported = export_model(
        model, path, options.to, options.without_encoder, options.unknown, options.quantize, _read_data(model, options)
    )
    if loader is not None:
        save_bytes(loader, LOADER.read_bytes())
    if options.json:
        print(json.dumps(to_plain(exported), indent=1))
        return 0
    rows = [[layer.name, f"{layer.packed:,}", f"{layer.units:,}"] for layer in exported.layers]
    print_tables([Table("Units in the file", ["layer", "packed", "of"], rows)])
    print(f"Classes: {', '.join(map(str, exported.classes))}")
    print(f"Checked against the model: probabilities differ by at most {exported.max_difference:.1e}")
    if exported.unknown is not None:
        difference = f"{exported.typicality_difference:.1e}"
        print(f"Unknown: a typicality below {exported.unknown:g}, which differs by at most {difference}")
    if exported.quantized is not None:
        print_quantized(exported.quantized, exported.bytes)
    print(f"Wrote {exported.path} ({format_bytes(exported.bytes)})")
    if loader is not None:
        print(f"Wrote {loader}, which reads it with onnxruntime and numpy alone")
    return 0


def _export_mlflow(model: Model, source: Path, options: ExportOptions) -> int:
    for name in ("without_encoder", "with_loader", "quantize", "data"):
        if getattr(options, name):
            raise SettingsError("is not for --to mlflow, which takes the model file as it is", setting=name)
    path = options.out or source.with_name(f"{source.stem}-mlflow")
    write_mlflow(model, path.expanduser(), options.unknown)
    if options.json:
        print(json.dumps({"path": str(path), "format": options.to, "classes": model.classes}, indent=1))
    else:
        print(f"Wrote {path}; load it with mlflow.pyfunc.load_model({str(path)!r})")
    return 0


def _read_data(model: Model, options: ExportOptions) -> tuple[Array, Array] | None:
    if not options.data:
        return None
    if options.quantize is None:
        raise SettingsError("is for the loss by quantization; give --quantize int8 too", setting="data")
    config = DataConfig(**{field.name: getattr(options, field.name) for field in fields(TableConfig)})
    return read_for_evaluation(options.data, config, find_target(model, options.without_encoder))[:2]


def print_quantized(found: Quantized, size: int) -> None:
    """What quantization saves and costs."""
    print(f"Weights in 8 bits: {format_bytes(size)} instead of {format_bytes(found.bytes_before)}")
    if found.accuracy is None or found.accuracy_before is None:
        print(
            f"Probabilities of random inputs differ by up to {found.max_difference:.2g}; --data measures the accuracy"
        )
        return
    loss = f"accuracy {found.accuracy:.2f} % instead of {found.accuracy_before:.2f} %"
    labels = f"{found.different_labels} of them get another label"
    print(f"On {plural(found.samples, 'sample')} with labels: {loss}; {labels}")
