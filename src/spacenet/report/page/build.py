"""From folders to a page: which kind it becomes, and where it goes."""

import json
from collections.abc import Sequence
from pathlib import Path

from spacenet.errors import RunError, SettingsError
from spacenet.experiments.run import load_config
from spacenet.report.comparison_data import load_comparison, runs_in
from spacenet.report.page.comparison_page import comparison_page
from spacenet.report.page.page import Page
from spacenet.report.page.run_page import run_page
from spacenet.report.run_data import RunFacts, load_run

PAGE = "report.html"
COMPARISON = "comparison.json"


def build_page(folders: Sequence[Path], beside: Path | None = None, failures: Sequence[str] | None = None) -> Page:
    """The page of a run, of its seeds, or of a comparison, whichever the folders hold.

    `failures` are those of a comparison that is just ending; otherwise what it noted is read.
    """
    runs = dict.fromkeys(run.resolve() for folder in folders for run in runs_in(folder))
    configs = {run: load_config(run) for run in runs}
    methods = {config.method: config for config in configs.values()}
    if len(methods) == 1 and len(folders) == 1:
        loaded, missing = _loaded(sorted(runs, key=lambda run: configs[run].seed))
        return run_page(loaded, load_run(beside) if beside else None, missing)
    if beside is not None:
        raise SettingsError("beside: this goes with one run; a comparison shows its methods side by side anyway")
    return comparison_page(load_comparison(folders), methods, _failures(folders) if failures is None else failures)


def usual_place(folders: Sequence[Path]) -> Path:
    """Where the page goes: into the folder that it is about; of several, none is."""
    return folders[0] / PAGE if len(folders) == 1 else Path(PAGE)


def _loaded(runs: Sequence[Path]) -> tuple[list[RunFacts], list[str]]:
    """The seeds that can be shown, and why others cannot; if none can, that is an error."""
    loaded: list[RunFacts] = []
    errors: list[RunError] = []
    for run in runs:
        try:
            loaded.append(load_run(run))
        except RunError as error:
            errors.append(error)
    if not loaded:
        raise errors[0]
    return loaded, list(map(str, errors))


def _failures(folders: Sequence[Path]) -> list[str]:
    """Who took no part, where a comparison noted it."""
    notes = [folder / COMPARISON for folder in folders if (folder / COMPARISON).is_file()]
    return [str(reason) for note in notes for reason in json.loads(note.read_text(encoding="utf-8"))["failures"]]
