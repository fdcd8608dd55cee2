"""The archive of a network that torch.export wrote, with nothing in it that could run a program.

`torch.export.load` alone does not promise that: such an archive may hold pickles and compiled libraries, names of any
function, and texts that are evaluated as Python. Here only the parts are taken that a plain network needs, every text
in its graph is checked, and torch reads a new archive made of them.
"""

import ast
import json
import re
import zipfile
from io import BytesIO
from typing import Any

MEMBER = re.compile(
    r"([^/]+/)?(data/weights/(weight_\d+|\w+_weights_config\.json)|data/constants/(tensor_\d+|\w+_constants_config\.json)"
    r"|models/\w+\.json|data/sample_inputs/\w+\.pt|archive_format|archive_version|byteorder|version|\.data/\w+"
    r"|\.format_version|\.storage_alignment|extra/[\w.]+"
    r"|extra_files/[\w.]+|serialized_\w+\.(json|pt))"
)
"""What an archive may hold, as this torch or earlier ones wrote it.

Pickles of tensors are read by torch's own reader, which makes nothing but tensors.
"""
TARGET = re.compile(
    r"torch\.ops\.aten\.(?!from_file\b)\w+\.\w+|_operator\.(add|sub|mul|floordiv|mod|eq|ne|ge|gt|le|lt|getitem)"
)
"""Functions of a graph."""
NAME = re.compile(r"[\w.]*")
"""Names and types; none of them is Python when it is written into the source of a function."""
SPEC = re.compile(r'[\w.\[\]{}",:\s-]*')
"""How arguments are nested, as a JSON text."""
PATTERNS = {"target": TARGET, "in_spec": SPEC, "out_spec": SPEC, "torch_version": re.compile(r"[\w.+-]*")}
SYMBOLS = ("Symbol", "Integer", "Max", "Min", "Mod", "PythonMod", "FloorDiv", "CeilDiv", "CleanDiv", "IntTrueDiv")
EXPRESSION = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.keyword, ast.Call),
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop),
)
"""What a size that follows from others is made of."""

EMPTIED: dict[str, Any] = {"metadata": {}, "guards_code": []}
"""Notes that name source files, and guards, which are Python."""


def clean_archive(content: bytes) -> bytes:
    """A new archive with the checked parts of another one. Raises `ValueError` for anything that is not expected."""
    made = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as given, zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as clean:
        members = given.infolist()
        names = [info.filename for info in members]
        if len(set(names)) != len(names) or sum(info.file_size for info in members) > len(content):
            raise ValueError("parts with equal names, or compressed ones")
        for info in members:
            if not MEMBER.fullmatch(info.filename):
                raise ValueError(f"it holds {info.filename[:60]!r}, which is more than a plain network")
            part = given.read(info)
            if info.filename.endswith(".json"):
                part = json.dumps(_checked(json.loads(part))).encode()
            clean.writestr(info.filename, part)
    return made.getvalue()


def _checked(value: Any, key: str = "") -> Any:
    """A part of a graph without its notes for debugging, in which all texts are harmless."""
    if isinstance(value, dict):
        if value.get("use_pickle"):
            raise ValueError("a pickle")
        for name in value:
            _match(NAME, name)
        return {name: EMPTIED[name] if name in EMPTIED else _checked(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_checked(part, key) for part in value]
    if isinstance(value, str):
        if key == "expr_str":
            _check_expression(value)
        else:
            _match(PATTERNS.get(key, NAME), value)
        if "__" in value and key in ("in_spec", "out_spec"):
            raise ValueError("an argument of its own type")
    return value


def _match(pattern: re.Pattern[str], text: str) -> None:
    if not pattern.fullmatch(text):
        raise ValueError(f"it uses {text[:60]!r}, which is more than a plain network")


def _check_expression(text: str) -> None:
    """Raise `ValueError` unless a text is arithmetic with sizes."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        called = not isinstance(node, ast.Call) or (isinstance(node.func, ast.Name) and node.func.id in SYMBOLS)
        named = not isinstance(node, ast.Name) or node.id in SYMBOLS or re.fullmatch(r"[suz]\d+", node.id)
        plain = not (isinstance(node, ast.Constant) and isinstance(node.value, str)) or NAME.fullmatch(node.value)
        if not (isinstance(node, EXPRESSION) and called and named and plain):
            raise ValueError(f"it has a size {text[:60]!r}, which is more than arithmetic")
