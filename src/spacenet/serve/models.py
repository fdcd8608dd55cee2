"""The models of a service: each has a name, a file and, where learning is allowed, jobs that change it."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from spacenet.errors import SettingsError
from spacenet.serve.jobs import Jobs
from spacenet.serve.messages import RequestError
from spacenet.serve.store import Store
from spacenet.serve.watcher import Watcher

log = logging.getLogger("spacenet")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Names that can stand in an address as they are."""


@dataclass(frozen=True)
class Hosted:
    """One model of the service."""

    name: str
    store: Store
    jobs: Jobs | None = None
    """None if it only predicts."""
    watcher: Watcher | None = None
    """Counts predictions; None if the service does not tell unknown inputs unless it is asked to."""

    @property
    def rate(self) -> float | None:
        """Where requests do not say, this fraction of inputs of known classes is called unknown."""
        return None if self.watcher is None else self.watcher.rate


class Models:
    """All models of a service, by their names; the first is what addresses without a name mean."""

    def __init__(self, hosted: Sequence[Hosted]) -> None:
        self._hosted = {each.name: each for each in hosted}
        self.default = hosted[0]

    def replace(self, hosted: Hosted) -> None:
        """Put one model in the place of all."""
        self._hosted, self.default = {hosted.name: hosted}, hosted

    def __getitem__(self, name: str) -> Hosted:
        if found := self._hosted.get(name):
            return found
        raise RequestError(f"unknown model {name[:100]!r}; choose from {', '.join(self._hosted)}", 404)

    def __iter__(self) -> Iterator[Hosted]:
        return iter(self._hosted.values())

    def __len__(self) -> int:
        return len(self._hosted)


@contextmanager
def open_models(files: Mapping[str, Path], *, learns: bool = False, unknown: float | None = None) -> Iterator[Models]:
    """Serve the files with these names. With `unknown`, inputs that are like no class are told at this rate, and
    predictions are counted."""
    with ExitStack() as opened:
        hosted = []
        for name, store in [(name, Store(path)) for name, path in files.items()]:  # all of them, before jobs begin
            served, watcher = store.current, None
            if unknown is not None:
                watcher = opened.enter_context(closing(Watcher(store, unknown)))
                if served.classes and not served.tells_unknown:
                    method = served.model.config.method
                    log.warning("spacenet: warning: %s cannot tell unknown inputs, it is of %s", store.path, method)
            hosted.append(Hosted(name, store, opened.enter_context(closing(Jobs(store))) if learns else None, watcher))
        yield Models(hosted)


def name_models(arguments: Sequence[str]) -> dict[str, Path]:
    """The model file of each name, from `NAME=PATH` or `PATH`, which is named like the file without its suffix."""
    found: dict[str, Path] = {}
    for argument in arguments:
        name, path = _split(argument)
        if name in found:
            reason = f"two models are called {name!r} ({found[name]} and {path}); name one of them: NAME={path}"
            raise SettingsError(reason)
        if any(_same_file(path, other) for other in found.values()):
            raise SettingsError(f"{path} is given twice; one file is one model")
        found[name] = path
    if not found:
        raise SettingsError("give at least one model file: spacenet serve model.safetensors")
    return found


def _split(argument: str) -> tuple[str, Path]:
    name, given, rest = argument.partition("=")
    path = Path(argument).expanduser()
    if given and rest and not path.exists():
        if not NAME.fullmatch(name):
            reason = f"{name!r} cannot name a model; use up to 100 letters, digits, dots, hyphens and underscores"
            raise SettingsError(f"{reason}, the first a letter or a digit")
        return name, Path(rest).expanduser()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem)[:100].lstrip("._-") or "model", path


def _same_file(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
