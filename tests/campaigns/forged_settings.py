"""Settings files with extreme values, given to `spacenet run --config` and to `spacenet run --resume`; see `forged`.

Numbers of epochs, threads and processes that are within their bounds are made small: they only mean long work.
"""

import contextlib
import copy
import datetime
import io
import random
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tomli_w
import torch

from spacenet.cli.main import main
from spacenet.config.model import SECTIONS, settings_of
from spacenet.config.settings import MOST_WHOLE, field_types
from spacenet.config.stream import StreamConfig
from spacenet.experiments.run import CONFIG, METRICS
from spacenet.registry import METHODS
from tests.campaigns.children import PROBLEM, Case, Outcome, in_children
from tests.campaigns.mutations import DEEP, DEPTHS, TWICE, Path_, damage_facts
from tests.experiments.support import config
from tests.support import clouds_file

REFUSED, WORKS, FULL = "refused", "works", "space full"
RESULTS = (REFUSED, WORKS, FULL, PROBLEM)
"""Exit code 2 and a message that names the setting; exit code 0; exit code 1, where the network has no room."""
LONG = dict.fromkeys(("epochs", "first_epochs", "bn_recalibration_epochs"), MOST_WHOLE) | {
    "threads": 1024,
    "devices": 1024,
}
LONG |= {"retrain_epochs": 100, "refine_epochs": 100}
LARGE = {"population": 1000, "latent": 10**6, "components": 1000, "directions": 10_000, "expand_by": 10**6}
LARGE |= {"replay_components": 1000, "replay_directions": 10_000, "hidden": 10**7, "generator_hidden": 10**6}
"""Settings, or numbers in their lists, that are made small where they are at most this."""
MOST_SECONDS = 10.0
RAW = "\ue002"
"""Before a text that stands in the file as it is."""
RAW_VALUES = ("0x" + "f" * 5000, "1" * 5000, "1e400", "1_0", "'''a\nb'''", "1979-05-27", "[1, 'a']", "+inf", "08", "")


@cache
def base(method: str) -> dict[str, Any]:
    """The settings of a small run."""
    with tempfile.TemporaryDirectory() as folder:
        plain = config(Path(folder), method, training={"epochs": 1}).to_plain()
    return {**plain, "stream": {"classes_per_task": 2}}


def forge(number: int, npz: Path) -> tuple[str, bytes, list[Path_]]:
    """A method, a settings file for it, and which settings are damaged."""
    rng = random.Random(number)
    method = rng.choice(list(METHODS))
    while True:
        values: dict[str, Any] = copy.deepcopy(base(method))
        values["stream"]["data"] = str(npz)
        places = [_damage(rng, values) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        _shorten(values)
        with contextlib.suppress(TypeError, ValueError, AttributeError, RecursionError):  # nothing that TOML can say
            text = _expand(tomli_w.dumps(values))
            return method, text.encode("utf-8", "surrogatepass"), places


def _damage(rng: random.Random, values: dict[str, Any]) -> Path_:
    if rng.random() < 0.85:
        return damage_facts(rng, values)
    section = rng.choice([name for name, held in values.items() if isinstance(held, dict)] or ["stream"])
    inner = values.setdefault(section, {})
    name = rng.choice([*inner, "magic"])
    dates = (datetime.date(2026, 1, 1), datetime.time(1, 2), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
    inner[name] = rng.choice((*dates, *(RAW + value for value in RAW_VALUES)))
    return section, name


def _shorten(values: Mapping[str, Any]) -> None:
    bounds = {**dict.fromkeys(LONG, 1), **dict.fromkeys(LARGE, 100)}
    for section in (held for held in values.values() if isinstance(held, dict)):
        for name in section.keys() & bounds.keys():
            held, most = section[name], (LONG | LARGE)[name]
            several = [_small(each, most, bounds[name]) for each in (held if isinstance(held, list) else [held])]
            section[name] = several if isinstance(held, list) else several[0]


def _small(value: Any, most: int, small: int) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return small if is_number and small < value <= most else value


def _expand(text: str) -> str:
    text = text.replace(TWICE, "")
    for depth in DEPTHS:
        text = text.replace(f'"{DEEP}{depth}["', "[" * depth + "]" * depth)
        text = text.replace(f'"{DEEP}{depth}{{"', "{a=" * depth + "1" + "}" * depth)
    for value in RAW_VALUES:
        text = text.replace(f'"{RAW}{value}"', value)
    return text


def prepare(number: int) -> Case:
    return lambda: try_config(number)


def try_config(number: int) -> tuple[str, str, str]:
    """Run with the settings file of this number: the method, what came of it, and what was said."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        npz = clouds_file(folder, classes=4, per_class=6)
        method, content, damaged = forge(number, npz)
        out, said = folder / "run", io.StringIO()
        if number % 2:
            out.mkdir()
            (out / CONFIG).write_bytes(content)
            arguments = ["run", "--resume", str(out)]
        else:
            (folder / "settings.toml").write_bytes(content)
            arguments = ["run", str(npz), "--config", str(folder / "settings.toml"), "--out", str(out)]
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
                code = main([*arguments, "--no-report", "--quiet"])
        except SystemExit as error:  # of the command line's parser
            code = int(error.code or 0)
        except Exception as error:
            return method, PROBLEM, f"{type(error).__name__}: {str(error)[:200]}"
        return method, *_judge(code, said.getvalue(), method, damaged, out)


def _judge(code: int, said: str, method: str, damaged: list[Path_], out: Path) -> tuple[str, str]:
    detail = said.strip()[-200:]
    if code == 0:
        return (WORKS, "") if (out / METRICS).is_file() else (PROBLEM, "exit code 0 without metrics")
    if code == 1:
        return (FULL, detail) if "full" in said else (PROBLEM, f"exit code 1: {detail}")
    if code != 2 or "Traceback" in said:
        return PROBLEM, f"exit code {code}: {detail}"
    names = [*settings_of(method), *SECTIONS, "method", "seed", *field_types(StreamConfig), "TOML"]
    names += [str(part) for path in damaged for part in path if not isinstance(part, int)]
    plain = said.replace("-", "_")
    return (
        (REFUSED, detail)
        if any(name and name.replace("-", "_") in plain for name in names)
        else (
            PROBLEM,
            f"no setting is named: {detail}",
        )
    )


def run(configs: int, seed: int = 0) -> list[Outcome]:
    """Try so many settings files, in child processes."""
    torch.set_num_threads(1)
    for method in METHODS:
        base(method)
    return list(in_children(range(seed, seed + configs), prepare, most_seconds=MOST_SECONDS))
