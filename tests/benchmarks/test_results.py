import json
import re
import shlex
from pathlib import Path

import pytest

from benchmarks import expert_steps, experts, results
from benchmarks.command import read_options
from spacenet.api.settings import build_config
from spacenet.cli.options import parse_stream_command, peek
from spacenet.cli.run import GROUPS, RunOptions
from spacenet.config.presets import preset_config
from spacenet.experiments.run import Run
from spacenet.utils.text import format_bytes


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = """
[[section]]
title = "Digits"
text = "Two tasks."
per_task = true
[[section.row]]
name = "digits"
label = "`spacenet`"
command = "split-digits --seeds 2"
paper = { acc = [50.0, 1.5], bwt = [-10.0] }
[[section.row]]
name = "missing"
label = "`naive`"
command = "split-digits --method naive"
"""
    (tmp_path / "rows.toml").write_text(rows)
    for file, table in (("density.toml", "memory"), ("experts.toml", "protocols")):
        shown = rows.replace("per_task = true", f'table = "{table}"').replace('"missing"', '"other"')
        (tmp_path / file).write_text(f'introduction = "Said first."\n{shown}')
    monkeypatch.setattr(results, "HERE", tmp_path)
    monkeypatch.setattr(results, "DOCS", tmp_path)
    return tmp_path


def test_the_page_sets_the_papers_figures_beside_ours(here: Path) -> None:
    config = preset_config("split-digits", "spacenet", {"stream": {"tasks": "0,1/2,3"}, "training": {"epochs": 1}})
    runs = [Run(config.with_seed(seed), folder=here / "runs" / f"seed-{seed}") for seed in range(2)]
    found = [run.execute().metrics for run in runs]
    accs = [metrics["acc"] for metrics in found]
    assert results.main(["collect", "digits", str(here / "runs")]) == 0
    page = (here / "results.md").read_text()
    assert f"| `spacenet` | {sum(accs) / 2:.2f} ± " in page
    assert re.search(r"\| 50.00 ± 1.50 \| -10.00 \| [^|]*(above|below|agree)[^|]* \| 2 \|", page)
    assert "| `naive` | not run yet |" in page
    assert "| task 1 | task 2 | sd over tasks |" in page
    assert "spacenet run split-digits --seeds 2" in page
    beside = (here / "density.md").read_text()
    assert beside.startswith("Said first.")
    assert f"| {format_bytes(found[0]['bytes_kept'])} | 2 |" in beside
    assert "paper ACC" not in beside
    cited = (here / "experts.md").read_text()
    assert f"| {results.over_seeds([metrics['aia'] for metrics in found])} |" in cited
    assert "| 0.0 M | 2 |" in cited


def test_seeds_that_are_collected_later_stand_beside_the_first(here: Path) -> None:
    config = preset_config("split-digits", "spacenet", {"stream": {"tasks": "0,1/2,3"}, "training": {"epochs": 1}})
    for seed in range(2):
        run = Run(config.with_seed(seed), folder=here / f"of-{seed}")
        run.execute()
        assert results.main(["collect", "digits", str(here / f"of-{seed}")]) == 0
        page = (here / "results.md").read_text()
        assert ("(1 of 2 seeds, " in page) == (seed == 0)
    kept = json.loads((here / "digits.json").read_text())
    assert [each["seed"] for each in kept["seeds"]] == [0, 1]
    assert kept["hardware"] == run.hardware.describe()
    kept["seeds"][1]["hardware"] = "a GPU"
    (here / "digits.json").write_text(json.dumps(kept))
    assert results.main(["collect", "digits", str(here / "of-0")]) == 0  # again: takes the place of what was there
    kept = json.loads((here / "digits.json").read_text())
    assert [each["seed"] for each in kept["seeds"]] == [0, 1]
    assert kept["hardware"] == f"{run.hardware.describe()} and a GPU"
    (here / "digits.json").write_text(json.dumps(kept | {"command": "spacenet run another"}))
    assert results.main(["collect", "digits", str(here / "of-1")]) == 0
    assert [each["seed"] for each in json.loads((here / "digits.json").read_text())["seeds"]] == [1]


def test_a_row_that_is_not_there_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert results.main(["run", "nothing"]) == 2
    assert "unknown row 'nothing'; choose from digits, missing, other" in capsys.readouterr().err


@pytest.mark.parametrize("file", results.PAGES)
def test_every_row_of_the_real_pages_is_a_command_that_is_understood(file: str) -> None:
    rows = [row for section in results.content(file)["section"] if "program" not in section for row in section["row"]]
    seen = set()
    for row in rows:
        assert results.row_named(row["name"])["command"] == row["command"]  # a row may stand in two tables
        words = shlex.split(row["command"])
        flags = frozenset(word for word in words if word.startswith("--")) | {peek(words)["method"]}
        if flags in seen:
            continue  # another stream or other values
        seen.add(flags)
        options, _, selection, settings = parse_stream_command(RunOptions, words, "run", peek(words), GROUPS)
        assert options.seeds > 1
        assert words[0] == selection["stream"]
        build_config(**selection, settings=settings)


def test_rows_of_other_programs_are_options_that_these_understand() -> None:
    options = {
        "python -m benchmarks.experts": experts.Options,
        "python -m benchmarks.expert_steps": expert_steps.Options,
    }
    sections = [section for section in results.content("experts.toml")["section"] if "program" in section]
    assert {section["program"] for section in sections} == set(options)
    for section in sections:
        for row in section["row"]:
            read_options(options[section["program"]], "experts", shlex.split(row["command"]))
            assert (results.HERE / f"{row['name']}.json").is_file()


def test_the_kept_figures_are_those_of_the_rows() -> None:
    sections = [section for file in results.PAGES for section in results.content(file)["section"]]
    for row in (row for section in sections if "program" not in section for row in section["row"]):
        kept = results.HERE / f"{row['name']}.json"
        if kept.is_file():
            figures = json.loads(kept.read_text())
            assert figures["command"] == f"spacenet run {row['command']}"
            assert all({"acc", "bwt", "task_il_acc"} <= set(seed) for seed in figures["seeds"])


def test_rows_are_compared_over_the_seeds_that_both_have(here: Path) -> None:
    text = (here / "rows.toml").read_text().replace('name = "digits"', 'name = "digits"\nversus = "missing"')
    (here / "rows.toml").write_text(text)
    kept = {"digits": [70.0, 71.0, 72.5, 73.0], "missing": [60.0, 61.5, 62.0]}
    for name, accs in kept.items():
        seeds = [
            {
                "seed": seed,
                "acc": acc,
                "last_acc": acc,
                "aia": acc,
                "bwt": -1.0,
                "task_il_acc": 90.0,
                "numbers_kept": 10,
                "matrix": [[acc, 0.0], [acc, acc + 1.0]],
            }
            for seed, acc in enumerate(accs)
        ]
        facts = {"date": "2026-11-18", "hardware": "CPU", "seeds": seeds}
        (here / f"{name}.json").write_text(json.dumps(facts))
    assert results.main(["page"]) == 0
    page = (here / "results.md").read_text()
    assert "- `spacenet` − `naive`: 10.00 ± 0.50 (significant, p < 0.001, 3 seeds)\n\nCommands:\n" in page
