"""A search for settings: trials are runs on a validation split of the training data; optuna proposes, engines compute.

A folder holds the search: journal.log says what was tried, trial-N/seed-M are the runs. The same command goes on where
it stopped, and half-finished trials first.
"""

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from spacenet.config.presets import preset
from spacenet.config.ranges import Choice, Uniform
from spacenet.config.run import RunConfig
from spacenet.errors import RunError, SettingsError
from spacenet.experiments.batch import Outcome
from spacenet.experiments.run import CONFIG, create_folder
from spacenet.methods import get_method
from spacenet.utils.extras import require_extra

JOURNAL, BEST = "journal.log", "best.toml"
Search = Literal["random", "tpe"]
TrialValues = Mapping[str, Any]
"""What a trial tries: section.setting → value."""


@dataclass(frozen=True)
class Trial:
    """What is tried, and its score: the mean ACC over its seeds in percent; None while it is open or if it failed."""

    number: int
    values: TrialValues
    score: float | None = None


class Sweep:
    """A search in its folder. `base` says what all trials share."""

    def __init__(
        self, folder: Path, base: Mapping[str, Any], stream: str, method: str, search: Search, seed: int, seeds: int = 1
    ) -> None:
        self.folder, self.base, self.stream, self.method = folder, base, stream, method
        self.search, self.seed, self.seeds = search, seed, seeds
        self.search_space = get_method(method).search_space
        if not self.search_space:
            raise SettingsError(f"method: {method} declares no ranges to search")
        self._optuna = require_extra("sweep", "sweep", "optuna")
        self._study = self._open()

    def _open(self) -> Any:
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        self.folder.mkdir(parents=True, exist_ok=True)
        journal = require_extra("sweep", "sweep", "optuna.storages.journal")
        storage = self._optuna.storages.JournalStorage(journal.JournalFileBackend(str(self.folder / JOURNAL)))
        study = self._optuna.create_study(
            storage=storage, study_name="sweep", direction="maximize", load_if_exists=True
        )
        about = {"stream": self.stream, "method": self.method, "search": self.search, "seed": self.seed}
        if study.user_attrs and study.user_attrs != about:
            was = ", ".join(f"{key} {value}" for key, value in study.user_attrs.items() if about[key] != value)
            raise RunError(f"{self.folder} holds another search ({was}); choose another --out")
        for key, value in about.items():
            study.set_user_attr(key, value)
        return study

    def trials(self) -> list[Trial]:
        """All that were begun."""
        return [Trial(t.number, t.params, t.value if t.state.is_finished() else None) for t in self._study.trials]

    def best(self) -> Trial | None:
        scored = [trial for trial in self.trials() if trial.score is not None]
        return max(scored, key=lambda trial: trial.score or 0.0, default=None)

    def run(self, trials: int, at_once: int, execute: Callable[[Sequence[Path]], Iterator[Outcome]]) -> Iterator[Trial]:
        """Go on until so many trials are finished, `at_once` at a time; yields each as it ends."""
        while True:
            opened, begun = self._interrupted(), len(self._study.trials)
            while len(opened) < at_once and begun < trials:
                opened.append(self._propose(begun))
                begun += 1
            if not opened:
                return
            yield from self._carry_out(opened[:at_once], execute)

    def _interrupted(self) -> list[Trial]:
        """Trials that were begun and not finished. One that was stopped before it had its values is given up."""
        states = self._optuna.trial.TrialState
        opened = []
        for trial in self._study.get_trials(states=(states.RUNNING,)):
            if set(trial.params) == set(self.search_space):
                opened.append(Trial(trial.number, trial.params))
            else:
                self._study.tell(trial.number, state=states.FAIL)
        return opened

    def _propose(self, number: int) -> Trial:
        """Random search draws a trial's values from the seed and the trial's number alone, whoever computes it."""
        samplers = self._optuna.samplers
        seed = 1_000_003 * self.seed + number
        self._study.sampler = (
            samplers.RandomSampler(seed) if self.search == "random" else samplers.TPESampler(seed=seed)
        )
        trial = self._study.ask()
        values = {key: _draw(trial, key, range_) for key, range_ in self.search_space.items()}
        return Trial(trial.number, values)

    def plain(self, values: TrialValues) -> TrialValues:
        """The values themselves, where the journal holds their numbers."""
        search_space = self.search_space
        return {k: r.values[v] if isinstance(r := search_space[k], Choice) else v for k, v in values.items()}

    def config(self, values: TrialValues, **over: Any) -> RunConfig:
        """The config that these values give."""
        tried: dict[str, dict[str, Any]] = {}
        for key, value in self.plain(values).items():
            section, setting = key.split(".")
            tried.setdefault(section, {})[setting] = value
        return preset(self.stream, self.method, self.base, tried, over)

    def _carry_out(
        self, trials: Sequence[Trial], execute: Callable[[Sequence[Path]], Iterator[Outcome]]
    ) -> Iterator[Trial]:
        open_trials = {trial.number: trial for trial in trials}
        folders: dict[Path, int] = {}
        failed = self._optuna.trial.TrialState.FAIL
        for trial in trials:
            try:
                folders |= dict.fromkeys(self._folders(trial), trial.number)
            except SettingsError:  # a combination that cannot work is no reason to stop searching
                self._study.tell(trial.number, state=failed)
                yield open_trials.pop(trial.number)
        scores: dict[int, list[float | None]] = {}
        for outcome in execute(list(folders)):
            number = folders[outcome.folder]
            scored = outcome.metrics if outcome.error is None else None
            scores.setdefault(number, []).append(scored["acc"] if scored else None)
            if len(scores[number]) == self.seeds:
                found = [score for score in scores[number] if score is not None]
                whole = len(found) == self.seeds
                score = statistics.mean(found) if whole else None
                self._study.tell(number, score, state=None if whole else failed)
                yield dataclasses.replace(open_trials[number], score=score)

    def _folders(self, trial: Trial) -> list[Path]:
        config = self.config(trial.values)
        places = {self.folder / f"trial-{trial.number}" / f"seed-{seed}": seed for seed in range(self.seeds)}
        for place, seed in places.items():
            if not (place / CONFIG).is_file():
                create_folder(dataclasses.replace(config, seed=config.seed + seed), place)
        return list(places)


def _draw(trial: Any, key: str, range_: Uniform | Choice) -> Any:
    if isinstance(range_, Choice):  # by number: values may be lists, which a journal does not take
        return trial.suggest_int(key, 0, len(range_.values) - 1)
    if range_.integer:
        return trial.suggest_int(key, int(range_.low), int(range_.high), log=range_.log)
    return trial.suggest_float(key, range_.low, range_.high, log=range_.log)
