"""A search for settings: trials are runs on a validation split of the training data; optuna proposes, engines compute.

A search can have a folder: journal.log says what was tried, trial-N/seed-M are the runs. The same call then continues
where it stopped, unfinished trials first.
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from spacenet.config.presets import preset_config
from spacenet.config.ranges import Choice
from spacenet.config.run import RunConfig
from spacenet.data.stream import Stream
from spacenet.errors import DataError, FileError, SettingsError
from spacenet.experiments.clusters import ClusterLost
from spacenet.experiments.jobs import Job, Outcome, differing_settings, other_settings
from spacenet.experiments.journal import Journal
from spacenet.methods import get_method
from spacenet.utils.extras import require_extra
from spacenet.utils.files import make_folder
from spacenet.utils.text import MeanStd

JOURNAL, SETTINGS = "journal.log", "settings"
Search = Literal["random", "tpe"]


@dataclass(frozen=True)
class Trial:
    """What is tried, and its score: the mean ACC over its seeds in percent; None while it is open or if it failed."""

    number: int
    values: Mapping[str, Any]
    """section.setting → value"""
    score: float | None = None

    def __str__(self) -> str:
        texts = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in self.values.values())
        return "  ".join(f"{key.split('.')[1]} {text}" for key, text in zip(self.values, texts, strict=True))


@dataclass
class Sweep:
    """A search, with its folder if it has one."""

    stream: str
    method: str
    base: Mapping[str, Any]
    """Settings that all trials share, as nested mappings."""
    search: Search = "random"
    seed: int = 0
    """Decides which settings are drawn; the runs count up from it."""
    seeds: int = 1
    data: Stream | None = None
    """The user's own data, if the stream is not one by name."""
    folder: Path | None = None
    fixed: Collection[str] = ()
    """Settings, as section.setting, that are not searched, though the method declares a range for them."""

    def __post_init__(self) -> None:
        declared = get_method(self.method).search_space
        if not declared:
            raise SettingsError(f"{self.method} declares no search space", setting="method")
        self.fixed = sorted(set(self.fixed) & set(declared))
        self.search_space = {name: range_ for name, range_ in declared.items() if name not in self.fixed}
        if not self.search_space:
            raise SettingsError(f"nothing is left to search: all of {', '.join(declared)} are given", setting="method")
        self._optuna = require_extra("sweep", "sweep", "optuna")
        self._study = self._open()

    def config(self, values: Mapping[str, Any], **over: Any) -> RunConfig:
        """The configuration that these values give."""
        tried: dict[str, dict[str, Any]] = {}
        for key, value in values.items():
            section, setting = key.split(".")
            tried.setdefault(section, {})[setting] = value
        return preset_config(self.stream, self.method, self.base, tried, over)

    def _open(self) -> Any:
        optuna, storage = self._optuna, None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        if self.folder is not None:
            make_folder(self.folder)
            storage = optuna.storages.JournalStorage(Journal(self.folder / JOURNAL))
        study = optuna.create_study(storage=storage, study_name="sweep", direction="maximize", load_if_exists=True)
        old, settings = study.user_attrs, self.config({}).to_plain()
        about = {name: getattr(self, name) for name in ("stream", "method", "search", "seed", "seeds", "fixed")}
        kept = {name: old.get(name, value) for name, value in about.items()}
        found = differing_settings(kept, about) or differing_settings(old.get(SETTINGS, settings), settings)
        if found:
            raise other_settings(f"{self.folder} holds another search", found)
        for name, value in {**about, SETTINGS: settings}.items():
            study.set_user_attr(name, value)
        return study

    def trials(self) -> list[Trial]:
        """All trials that were started, the best first; those without a score last."""
        found = [self._trial(t, t.value if t.state.is_finished() else None) for t in self._study.trials]
        return sorted(found, key=lambda trial: math.inf if trial.score is None else -trial.score)

    def run(self, trials: int, at_once: int, execute: Callable[[Sequence[Job]], Iterator[Outcome]]) -> Iterator[Trial]:
        """Continue until `trials` trials are finished, `at_once` at a time; yields each as it ends."""
        while True:
            opened, begun = self._interrupted(), len(self._study.trials)
            while len(opened) < at_once and begun < trials:
                opened.append(self._propose(begun))
                begun += 1
            if not opened:
                return
            yield from self._execute(opened[:at_once], execute)

    def _trial(self, trial: Any, score: float | None = None) -> Trial:
        """A trial with its values, where the journal holds the positions of choices."""
        values = {
            name: r.values[value] if isinstance(r := self.search_space[name], Choice) else value
            for name, value in trial.params.items()
        }
        return Trial(trial.number, values, score)

    def _interrupted(self) -> list[Trial]:
        """Trials that were started and not finished. One that was stopped before it had its values is given up."""
        states = self._optuna.trial.TrialState
        opened = []
        for trial in self._study.get_trials(states=(states.RUNNING,)):
            if set(trial.params) == set(self.search_space):
                opened.append(self._trial(trial))
            else:
                self._study.tell(trial.number, state=states.FAIL)
        return opened

    def _propose(self, number: int) -> Trial:
        """Random search draws a trial's values from the seed and the trial's number alone, wherever it is computed."""
        optuna, seed = self._optuna, 1_000_003 * self.seed + number
        kind = optuna.samplers.RandomSampler if self.search == "random" else optuna.samplers.TPESampler
        drawn = optuna.create_study(sampler=kind(seed=seed), direction="maximize")
        drawn.add_trials(self._study.trials)
        trial = drawn.ask()
        for key, range_ in self.search_space.items():
            if isinstance(range_, Choice):  # by position: values may be lists, which a journal does not take
                trial.suggest_int(key, 0, len(range_.values) - 1)
            elif range_.integer:
                trial.suggest_int(key, int(range_.low), int(range_.high), log=range_.log)
            else:
                trial.suggest_float(key, range_.low, range_.high, log=range_.log)
        # Drawn in memory and written in one step: a trial in the journal has all its values.
        states, held = optuna.trial.TrialState, {"params": trial.params, "distributions": trial.distributions}
        self._study.add_trial(optuna.trial.create_trial(state=states.RUNNING, **held))
        return self._trial(trial)

    def _execute(
        self, trials: Sequence[Trial], execute: Callable[[Sequence[Job]], Iterator[Outcome]]
    ) -> Iterator[Trial]:
        failed = self._optuna.trial.TrialState.FAIL
        jobs: list[Job] = []
        for trial in trials:
            try:
                jobs += self._jobs(trial)
            except SettingsError:  # a combination that cannot work is no reason to stop searching
                self._study.tell(trial.number, state=failed)
                yield trial
        numbered = {trial.number: trial for trial in trials}
        scores: dict[int, list[float | None]] = {}
        for outcome in execute(jobs):
            if isinstance(outcome.error, ClusterLost | FileError | DataError):
                raise outcome.error  # no fault of the settings: the trial stays open and is continued
            number = outcome.job.tag
            found = outcome.data.metrics["acc"] if outcome.finished and outcome.data is not None else None
            scores.setdefault(number, []).append(found)
            if len(scores[number]) == self.seeds:
                acc = [score for score in scores[number] if score is not None]
                score = MeanStd.of(acc).mean if len(acc) == self.seeds else None
                self._study.tell(number, score, state=failed if score is None else None)
                yield dataclasses.replace(numbered[number], score=score)

    def _jobs(self, trial: Trial) -> list[Job]:
        config = self.config(trial.values)
        first = config.model.seed
        return [
            Job(
                config.with_seed(seed),
                self.data,
                self.folder / f"trial-{trial.number}" / f"seed-{seed - first}" if self.folder else None,
                tag=trial.number,
            )
            for seed in range(first, first + self.seeds)
        ]
