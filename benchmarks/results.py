"""docs/results.md, the paper's figures beside ours; docs/density.md, what class statistics add; docs/experts.md.

python -m benchmarks.results run NAME …        run these rows of results/*.toml, keep their figures
python -m benchmarks.results collect NAME DIR  keep the figures of runs that exist already, beside those of other seeds
python -m benchmarks.results page              make the pages from the figures that are kept
"""

import json
import os
import platform
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks.command import reported
from benchmarks.paper import HEADING, RULE, compare_with_paper
from spacenet.cli.main import main as spacenet
from spacenet.errors import RunError
from spacenet.experiments.comparison import seed_folders
from spacenet.experiments.run import load_metrics
from spacenet.report.tables import Table
from spacenet.utils.files import save_text
from spacenet.utils.significance import LEVEL, paired_p
from spacenet.utils.text import MeanStd, format_bytes, format_mean_std, plural

HERE = Path(__file__).parent / "results"
DOCS = Path(__file__).parent.parent / "docs"
PAGES = {"rows.toml": "results.md", "density.toml": "density.md", "experts.toml": "experts.md"}
"""For each file of rows the page that shows them."""
INTRODUCTION = f"""\
# Results

Class-incremental: one shared output layer, no task identity at prediction. ACC and BWT are the paper's equation 7, in
percent, measured on the test set in the end; mean ± standard deviation over the seeds. "Task-IL" is the
task-incremental accuracy of the same runs: only the classes of a sample's own task compete. Settings are the presets
([settings](settings.md)) unless the command says otherwise; they were chosen on held-out training data. This page is
made by `make results` from the figures in `benchmarks/results/`, seed by seed.

{RULE}

With settings that were chosen anew, the paper's accuracies are reached. With the hyper-parameters of its text they are
not: 71.8 on Split MNIST and 60.0 on Split Fashion-MNIST. WRN-28-10 forgets 3.7 points more than the paper's: its
accuracy is as high in the end, and was higher when each task was learned. If half of the connections are moved each
epoch, it agrees with the paper in both. The paper's claim about adaptive training is
confirmed only in part. There, moving the connections gains 14 and 8 points over leaving them where they are. Here the
gain is significant on Split MNIST only, as the paired differences below the tables say: our static network is much
better than theirs, our adaptive one a little.

All rows of `spacenet` and `static-sparse` on Split MNIST and Split Fashion-MNIST have eight phantom classes in their
loss. The paper's text does not mention such outputs; they come from the authors' public code. There, an output of an
earlier task also keeps its bias in the loss; here its score is 0, unless `--phantom-scores bias` is given
([settings](settings.md)).
"""

Figures = dict[str, Any]
FIGURES = ("acc", "bwt", "task_il_acc")
FLOAT_BYTES = 4


def content(file: str) -> dict[str, Any]:
    """A page's introduction, if it has one of its own, its sections and their rows."""
    return tomllib.loads((HERE / file).read_text(encoding="utf-8"))


def row_named(name: str) -> dict[str, Any]:
    sections = [section for file in PAGES for section in content(file)["section"] if "program" not in section]
    rows = {row["name"]: row for section in sections for row in section["row"]}
    if name not in rows:
        raise RunError(f"unknown row {name!r}; choose from {', '.join(rows)}")
    return dict(rows[name])


def run(name: str) -> None:
    """Run a row's command and keep its figures."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        code = spacenet(["run", *shlex.split(row_named(name)["command"]), "--out", str(folder)])
        if code:
            raise RunError(f"{name}: the run ended with exit code {code}")
        collect(name, folder)


def collect(name: str, folder: Path) -> None:
    """Keep the figures of the finished runs in a folder."""
    runs = [metrics for each in seed_folders(folder) or [folder] if (metrics := load_metrics(each)) is not None]
    if not runs:
        raise RunError(f"{folder} holds no finished run")
    add(name, runs)


def add(name: str, runs: Sequence[Figures]) -> None:
    """Keep the metrics of runs of a row, beside those of other seeds that are kept already."""
    command = f"spacenet run {row_named(name)['command']}"
    new = {metrics["seed"]: figures_of_seed(metrics) for metrics in runs}
    before = _load(name)
    if before is None or before["command"] != command:
        before = {"seeds": [], "hardware": ""}
    others = [{"hardware": before["hardware"], **seed} for seed in before["seeds"] if seed["seed"] not in new]
    seeds = sorted([*others, *new.values()], key=lambda seed: int(seed["seed"]))
    figures: Figures = {
        "command": command,
        "date": date.today().isoformat(),
        "hardware": " and ".join(dict.fromkeys(seed["hardware"] for seed in seeds)),
        "versions": runs[0]["versions"],
        "evaluated_on": runs[0]["evaluated_on"],
        "seeds": seeds,
    }
    save_text(HERE / f"{name}.json", json.dumps(figures, indent=1) + "\n")


def figures_of_seed(metrics: Figures) -> Figures:
    """What is kept of a run. Without an AIA where earlier tasks were not measured after every one."""
    matrix = [[None if value is None else round(value, 3) for value in line] for line in metrics["matrix"]]
    whole = not any(value is None for line in matrix for value in line)
    return {
        "seed": metrics["seed"],
        "hardware": metrics.get("hardware") or hardware(),
        "acc": metrics["acc"],
        "last_acc": metrics["last_acc"],
        "bwt": metrics["bwt"],
        "task_il_acc": metrics["task_il_acc"],
        "matrix": matrix,
        "connections": metrics["connections"],
        "bytes_kept": metrics["bytes_kept"],
        "aia": metrics["aia"] if whole else None,
        "numbers_kept": metrics["parameters"] + metrics["extra_bytes"] // FLOAT_BYTES,
        "seconds": round(metrics["seconds"], 1),
    }


def hardware() -> str:
    """This machine, in a few words."""
    return f"{os.cpu_count()} cores, {platform.machine()}"


def page(file: str) -> None:
    """Make the page of a file of rows."""
    held = content(file)
    parts = [held.get("introduction", INTRODUCTION)]
    for section in held["section"]:
        found = [(row, _load(row["name"])) for row in section["row"]]
        table = TABLES[section.get("table", "paper")](found)
        parts.append(f"## {section['title']}\n\n{section['text'].strip()}\n\n{table}")
        if section.get("per_task") and any(figures for _, figures in found):
            parts.append(_per_task(found))
        parts += [*_paired(found), _commands(found, section.get("program", "spacenet run"))]
    save_text(DOCS / PAGES[file], "\n".join(parts))


def _load(name: str) -> Figures | None:
    path = HERE / f"{name}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def _accs(figures: Figures) -> dict[int, float]:
    return {seed["seed"]: seed["acc"] for seed in figures["seeds"]}


def _table(found: Sequence[tuple[dict[str, Any], Figures | None]]) -> str:
    lines = []
    for row, figures in found:
        paper = [format_mean_std(*row.get("paper", {}).get(key, ())) for key in ("acc", "bwt")]
        ours, verdict, seeds = ["not run yet", "", ""], "", figures["seeds"] if figures else []
        if seeds:
            measured = {key: MeanStd.of([seed[key] for seed in seeds]) for key in FIGURES}
            ours = [str(figure) for figure in measured.values()]
            verdict = compare_with_paper(measured, len(seeds), row.get("paper", {}))
        lines.append([row["label"], *ours, *paper, verdict, str(len(seeds) or "")])
    return _markdown(["", "ACC", "BWT", "task-IL", "paper ACC", "paper BWT", HEADING, "seeds"], lines)


def _table_with_memory(found: Sequence[tuple[dict[str, Any], Figures | None]]) -> str:
    """Without the paper's figures, for it has none; with all that is kept from task to task, the network included."""
    lines = []
    for row, figures in found:
        ours = ["not run yet", "", "", ""]
        if figures is not None:
            ours = [over_seeds([seed[key] for seed in figures["seeds"]]) for key in FIGURES]
            sizes = [seed["bytes_kept"] for seed in figures["seeds"] if "bytes_kept" in seed]
            ours.append(format_bytes(round(mean(sizes))) if sizes else "")
        lines.append([row["label"], *ours, str(len(figures["seeds"])) if figures else ""])
    return _markdown(["", "ACC", "BWT", "task-IL", "kept", "seeds"], lines)


def _table_of_protocols(found: Sequence[tuple[dict[str, Any], Figures | None]]) -> str:
    """What papers on streams of their own cite, and how many numbers are kept in all."""
    lines = []
    for row, figures in found:
        ours = ["not run yet", *[""] * 6]
        if figures is not None:
            seeds = figures["seeds"]
            keys = ("last_acc", "acc", "aia", "bwt", "task_il_acc")
            known = {key: [seed[key] for seed in seeds if seed[key] is not None] for key in keys}
            ours = [_over_known_seeds(values, len(seeds)) for values in known.values()]
            numbers = mean(seed["numbers_kept"] for seed in seeds) / 1e6
            ours += [f"{numbers:.1f} M", str(len(seeds))]
        lines.append([row["label"], *ours])
    return _markdown(["", "last accuracy", "ACC", "AIA", "BWT", "task-IL", "numbers kept", "seeds"], lines)


def _over_known_seeds(values: list[float], seeds: int) -> str:
    """A figure over the seeds that it is known of, with their number if these are not all."""
    if not values or len(values) == seeds:
        return over_seeds(values) if values else ""
    return f"{over_seeds(values)} ({plural(len(values), 'seed')})"


def _table_of_parts(found: Sequence[tuple[dict[str, Any], Figures | None]]) -> str:
    """What `python -m benchmarks.experts` measures, and its time where no other work shared the GPU."""
    lines: list[list[str]] = []
    columns: list[str] = []
    for row, figures in found:
        ours = ["not run yet"]
        if figures is not None:
            seeds, columns = figures["seeds"], list(figures["seeds"][0]["parts"])
            ours = [over_seeds([seed["parts"][part]["acc"] for seed in seeds]) for part in columns]
            ours.append(over_seeds([seed["parts"][columns[-1]]["task_il_acc"] for seed in seeds]))
            alone = [seed["seconds"] for seed in seeds if not seed["shared"]]
            ours += [f"{mean(alone):.0f} s" if alone else "", str(len(seeds))]
        lines.append([row["label"], *ours])
    return _markdown(["", *columns, "task-IL", "time alone", "seeds"], lines)


CHOICES = {
    "scores alone": "scores, mean over four orientations",
    "with class statistics": "both, weight ",
    "with those of own features": "class statistics of own features and scores, weight ",
    "with both": "all, weights ",
    "with both, chosen after each task": "all, as chosen after each task, ",
}
"""How names of parts begin that differ in weights only, by what they are."""


def _table_of_choices(found: Sequence[tuple[dict[str, Any], Figures | None]]) -> str:
    """The same where weights were looked for on held-out data: the best of each kind, for each seed."""
    lines = []
    for row, figures in found:
        ours = ["not run yet"]
        if figures is not None:
            parts = [seed["parts"] for seed in figures["seeds"]]
            ours = [over_seeds([_best(each, start) for each in parts]) for start in CHOICES.values()]
            ours.append(str(len(parts)))
        lines.append([row["label"], *ours])
    return _markdown(["", *CHOICES, "seeds"], lines)


def _best(parts: Figures, start: str) -> float:
    return max(float(each["acc"]) for name, each in parts.items() if name.startswith(start))


def _table_of_steps(found: Sequence[tuple[dict[str, Any], Figures | None]]) -> str:
    """What `python -m benchmarks.expert_steps` prints."""
    from benchmarks.expert_steps import table  # which needs torch

    return "\n".join(table(figures["steps"]).to_markdown() for _, figures in found if figures is not None)


TABLES = {
    "steps": _table_of_steps,
    "parts": _table_of_parts,
    "choices": _table_of_choices,
    "paper": _table,
    "memory": _table_with_memory,
    "protocols": _table_of_protocols,
}
"""How the rows of a section are shown, by its `table`."""


def _per_task(found: Sequence[tuple[dict[str, Any], Figures | None]]) -> str:
    """Each task's accuracy after the last one, mean over the seeds, and how much it differs from task to task."""
    rows = [(row, figures) for row, figures in found if figures is not None]
    tasks = max((len(figures["seeds"][0]["matrix"]) for _, figures in rows), default=0)
    lines = []
    for row, figures in rows:
        last = [seed["matrix"][-1] for seed in figures["seeds"]]
        cells = [over_seeds(list(column)) for column in zip(*last, strict=True)]
        lines.append([row["label"], *cells, over_seeds([stdev(line) for line in last])])
    columns = ["", *(f"task {number}" for number in range(1, tasks + 1)), "sd over tasks"]
    return f"Accuracy on each task after the last one:\n\n{_markdown(columns, lines)}"


def _paired(found: Sequence[tuple[dict[str, Any], Figures | None]]) -> list[str]:
    """The difference of two rows' ACC over the seeds that both have, where a row names the one to compare with."""
    rows, lines = {row["name"]: (row, figures) for row, figures in found}, []
    for row, figures in found:
        other, others = rows.get(row.get("versus", ""), (None, None))
        if other is None or figures is None or others is None:
            continue
        first, second = _accs(figures), _accs(others)
        p, common = paired_p(first, second), sorted(first.keys() & second.keys())
        if p is not None:
            gain = MeanStd.of([first[seed] - second[seed] for seed in common])
            judged = "not significant" if p >= LEVEL else "significant"
            chance = f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"
            lines.append(f"- {row['label']} − {other['label']}: {gain} ({judged}, {chance}, {len(common)} seeds)")
    return ["ACC, paired over seeds (two-sided t-test):\n", *lines, "\nCommands:\n"] if lines else []


def _commands(found: Sequence[tuple[dict[str, Any], Figures | None]], program: str) -> str:
    lines = []
    for row, figures in found:
        measured = f"{_missing(row, figures)}{figures['date']}, {figures['hardware']}" if figures else "not run yet"
        lines.append(f"- {row['label']}: `{program} {row['command']}` ({measured})")
    return "\n".join(lines) + "\n"


def _missing(row: dict[str, Any], figures: Figures) -> str:
    """How many seeds are kept, where the command has more."""
    wanted = re.search(r"--seeds (\d+)", row["command"])
    if not wanted or len(figures["seeds"]) >= int(wanted[1]):
        return ""
    return f"{len(figures['seeds'])} of {wanted[1]} seeds, "


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return Table("", columns, rows).to_markdown()


def over_seeds(values: list[float]) -> str:
    """Mean and, for more than one seed, standard deviation."""
    return format_mean_std(mean(values), *([stdev(values)] if len(values) > 1 else []))


def main(arguments: Sequence[str] | None = None) -> int:
    return reported("results", lambda: _main(list(sys.argv[1:] if arguments is None else arguments)))


def _main(arguments: list[str]) -> int:
    match arguments:
        case ["page"]:
            pass
        case ["collect", name, folder]:
            collect(name, Path(folder))
        case ["run", *names] if names:
            for name in names:
                run(name)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    for file in PAGES:
        page(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
