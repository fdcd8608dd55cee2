"""Several methods on the same stream, each with several seeds, in one folder: FOLDER/METHOD/seed-N.

What is finished there is not repeated. What was started with other settings is not mixed in.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from spacenet.config.presets import preset
from spacenet.config.run import RunConfig, read_toml
from spacenet.errors import RunError, SettingsError
from spacenet.experiments.batch import Outcome
from spacenet.experiments.run import CONFIG, check, create_folder, load_config
from spacenet.methods import get_method, method_names

ALL = "all"
REFERENCE = "naive"
"""The method whose time is 1."""
METHODS_SECTION = "methods"


@dataclass(frozen=True)
class MeanStd:
    """A figure's mean and standard deviation over the seeds."""

    mean: float
    sd: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "MeanStd":
        return cls(mean(values), stdev(values) if len(values) > 1 else 0.0)


@dataclass(frozen=True)
class Row:
    """One method in the table. Everything in it was measured."""

    strategy: str
    method: str
    seeds: int
    acc: MeanStd
    bwt: MeanStd
    task_il_acc: MeanStd
    """ACC if the task were told."""
    parameters: int
    extra_bytes: int
    """Kept from task to task besides the network."""
    images: int
    units_added: int
    seconds: float
    times: float | None
    """Training time as a multiple of the reference's in the same comparison."""


def chosen_methods(text: str) -> list[str]:
    """The methods that a comma-separated list names, in its order; `all` is all there are."""
    names = method_names() if text == ALL else [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise SettingsError(f"methods: none are named; there are {', '.join(method_names())}, or all")
    for name in names:
        get_method(name)
    return list(dict.fromkeys(names))


def settings_file(path: Path | None) -> dict[str, Any]:
    """What a TOML file says for all methods, and under [methods.NAME] for one of them."""
    settings = read_toml(path) if path is not None else {}
    if "options" in settings:
        raise SettingsError(f"{path}: options belong to one method; write [{METHODS_SECTION}.NAME.options]")
    return settings


def configs(
    stream: str,
    methods: Iterable[str],
    settings: Mapping[str, Any],
    over: Mapping[str, Any],
    preset_name: str | None = None,
) -> dict[str, RunConfig]:
    """Each method's config: its preset, then what the file says for all and for it, then `over`."""
    common = {key: value for key, value in settings.items() if key != METHODS_SECTION}
    own = settings.get(METHODS_SECTION, {})
    return {name: preset(stream, name, common, own.get(name, {}), over, preset_name=preset_name) for name in methods}


def prepare(configs: Mapping[str, RunConfig], seeds: Sequence[int], folder: Path) -> tuple[dict[Path, str], list[str]]:
    """Make the folders of all runs, or take those that are there: their paths with a label, and who cannot take part.

    A method whose settings cannot work on the stream is left out with its reason; the others go on.
    """
    labels: dict[Path, str] = {}
    refused = []
    for name, config in configs.items():
        try:
            check(config)
        except SettingsError as error:
            refused.append(f"{name}: {error}")
            continue
        for seed in seeds:
            place, wanted = folder / name / f"seed-{seed}", dataclasses.replace(config, seed=seed)
            if (place / CONFIG).is_file():
                _same(load_config(place), wanted, place)
            else:
                create_folder(wanted, place)
            labels[place] = f"{name} seed {seed}"
    return labels, refused


def _same(there: RunConfig, wanted: RunConfig, place: Path) -> None:
    old, new = (dataclasses.asdict(config) for config in (there, wanted))
    differing = sorted(_differences(old, new))
    if differing:
        raise RunError(
            f"{place} holds a run with other settings ({', '.join(differing)}); choose another --out, or remove it"
        )


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key in {**old, **new}:
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            found += _differences(a, b, f"{key}.")
        elif a != b and f"{prefix}{key}" not in _WHERE:
            found.append(f"{prefix}{key}")
    return found


_WHERE = ("data.data_dir",)
"""Says where data lies, not what it is."""


def rows(outcomes: Iterable[Outcome]) -> list[Row]:
    """The table's rows, in the order of the methods, from the runs that learned their whole stream."""
    found: dict[str, list[dict[str, Any]]] = {}
    for outcome in outcomes:
        if outcome.metrics is not None and outcome.error is None:
            found.setdefault(outcome.metrics["method"], []).append(outcome.metrics)
    order = [*method_names(), *found]
    reference = mean(m["seconds"] for m in found[REFERENCE]) if REFERENCE in found else None
    return [_row(name, found[name], reference) for name in sorted(found, key=order.index)]


def _row(name: str, runs: Sequence[dict[str, Any]], reference: float | None) -> Row:
    seconds = mean(m["seconds"] for m in runs)
    return Row(
        strategy=get_method(name).strategy,
        method=name,
        seeds=len(runs),
        acc=MeanStd.of([m["acc"] for m in runs]),
        bwt=MeanStd.of([m["bwt"] for m in runs]),
        task_il_acc=MeanStd.of([m["task_incremental"]["acc"] for m in runs]),
        parameters=round(mean(m["parameters"] for m in runs)),
        extra_bytes=round(mean(m["extra_bytes"] for m in runs)),
        images=round(mean(m["images_kept"] for m in runs)),
        units_added=round(mean(m["units_added"] for m in runs)),
        seconds=seconds,
        times=seconds / reference if reference else None,
    )
