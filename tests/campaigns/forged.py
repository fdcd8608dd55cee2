"""Model files with damaged content and corrected checksums, and settings files with extreme values:

    python -m tests.campaigns.forged --files 10000 --configs 2000

Each file is refused with `ModelFileError`, or it is accepted and then used: inspected, asked for predictions and for
the space left, saved and loaded again, and taught one more task. All of it must work, or be refused with one of the
project's own errors, within 1 s of processor time and 500 MB; never another exception, an abort or a hang. Settings
files are refused with exit code 2 and a message that names the setting, or the run works; see `forged_settings`.

The further task is learned for one epoch, in batches of 4, with one thread and one pass over the data for batch norm,
whatever the file says: large numbers within their bounds only mean long work, and are not wrong.

File number n has the seed n, so that `--seed N --files 1 --configs 0` does one again.
"""

import argparse
import copy
import json
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError

from spacenet.config.model import NetConfig
from spacenet.config.training import TrainingConfig
from spacenet.errors import ModelFileError, SpacenetError
from spacenet.methods import get_method
from spacenet.model.file import encode, load_model, make_probe, save_model
from spacenet.model.file_parts import Arrays
from spacenet.model.inspection import inspect_model
from spacenet.model.model import Model
from spacenet.registry import METHODS
from spacenet.space.blueprint import Blueprint
from tests.campaigns import forged_settings
from tests.campaigns.children import PROBLEM, Case, Outcome, in_children, tabulate
from tests.campaigns.mutations import damage_arrays, damage_facts, expand_marks, grown, reshaped_inputs
from tests.model.forging import seal
from tests.model.support import blobs, density_model, model, model_config

REFUSED, USED, LIMITED = "refused", "used", "limited"
RESULTS = (REFUSED, USED, LIMITED, PROBLEM)
"""Refused when loaded; accepted and all uses worked; accepted, and some use was refused with an own error."""
IMAGES = (1, 8, 8)
SHORT = TrainingConfig(epochs=2, batch_size=8, learning_rate=0.05)
MAPS: dict[str, Any] = {"selected": (6,), "reserved": (1,), "connections": (0.08,)}


def image_model(net: NetConfig, *tasks: list[Any], **settings: Any) -> Model:
    learned = Model(model_config(net=net, training=SHORT, **{**MAPS, **settings}), IMAGES)
    for task in tasks or ([0, 1], [2, 3]):
        learned.learn(*blobs(task, 8, IMAGES))
    return learned


def rival_of_images(name: str) -> Model:
    """A model of a method that divides no network among tasks, with batch norm and feature maps."""
    learned = Model(model_config(name, NetConfig("small-cnn", (6, 6, 8)), training=SHORT), IMAGES)
    learned.learn(*blobs([0, 1], 8, IMAGES))
    if not learned.method.needs_old_data:
        learned.learn(*blobs([2, 3], 8, IMAGES))
    return learned


RIVALS = tuple(name for name in METHODS if not get_method(name).divides_network)
"""Methods that divide no network among tasks."""
ONE_TASK: dict[str, tuple[list[int], ...]] = {"joint": ([0, 1],)}
"""What a method learns that can learn no second task."""
DIVIDED: dict[str, Callable[[], Model]] = {
    "mlp": lambda: model(),
    "mlp, labels of several types": lambda: model([0, 1], ["cat", "dog"], [0.5, 2.5], [True, False]),
    "mlp, expanded": lambda: model([0, 1], [2, 3], [4, 5], selected=(15,), reserved=(10,), expand="auto"),
    "static-sparse, logits": lambda: model(method="static-sparse", balance="logits"),
    "static-sparse, weights": lambda: model(["a", "b"], ["c", "d"], method="static-sparse", balance="weights"),
    "rehearsal of statistics": lambda: model(
        method="spacenet-rehearsal", replay="statistics", replay_components=2, replay_directions=3
    ),
    "density, inputs": lambda: density_model("inputs"),
    "density, edges": lambda: density_model("edges"),
    "density, features": lambda: density_model("features"),
    "small-cnn": lambda: image_model(NetConfig("small-cnn", (16, 16, 16))),
    "small-cnn, rotations": lambda: image_model(NetConfig("small-cnn", (16, 16, 16)), rotations="all"),
    "wrn-10-1": lambda: image_model(NetConfig("wrn-10-1"), selected=(0,), reserved=(4,), connections=(0.1,)),
}
SHARED: dict[str, Callable[[], Model]] = {
    **{name: partial(model, *ONE_TASK.get(name, ()), method=name) for name in RIVALS},
    **{f"{name}, images": partial(rival_of_images, name) for name in RIVALS},
}
MODELS = {**DIVIDED, **SHARED}
"""How a model of each kind is made: with a network that is divided among tasks, or otherwise."""


@dataclass(frozen=True)
class Good:
    """A model's content, to be damaged."""

    facts: dict[str, Any]
    arrays: Arrays
    blueprint: Blueprint


@cache
def good(kind: str) -> Good:
    learned = MODELS[kind]()
    text, arrays = encode(learned)
    return Good(json.loads(text), arrays, learned.method.blueprint)


def forge(number: int) -> tuple[str, bytes]:
    """A kind of model, and the file that this number stands for."""
    rng = random.Random(number)
    kind = rng.choice(rng.choice((list(DIVIDED), list(SHARED))))
    held = good(kind)
    while True:
        facts, arrays = copy.deepcopy(held.facts), dict(held.arrays)
        for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3, 5))):
            _damage(rng, held, facts, arrays)
        try:
            return kind, seal(expand_marks(json.dumps(facts)), arrays)
        except (ValueError, TypeError, KeyError, OverflowError, SafetensorError):  # not even safetensors could write it
            continue


def _damage(rng: random.Random, held: Good, facts: dict[str, Any], arrays: Arrays) -> None:
    kind = rng.randrange(20)
    if kind < 11:
        damage_facts(rng, facts)
    elif kind < 18:
        damage_arrays(rng, arrays)
    elif kind == 18:
        grown(rng, held.blueprint)(facts, arrays)
    else:
        reshaped_inputs(rng)(facts, arrays)


def prepare(number: int) -> Case:
    """Loads and uses the file with this number."""
    kind, content = forge(number)
    return lambda: (kind, *try_file(content))


def try_file(content: bytes) -> tuple[str, str]:
    """Load and use a file: what came of it, and why."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        path.write_bytes(content)
        try:
            loaded = load_model(path)
        except ModelFileError as error:
            return REFUSED if str(error).strip() else PROBLEM, str(error)[-200:]
        except Exception as error:
            return PROBLEM, f"loading: {_describe(error)}"
        return use(loaded, path, len(content))


def use(loaded: Model, path: Path, size: int) -> tuple[str, str]:
    """Use a model in all ways: what came of it, and why."""
    refusals = []
    for name, step in USES.items():
        try:
            step(loaded, path, size)
        except SpacenetError as error:
            if not str(error).strip():
                return PROBLEM, f"{name}: an error without a message"
            refusals.append(f"{name}: {str(error)[:150]}")
        except Exception as error:
            return PROBLEM, f"{name}: {_describe(error)}"
    return (LIMITED, "; ".join(refusals)) if refusals else (USED, "")


def _inspect(loaded: Model, path: Path, size: int) -> None:
    found = inspect_model(loaded, size)
    json.dumps(found.training), json.dumps(found.method_settings), repr(found)
    assert found.outputs == len(loaded.outputs), "the number of outputs"


def _predict(loaded: Model, path: Path, size: int) -> None:
    _check_answers(loaded, np.random.default_rng(0).normal(size=(5, *loaded.input_shape)).astype(np.float32))


def _predict_probe(loaded: Model, path: Path, size: int) -> None:
    with np.errstate(all="ignore"):
        _check_answers(loaded, make_probe(loaded))


def _check_answers(loaded: Model, x: "np.ndarray[Any, Any]") -> None:
    found, labels = loaded.predict_proba(x), loaded.predict(x)
    assert found.shape == (len(x), len(loaded.classes)), "the shape of probabilities"
    assert np.isfinite(found).all(), "probabilities that are not finite"
    assert np.allclose(found.sum(1), 1), "probabilities that do not add up"
    known = {(type(label), label) for label in loaded.classes}
    assert len(labels) == len(x), "the number of labels"
    assert all((type(label), label) in known for label in labels), "a label that is not known"


def _space_left(loaded: Model, path: Path, size: int) -> None:
    left = loaded.space_left()
    assert (left is None) != loaded.method.divides_network, "whether tasks left are counted"
    assert left is None or 0 <= left <= 100, "the number of tasks left"


def _save(loaded: Model, path: Path, size: int) -> None:
    again = path.with_name("again.safetensors")
    save_model(again, loaded)
    assert load_model(again).tasks == loaded.tasks, "other tasks"


NEW_CLASSES: dict[type, list[Any]] = {
    bool: [101, 102],
    int: [101, 102],
    float: [101.5, 102.5],
    str: ["new", "newer"],
}


def _learn(loaded: Model, path: Path, size: int) -> None:
    x, y = blobs(NEW_CLASSES[type(loaded.outputs[-1])], 4, loaded.input_shape)
    config = loaded.config.replace(epochs=1, batch_size=4, devices=1, threads=1, bn_recalibration_epochs=1)
    before = len(loaded.tasks)
    loaded.learn(x, y, config=config)
    assert len(loaded.tasks) == before + 1, "the number of tasks"
    _check_answers(loaded, x)
    _save(loaded, path, size)


USES: dict[str, Callable[[Model, Path, int], None]] = {
    "inspect": _inspect,
    "predict": _predict,
    "predict its own inputs": _predict_probe,
    "space left": _space_left,
    "save": _save,
    "learn": _learn,
}


def _describe(error: Exception) -> str:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" at {Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
    return f"{type(error).__name__}{where}: {str(error)[:200]}"


def run(files: int, seed: int = 0) -> list[Outcome]:
    """Try so many files, in child processes."""
    torch.set_num_threads(1)
    for kind in MODELS:
        good(kind)  # before a child is made: all of them need these
    return list(in_children(range(seed, seed + files), prepare))


def report(title: str, outcomes: Sequence[Outcome], results: Sequence[str]) -> bool:
    """Print the table and the problems; returns whether there are any."""
    print(f"{len(outcomes):,} {title}\n{tabulate(outcomes, results)}", flush=True)
    problems = [outcome for outcome in outcomes if outcome.result == PROBLEM]
    for each in problems[:50]:
        print(f"  --seed {each.number} ({each.kind}): {each.detail}")
    return bool(problems)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000, help="model files")
    parser.add_argument("--configs", type=int, default=2_000, help="settings files")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    options = parser.parse_args(arguments)
    failed = False
    if options.files:
        failed |= report("model files", run(options.files, options.seed), RESULTS)
    if options.configs:
        found = forged_settings.run(options.configs, options.seed)
        failed |= report("settings files", found, forged_settings.RESULTS)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
