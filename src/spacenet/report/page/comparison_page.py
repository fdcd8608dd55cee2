"""The page of a comparison."""

import dataclasses
from collections.abc import Mapping, Sequence

from spacenet.config.run import RunConfig, to_toml
from spacenet.experiments.run import CONFIG
from spacenet.report.comparison import COLUMNS, cells, notes
from spacenet.report.comparison_data import ComparisonFacts
from spacenet.report.page.cli_command import run_command
from spacenet.report.page.page import Command, Exhibit, Page, Section, Table
from spacenet.report.plots.comparing import comparison_pictures


def comparison_page(facts: ComparisonFacts, configs: Mapping[str, RunConfig], failures: Sequence[str] = ()) -> Page:
    """The page. `configs` are the methods' settings, `failures` what the comparison itself noted."""
    seeds = facts.seeds
    of_seeds = f"{len(seeds)} seeds" if len(seeds) > 1 else f"seed {seeds[0]}"
    many = len(facts.rows)
    lead = (
        f"{many} {'methods' if many > 1 else 'method'} on the same {len(facts.labels)} tasks with "
        f"{sum(map(len, facts.labels))} classes, measured on the {facts.evaluated_on}, task not told."
    )
    sections = [
        Section("The figures", notes(facts.rows), [_table(facts, of_seeds)]),
        Section("Side by side", exhibits=[Exhibit(plot) for plot in comparison_pictures(facts)]),
        _provenance(facts, configs),
    ]
    versions = next(iter(facts.runs.values()))[0]["versions"]
    return Page(
        f"{facts.stream}: {', '.join(facts.runs)}" if many <= 4 else f"{facts.stream}: {many} methods compared",
        lead,
        sections,
        [f"Left out: {reason}" for reason in _missing(facts, failures)],
        foot=f"Made by spacenet {versions['spacenet']}.",
    )


def _missing(facts: ComparisonFacts, failures: Sequence[str]) -> list[str]:
    """Who is not in the table, and why; what the comparison noted is the better reason."""
    there = {f"{method} seed {run['seed']}" for method, runs in facts.runs.items() for run in runs}
    reasons = {reason.split(": ")[0]: reason for reason in (*facts.left_out, *failures)}
    return [reason for who, reason in reasons.items() if who not in there]


def _table(facts: ComparisonFacts, of_seeds: str) -> Table:
    std = ", mean ± standard deviation" if len(facts.seeds) > 1 else ""
    # The method first: it names the row.
    rows = [[row[1], row[0], *row[2:]] for row in map(cells, facts.rows)]
    return Table(f"{facts.stream}, {of_seeds}{std}", [COLUMNS[1], COLUMNS[0], *COLUMNS[2:]], rows, words=2)


def _provenance(facts: ComparisonFacts, configs: Mapping[str, RunConfig]) -> Section:
    """How the runs were made, and how to make them again."""
    lines, files = [], []
    alike: dict[tuple[str, str, str], list[str]] = {}
    for method, runs in facts.runs.items():
        config = dataclasses.replace(configs[method], seed=runs[0]["seed"])
        lines.append(run_command(config, len(runs)))
        files.append((f"{CONFIG} of {method}", to_toml(config)))
        versions = ", ".join(f"{name} {version}" for name, version in runs[0]["versions"].items())
        seeds = ", ".join(str(run["seed"]) for run in runs)
        alike.setdefault((seeds, runs[0]["hardware"], versions), []).append(method)
    rows = [[", ".join(methods), *how] for how, methods in alike.items()]
    made = Table("Made with", ["methods", "seeds", "hardware", "versions"], rows, words=4)
    again = Command("The same runs again, one line for each method:", "\n".join(lines))
    return Section("How it was made", tables=[made], commands=[again], files=files)
