"""The model file: small, the same after a round trip, and nothing a file can say does harm."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from spacenet.config.model import NetConfig
from spacenet.errors import DataError, FileError, ModelFileError
from spacenet.model.file import FORMAT, MAX_HEADER, from_bytes, load_model, save_model, to_bytes
from spacenet.model.file_parts import Arrays
from spacenet.model.model import Model
from tests.model.forging import Change, Facts, forged, put, replaced, say
from tests.model.support import DENSITY_CASES, blobs, density_model, model, model_config, new_model


@pytest.fixture(scope="module")
def learned() -> Model:
    return model([0, 1], ["cat", "dog"])


@pytest.fixture(scope="module")
def described() -> dict[str, Model]:
    """Models with class statistics, by their representation."""
    return {kind: density_model(kind) for kind in DENSITY_CASES}


def test_a_round_trip_changes_nothing(learned: Model, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_model(path, learned)
    again = load_model(path)
    assert to_bytes(again) == path.read_bytes() == to_bytes(learned)
    assert (again.classes, again.tasks, again.config) == (learned.classes, learned.tasks, learned.config)
    x = blobs([0, "cat"])[0]
    np.testing.assert_array_equal(again.predict_proba(x), learned.predict_proba(x))
    assert {each.name for each in tmp_path.iterdir()} == {"model.safetensors"}


def test_what_is_learned_after_loading_is_the_same_to_the_bit(learned: Model) -> None:
    went_on, loaded = copy.deepcopy(learned), from_bytes(to_bytes(learned))
    for each in (went_on, loaded):
        each.learn(*blobs([7, 8, 0]))
    assert to_bytes(went_on) == to_bytes(loaded)


def test_a_grown_network_and_images_come_back(tmp_path: Path) -> None:
    grown = model([0, 1], [2, 3], [4, 5], selected=(15,), reserved=(10,), expand="auto")
    assert from_bytes(to_bytes(grown)).method.ledger.size("hidden1") == grown.method.ledger.size("hidden1") > 30
    maps = Model(model_config(net=NetConfig("small-cnn", (4, 4, 6)), selected=(0,), reserved=(1,)), (1, 8, 8))
    maps.learn(*blobs([0, 1], 4, (1, 8, 8)))
    again = from_bytes(to_bytes(maps))
    x = blobs([0, 1], 4, (1, 8, 8))[0]
    np.testing.assert_array_equal(again.predict_proba(x), maps.predict_proba(x))


def test_it_takes_little_more_than_six_bytes_for_a_connection() -> None:
    wide = new_model((1000,), selected=(0,), reserved=(4,), connections=(0.5,))
    wide.learn(*blobs([0, 1], 5, (1000,)))
    count = sum(map(len, wide.method.ledger.connections.values()))
    header_and_mean = 12_000
    assert len(to_bytes(wide)) < 6.2 * count + header_and_mean


def test_an_unlearned_model_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has not learned anything yet"):
        save_model(tmp_path / "model", new_model())
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_says_so(learned: Model, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="nowhere.*lock"):
        save_model(tmp_path / "nowhere" / "model", learned)


FIRST = "links/input-hidden1"


def _twice(facts: Facts, arrays: Arrays) -> None:
    arrays[f"{FIRST}/source"][1] = arrays[f"{FIRST}/source"][0]
    arrays[f"{FIRST}/rows"][0, 2] = max(2, arrays[f"{FIRST}/rows"][0, 2])
    arrays[f"{FIRST}/rows"][1, 2] = arrays[f"{FIRST}/rows"][:, 2].sum()


def _far_apart(facts: Facts, arrays: Arrays) -> None:
    """Few connections, but between so many units that the packed network would fill the memory."""
    width = 20_000
    facts["config"]["net"]["hidden"] = [width, width]
    for name in ("hidden1", "hidden2"):
        arrays[f"state/{name}"] = np.full(width, -1, np.int16)
        arrays[f"units/{name}.bias"] = np.zeros(width, np.float32)
    units = np.arange(width)
    ones, one = np.ones(width), np.zeros(width)
    for link, target, source in (
        ("input-hidden1", units, one),
        ("hidden1-hidden2", units, units),
        ("hidden2-output", [0], units),
    ):
        rows = [np.zeros(len(target)), target, ones if len(target) > 1 else [width]]
        arrays[f"links/{link}/rows"] = np.stack(rows, axis=1).astype(np.uint32)
        kind = np.uint8 if link.startswith("input") else np.uint16
        arrays[f"links/{link}/source"] = np.asarray(source).astype(kind)
        arrays[f"links/{link}/value"] = np.ones(width, np.float32)


def _nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


CRAFTED: dict[str, tuple[Change, str]] = {
    "newer": (say("format", FORMAT + 1), f"newer spacenet, in format {FORMAT + 1}"),
    "older": (say("format", FORMAT - 1), f"older spacenet, in format {FORMAT - 1}"),
    "no format": (say("format", "1"), "names no format"),
    "no configuration": (say("config", []), "config"),
    "a section that is none": (say("config.net", 3), r"\[net\] must be a section"),
    "unknown section": (say("config.magic", {}), "magic"),
    "a method without a name": (say("config.method.name", 3), "name must be text"),
    "seed of another kind": (say("config.seed", "1"), "seed"),
    "unknown setting": (say("config.method.magic", 1), "magic"),
    "unknown method": (say("config.method.name", "magic"), "magic"),
    "another kind of method": (say("config.method", {"name": "naive"}), "unknown content .links/"),
    "unknown net": (say("config.net.name", "magic"), "magic"),
    "absurd width": (say("config.net.hidden", [10**15, 30]), "hidden: .* is out of range"),
    "other width": (say("config.net.hidden", [10**6, 30]), "hidden1 is missing or of the wrong size"),
    "absurd depth": (say("config.net.hidden", [1] * 100_000), "more than 10,000 values"),
    "more layers than arrays": (say("config.net.hidden", [1] * 5_000), "more layers"),
    "absurd residual net": (say("config.net", {"name": "wrn-999999994-1", "hidden": []}), "wrn"),
    "absurd input": (say("input_shape", [10**12]), "input shape"),
    "negative input": (say("input_shape", [-8]), "input_shape"),
    "no input": (say("input_shape", []), "input shape"),
    "negative seed": (say("config.seed", -1), "seed"),
    "scale": (say("scale", float("nan")), "scale"),
    "scale of zero": (say("scale", 0.0), "scale: 0 would make all inputs equal"),
    "absurd scale": (say("scale", 1e300), "scale: .* is out of range"),
    "scale with many digits": (say("scale", 10**400), "scale has a number with more than 300 digits"),
    "an input of true": (say("input_shape", [True]), "input_shape"),
    "figures without end": (say("metrics", {"acc": 10**400}), "metrics has a number with more than 300 digits"),
    "figures within figures": (say("metrics", {"acc": _nested(300)}), "metrics has more than 20 levels"),
    "figures of another kind": (say("metrics", [1]), "metrics must be a section"),
    "unknown layer to expand": (say("config.method.expand", "3:magic=4"), "unknown layer 'magic'"),
    "absurd expansion": (say("config.method.expand", "3:hidden1=99999999999"), "adds more than 10,000,000 units"),
    "tasks of another kind": (say("tasks", [{"a": 1}]), "tasks: not lists of classes"),
    "a label that is a list": (say("tasks", [[0, 1], [2, ["a"]]]), "tasks"),
    "a label that is no text": (say("tasks", [[0, 1], ["a", "\ud800"]]), "not text"),
    "a label too long": (say("tasks", [[0, 1], ["a", "b" * 5000]]), "at most 1000"),
    "a label too large": (say("tasks", [[0, 1], [2, 2**63]]), "too large"),
    "an infinite label": (say("tasks", [[0, 1], [2.0, float("inf")]]), "not finite"),
    "true for a width": (say("config.net.hidden", [30, True]), "hidden"),
    "negative selection": (say("config.method.selected", [-1]), "selected"),
    "NaN connections": (say("config.method.connections", [float("nan")]), "connections"),
    "negative connections": (say("config.method.connections", [-1.0]), "connections"),
    "true for a batch": (say("config.training.batch_size", True), "batch_size"),
    "absurd learning rate": (say("config.training.learning_rate", 1e300), "learning_rate"),
    "absurd threads": (say("config.training.threads", 65536), "threads"),
    "unknown precision": (say("config.training.precision", "64"), "precision"),
    "no tasks": (say("tasks", []), "no classes"),
    "no classes": (say("tasks", [[], []]), "no classes"),
    "another number of classes": (say("tasks", [[0, 1], [2, 3, 4]]), "output.bias"),
    "label of another kind": (say("tasks", [[0, 1], [2, {}]]), "tasks"),
    "learning rate": (say("config.training.learning_rate", -1.0), "learning_rate"),
    "owner": (put(f"{FIRST}/rows", (-1, 0), 2), "owner that does not exist"),
    "target": (put(f"{FIRST}/rows", (-1, 1), 30), "unit that does not exist"),
    "source": (put(f"{FIRST}/source", 0, 8), "unit that does not exist"),
    "count": (put(f"{FIRST}/rows", (0, 2), 4_000_000_000), "do not add up"),
    "order": (replaced(f"{FIRST}/rows", lambda rows: rows[::-1].copy()), "out of order"),
    "twice": (_twice, "add up|twice"),
    "NaN weight": (put(f"{FIRST}/value", 0, np.nan), "not a number"),
    "infinite bias": (put("units/hidden1.bias", 0, np.inf), "not possible"),
    "NaN mean": (put("normalization/mean", 0, np.nan), "normalization"),
    "zero std": (put("normalization/std", 0, 0.0), "standard deviation"),
    "state": (put("state/hidden1", 0, 2), "reserved by a task"),
    "state below": (put("state/hidden1", 0, -2), "reserved by a task"),
    "reserved before": (lambda facts, arrays: arrays["state/hidden1"].fill(0), "reserved before"),
    "missing": (replaced("state/hidden2", lambda array: None), "state/hidden2 is missing"),
    "short": (replaced("units/hidden1.bias", lambda array: array[:-1].copy()), "wrong size"),
    "another type": (replaced(f"{FIRST}/value", lambda array: array.astype(np.float64)), "wrong size"),
    "more dimensions": (replaced(f"{FIRST}/source", lambda array: array[None].copy()), "wrong size"),
    "unknown content": (lambda facts, arrays: arrays.update(magic=np.zeros(3)), "magic"),
    "far apart": (_far_apart, "far apart"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused(name: str, learned: Model) -> None:
    change, reason = CRAFTED[name]
    with pytest.raises(ModelFileError, match=reason):
        from_bytes(forged(learned, change))


def test_forging_nothing_gives_a_file_that_is_read(learned: Model) -> None:
    assert to_bytes(from_bytes(forged(learned, lambda facts, arrays: None))) == to_bytes(learned)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a model file"),
        (b"abc", "not a model file"),
        (b"\xff" * 100, "not a model file"),
        (MAX_HEADER.to_bytes(8, "little") + b"{", "header cannot be read"),
        ((MAX_HEADER + 1).to_bytes(8, "little") + b" " * 10, "not a model file"),
        ((200_000).to_bytes(8, "little") + b"[" * 200_000, "header cannot be read"),
        (bytes(save({"a": np.zeros(3)})), "not a model to use"),
    ],
)
def test_what_is_no_model_file_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=rf"{path}: .*{reason}"):
        load_model(path)


def test_a_missing_file_a_folder_and_a_cut_one_are_refused(learned: Model, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no such file"):
        load_model(tmp_path / "none")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_model(tmp_path)
    (tmp_path / "cut").write_bytes(to_bytes(learned)[:-1])
    with pytest.raises(ModelFileError, match="cut off"):
        load_model(tmp_path / "cut")


def test_a_flipped_bit_of_a_weight_is_found(learned: Model, tmp_path: Path) -> None:
    content = bytearray(to_bytes(learned))
    content[-1] ^= 1
    with pytest.raises(ModelFileError, match="checksum"):
        from_bytes(bytes(content))


@pytest.mark.parametrize(("kind", "times"), [("", 2_000), ("features", 300)])
def test_thousands_of_corruptions_do_no_harm(
    kind: str, times: int, learned: Model, described: dict[str, Model], tmp_path: Path
) -> None:
    """In a process of its own, so that its memory can be measured."""
    path = tmp_path / "model.safetensors"
    save_model(path, described[kind] if kind else learned)
    script = Path(__file__).with_name("corruptions.py")
    done = subprocess.run(
        [sys.executable, script, path, str(times)], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["refused"] + figures["identical"] == times
    assert figures["refused"] > 0.9 * times
    assert figures["slowest_seconds"] < 1
    assert figures["megabytes"] < 500
