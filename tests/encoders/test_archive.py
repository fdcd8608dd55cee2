"""Files of torch.export with something in them that would run a program."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacenet.encoders.archive import clean_archive
from spacenet.encoders.loading import load_encoder
from spacenet.errors import SettingsError
from tests.encoders.support import save_exported

Parts = dict[str, bytes]
Change = Callable[[dict[str, Any]], object]
GRAPH, CONSTANTS = "archive/models/model.json", "archive/data/constants/model_constants_config.json"


def changed(path: Path, change: Callable[[Parts], object]) -> bytes:
    with zipfile.ZipFile(save_exported(path)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return made.getvalue()


def in_graph(change: Change) -> Callable[[Parts], object]:
    def apply(parts: Parts) -> None:
        facts = json.loads(parts[GRAPH])
        change(facts)
        parts[GRAPH] = json.dumps(facts).encode()

    return apply


def first_node(**values: Any) -> Callable[[Parts], object]:
    return in_graph(lambda facts: facts["graph_module"]["graph"]["nodes"][0].update(values))


def with_size(text: str) -> Callable[[Parts], object]:
    size = [{"as_expr": {"expr_str": text, "hint": None}}]
    return in_graph(lambda facts: facts["graph_module"]["graph"]["tensor_values"]["input"].update(sizes=size))


@pytest.mark.parametrize(
    "change",
    [
        first_node(target="torch.os.system"),
        first_node(target="torch.ops.aten.from_file.default"),
        first_node(name="x=__import__('os').system('true')"),
        with_size("__import__('os').getpid()"),
        with_size("Symbol('s0').__class__"),
        with_size("Symbol('__import__(\"os\")')"),
        in_graph(lambda facts: facts["graph_module"].update(in_spec='{"__enum__": true, "fqn": "antigravity:x"}')),
        lambda parts: parts.update({"archive/data/constants/opaque_obj_0": pickle.dumps(1)}),
        lambda parts: parts.update({"archive/data/aotinductor/model/code.so": b""}),
        lambda parts: parts.update({CONSTANTS: b'{"config": {"c": {"path_name": "tensor_0", "use_pickle": true}}}'}),
    ],
)
def test_programs_are_refused(change: Callable[[Parts], object], tmp_path: Path) -> None:
    path = tmp_path / "tiny.pt2"
    path.write_bytes(changed(path, change))
    with pytest.raises(SettingsError, match="cannot be read by torch.export"):
        load_encoder(str(path))


def test_guards_and_notes_are_left_out(tmp_path: Path) -> None:
    content = changed(tmp_path / "tiny.pt2", in_graph(lambda facts: facts.update(guards_code=["print('!')"])))
    with zipfile.ZipFile(io.BytesIO(clean_archive(content))) as archive:
        facts = json.loads(archive.read(GRAPH))
    assert facts["guards_code"] == []
    assert "container.py" not in json.dumps(facts)
