"""docs/methods.md: every method, its settings and where they come from, what it reaches, and the paper's figure.

python -m benchmarks.methods run STREAM [FOLDER]    run all methods (ten seeds, slow ones three), keep their figures
python -m benchmarks.methods keep STREAM FOLDER     keep the figures of a comparison's methods, beside those of others
python -m benchmarks.methods page                   make docs/methods.md from the figures that are kept
"""

import dataclasses
import inspect
import itertools
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import dacite
import tomli_w

from benchmarks.command import reported
from benchmarks.paper import HEADING, RULE, compare_with_paper
from benchmarks.results import hardware
from benchmarks.size import size_section
from spacenet.cli.main import main as spacenet
from spacenet.config.presets import preset_config
from spacenet.config.run import RunConfig
from spacenet.config.settings import to_plain
from spacenet.errors import RunError
from spacenet.experiments.analysis import Analysis
from spacenet.experiments.comparison import REFERENCE, ComparisonData, Row, compare_runs, seed_folders
from spacenet.experiments.run import RunData, load_config, load_metrics
from spacenet.methods import Method
from spacenet.registry import METHODS
from spacenet.report.tables import Table, comparison_table
from spacenet.utils.files import save_text
from spacenet.utils.text import MeanStd, format_mean_std

HERE = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "methods.md"
TITLES = {"split-mnist": "Split MNIST", "split-fashion-mnist": "Split Fashion-MNIST"}
SIZES_OF = "split-mnist"
"""The stream of the paper's figure of model sizes."""
SLOW = ("dgr", "den", "pathnet", "joint", "spacenet-rehearsal", "spacenet-experts")
SEEDS, SEEDS_OF_SLOW = 10, 3
OPTIONAL = ("last_acc", "aia", "forgetting", "bytes_kept")
"""What figures of earlier versions lack. It is shown where all methods have it."""
INTRODUCTION = f"""\
# Methods

Every method here learns the same streams in the same training loop and predicts the class without knowing the task.
Methods that need to know the task (DEN, PackNet, Piggyback, PNN, PathNet) answer as the paper adapted DEN: every task's
model answers, and the most probable class wins. ± is the standard deviation over seeds. Task-IL ACC is the
task-incremental accuracy: only the classes of a sample's own task compete. The rest of the table is measured too: the
extra memory kept from task to task besides the network, the stored samples in it (a pixel is one byte, as in the data
set), the units by which the network has grown, and the time of a run as a multiple of `naive`'s in the same comparison
(roughly: the machine had other work to do at times).

`spacenet compare split-mnist --methods all --seeds 10` makes such a table on your machine. This page is made by
`python -m benchmarks.methods page` from the figures in `benchmarks/results/`.

{RULE}
"""


def run(stream: str, folder: Path) -> None:
    """Run all methods and keep their figures. Runs that the folder holds already are not repeated."""
    fast = [name for name in METHODS if name not in SLOW]
    for names, seeds in ((SLOW, SEEDS_OF_SLOW), (fast, SEEDS)):
        options = ["--methods", ",".join(names), "--seeds", str(seeds), "--out", str(folder)]
        if spacenet(["compare", stream, *options]) == 130:
            raise KeyboardInterrupt
    keep(stream, folder)


def keep(stream: str, folder: Path) -> None:
    """Keep the figures of the finished runs in a comparison's folder, beside those of other methods. The reference of
    times stays the one that was there before."""
    runs = {name: [run for place in seed_folders(folder / name) if (run := _finished(place))] for name in METHODS}
    found = {name: each for name, each in runs.items() if each}
    if not found:
        raise RunError(f"{folder} holds no finished run")
    path = HERE / f"methods-{stream}.json"
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"rows": [], "acc": {}}
    rows = {row["method"]: row for row in facts["rows"]}
    new = {row.method: dataclasses.asdict(row) for row in compare_runs(itertools.chain(*found.values())).rows}
    new = {name: row for name, row in new.items() if name != REFERENCE or name not in rows}
    facts["acc"] |= {name: [run.metrics["acc"] for run in found[name]] for name in new}
    facts["rows"] = [row for name in METHODS if (row := (rows | new).get(name))]
    own = {"date": date.today().isoformat(), "hardware": hardware(), "methods": [*new]}
    facts["measured"] = [*facts.get("measured", []), own]
    save_text(path, json.dumps(facts, indent=1) + "\n")


def _finished(place: Path) -> RunData | None:
    metrics = load_metrics(place)
    return RunData(load_config(place), metrics, Analysis()) if metrics and not metrics["stopped"] else None


def page() -> None:
    """Make docs/methods.md."""
    paper = tomllib.loads((HERE / "paper.toml").read_text(encoding="utf-8"))
    kept = {stream: facts for stream in TITLES if (facts := _load(stream)) is not None}
    parts = [INTRODUCTION]
    for stream, facts in kept.items():
        times = [f"{each['date']}, {each['hardware']}" for each in facts["measured"]]
        measured = f"{'; '.join(dict.fromkeys(times))}. Seeds: {SEEDS}, of slow methods {SEEDS_OF_SLOW}"
        accs = {name: dict(enumerate(values)) for name, values in facts["acc"].items()}  # seeds from 0 on
        table = comparison_table(ComparisonData(stream, "test set", {}, facts["rows"]), accs)
        shown = dataclasses.replace(table, title="", notes=table.notes[1:])  # the introduction explains the columns
        parts.append(f"## {TITLES[stream]}\n\n{measured}.\n\n{shown.to_markdown()}")
        if stream == SIZES_OF:
            parts.append(f"### Model sizes\n\n{size_section(stream, facts['rows'], paper[stream])}")
    parts += [_about(method, kept, paper) for method in METHODS.values()]
    save_text(PAGE, "\n".join(parts))


def _load(stream: str) -> dict[str, Any] | None:
    path = HERE / f"methods-{stream}.json"
    if not path.is_file():
        return None
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    missing = {name for name in OPTIONAL if any(row.get(name) is None for row in facts["rows"])}
    shown = [{name: value for name, value in row.items() if name not in missing} for row in facts["rows"]]
    facts["rows"] = [dacite.from_dict(Row, values) for values in shown]
    return facts


def _about(method: type[Method], kept: Mapping[str, dict[str, Any]], paper: Mapping[str, Any]) -> str:
    """One method's section."""
    lines = [f"## `{method.name}` ({method.strategy})\n", f"{inspect.cleandoc(method.__doc__ or '')}\n"]
    if method.reference:
        lines.append(f"Reference: {method.reference}.\n")
    if method.settings_from:
        lines.append(f"Settings: {method.settings_from}\n")
    table = []
    for stream, facts in kept.items():
        ours = next((row for row in facts["rows"] if row.method == method.name), None)
        theirs = paper[stream].get(method.name, {})
        figures = ["not run yet", ""] if ours is None else [_text(ours.acc), _text(ours.bwt)]
        papers = [format_mean_std(*theirs.get(key, ())) for key in ("acc", "bwt")]
        command = f"`spacenet run {stream} --method {method.name} --seeds {ours.seeds if ours else SEEDS}`"
        table.append([TITLES[stream], *figures, *papers, _verdict(ours, theirs), command])
    if table:
        columns = ["", "ACC", "BWT", "paper ACC", "paper BWT", HEADING, "command"]
        lines.append(Table("", columns, table, "lrrrrll").to_markdown())
    before: dict[str, Any] = {}
    for stream, title in TITLES.items():
        settings = _settings(preset_config(stream, method.name))
        shown = {
            name: {k: v for k, v in part.items() if before.get(name, {}).get(k) != v} for name, part in settings.items()
        }
        text = tomli_w.dumps({name: part for name, part in shown.items() if part})
        lines.append(f"On {title}{' only this differs' if before else ''}:\n\n```toml\n{text}```\n" if text else "")
        before = settings
    return "\n".join(lines)


def _verdict(ours: Row | None, theirs: Mapping[str, Any]) -> str:
    if not theirs:
        return "no figure in the paper"
    if ours is None:
        return "not run yet"
    return compare_with_paper({"acc": ours.acc, "bwt": ours.bwt}, ours.seeds, theirs)


def _text(value: MeanStd) -> str:
    return format_mean_std(value.mean, value.std)


def _settings(config: RunConfig) -> dict[str, dict[str, Any]]:
    """What decides the outcome, without where it is computed."""
    training = {name: getattr(config.model.training, name) for name in _TRAINING}
    return {"training": training, "method": to_plain(config.model.method_settings)}


_TRAINING = ("epochs", "batch_size", "learning_rate", "optimizer", "momentum", "weight_decay")


def main(arguments: Sequence[str] | None = None) -> int:
    return reported("methods", lambda: _main(list(sys.argv[1:] if arguments is None else arguments)))


def _main(arguments: list[str]) -> int:
    match arguments:
        case ["run", stream, *folder] if stream in TITLES and len(folder) < 2:
            run(stream, Path(folder[0] if folder else f"comparisons/{stream}"))
        case ["keep", stream, folder] if stream in TITLES:
            keep(stream, Path(folder))
        case ["page"]:
            pass
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    page()
    return 0


if __name__ == "__main__":
    sys.exit(main())
