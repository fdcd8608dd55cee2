"""What can be chosen by name: methods, networks, data sets and streams.

Each registry knows its built-in entries by where they are defined and imports one only when it is asked for. More come
from `register` in Python, or from an installed package through an entry point of the group `spacenet.methods`,
`spacenet.nets`, `spacenet.datasets` or `spacenet.streams`.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from spacenet.errors import SettingsError

MANY_CHOICES = 12
"""Names beyond which a message lists them only if none of them is near."""


def unknown(kind: str, name: str, choices: Iterable[str], setting: str = "") -> SettingsError:
    """The error for a name that does not exist: the nearest one that does, and what there is to choose from."""
    names = list(choices)
    near = nearest(name, names)
    hint = f", did you mean {near!r}?" if near else "."
    listed = f" Choose from {', '.join(names)}." if names and (not near or len(names) <= MANY_CHOICES) else ""
    return SettingsError(f"unknown {kind} {name!r}{hint}{listed}", setting=setting)


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice that a wrong name most probably means, if there is one.

    It differs in case and separators only, or is abbreviated by its initials (lr: learning_rate), or ends with the name
    (mnist: split-mnist), or is spelled much alike, or begins with the name or contains it, or is spelled a bit alike.
    """
    wrong, known = _letters(name), {_letters(choice): choice for choice in sorted(choices, key=len, reverse=True)}
    shortest_first = list(reversed(known.items()))

    def first(test: Callable[[str, str], bool]) -> str | None:
        return next((choice for letters, choice in shortest_first if test(letters, choice)), None)

    def alike(cutoff: float) -> str | None:
        close = get_close_matches(wrong, list(known), n=1, cutoff=cutoff)
        return known[close[0]] if close else None

    if len(wrong) < 3:
        return known.get(wrong) or first(lambda letters, choice: len(wrong) == 2 and _initials(choice) == wrong)
    return (
        known.get(wrong)
        or first(lambda letters, choice: _initials(choice) == wrong)
        or first(lambda letters, choice: letters.endswith(wrong))
        or alike(0.8)
        or first(lambda letters, choice: letters.startswith(wrong))
        or first(lambda letters, choice: wrong in letters)
        or alike(0.6)
    )


def _initials(name: str) -> str:
    return "".join(word[0] for word in re.findall(r"[a-z]+|[0-9]+", name.lower()))


def _letters(name: str) -> str:
    """A name without what is easily mistaken: case and separators."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


class Registry(Mapping[str, Any]):
    """Entries by name, loaded when asked for."""

    def __init__(self, kind: str, builtin: Mapping[str, str]) -> None:
        """`kind` is the word for an entry, `builtin` maps names to "module:attribute"."""
        self.kind, self.group = kind, f"spacenet.{kind.replace(' ', '')}s"
        self._own: dict[str, Any] = {name: EntryPoint(name, place, self.group) for name, place in builtin.items()}

    @property
    def registered(self) -> dict[str, Any]:
        """What `register` added."""
        return {name: entry for name, entry in self._own.items() if not isinstance(entry, EntryPoint)}

    def register(self, name: str, entry: Any, *, replace: bool = False) -> None:
        """Add an entry for this process. A name that exists already is an error, unless it is the same entry or one
        that was registered and may be replaced."""
        if not name or name != name.strip():
            raise SettingsError(f"{name!r} is not a name for a {self.kind}")
        if not (replace and name in self.registered) and not _is_same(self._own.get(name, entry), entry):
            raise SettingsError(f"there is already a {self.kind} named {name!r}; choose another name")
        self._own[name] = entry

    def unregister(self, name: str) -> None:
        """Remove an entry that `register` added."""
        if name in self.registered:
            del self._own[name]

    def _all(self) -> dict[str, Any]:
        """With those of installed packages, which cannot replace others."""
        installed = _installed(entry_points, self.group, tuple((place, _changed(place)) for place in sys.path))
        return {**self._own, **installed, **self._own}

    def __getitem__(self, name: str) -> Any:
        entry = self._own[name] if name in self._own else self._all().get(name)
        if entry is None:
            raise unknown(self.kind, name, self)
        if not isinstance(entry, EntryPoint):
            return entry
        try:
            return entry.load()
        except Exception as error:
            if name in self._own:
                raise
            package = entry.dist.name if entry.dist else "unknown"
            raise SettingsError(
                f"the {self.kind} {name!r} ({entry.value}, from the package {package}) cannot be loaded: {error}"
            ) from error

    def get(self, name: str, default: Any = None) -> Any:
        """The entry with this name, or the default."""
        return self[name] if name in self else default  # noqa: SIM401, this is it

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._all()

    def __iter__(self) -> Iterator[str]:
        """All names; nothing is imported for it."""
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


@lru_cache(maxsize=16)
def _installed(
    find: Callable[..., Iterable[EntryPoint]], group: str, places: tuple[tuple[str, int], ...]
) -> dict[str, EntryPoint]:
    """The entry points of a group. All packages in these places are read for it, so once until one of them changes."""
    return {point.name: point for point in find(group=group)}


def _changed(place: str) -> int:
    """When something was last installed in a folder of Python's path."""
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0


def registered_entries() -> dict[str, dict[str, Any]]:
    """What was registered in this process, to be registered in another one."""
    return {registry.kind: registry.registered for registry in (METHODS, NETS, DATASETS, STREAMS)}


def register_entries(entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Register what `registered_entries` returned."""
    for registry in (METHODS, NETS, DATASETS, STREAMS):
        registry._own |= entries.get(registry.kind, {})


def _is_same(old: Any, new: Any) -> bool:
    """Whether entries are the same, or a notebook cell that defines and registers one was run once more."""
    names = [(getattr(each, "__module__", None), getattr(each, "__qualname__", None)) for each in (old, new)]
    return old is new or (names[0] == names[1] and None not in names[0])


def _methods(**classes: str) -> dict[str, str]:
    return {module.replace("_", "-"): f"spacenet.methods.{module}:{name}" for module, name in classes.items()}


def _constants(module: str, *names: str) -> dict[str, str]:
    return {name: f"{module}:{name.upper().replace('-', '_')}" for name in names}


METHODS = Registry(
    "method",
    # In the order of the paper's tables: the lower bound first, the upper bound last.
    _methods(
        naive="Naive",
        ewc="EWC",
        si="SI",
        mas="MAS",
        lwf="LwF",
        ldc="LDC",
        er="ER",
        dgr="DGR",
        icarl="ICaRL",
        spacenet_rehearsal="SpaceNetRehearsal",
        gaussian="Gaussian",
        ncm="NCM",
        slda="SLDA",
        fecam="FeCAM",
        dense_density="DenseDensity",
        acil="ACIL",
        ranpac="RanPAC",
        den="DEN",
        packnet="PackNet",
        piggyback="Piggyback",
        pnn="PNN",
        pathnet="PathNet",
        clnp="CLNP",
        cwr="CWR",
        ar1="AR1",
        independent="Independent",
        static_sparse="StaticSparse",
        spacenet="SpaceNet",
        spacenet_density="SpaceNetDensity",
        spacenet_experts="SpaceNetExperts",
        joint="Joint",
    ),
)
"""Subclasses of `spacenet.methods.base.Method`."""

NETS = Registry(
    "net",
    {
        "mlp": "spacenet.nets.mlp:build_mlp",
        "small-cnn": "spacenet.nets.small_cnn:build_small_cnn",
        "resnet-18": "spacenet.nets.residual:build_resnet18",
    },
)
"""Functions (input_shape, hidden) → Blueprint; `wrn-DEPTH-WIDTH` is a family of names, see `spacenet.nets`."""

DATASETS = Registry(
    "data set",
    _constants("spacenet.data.datasets", "digits", "mnist", "fashion-mnist", "cifar-10", "cifar-100", "cifar-10-100"),
)
"""Objects with `load(data_dir)`, which gives a `spacenet.data.dataset.Dataset`."""

STREAMS = Registry(
    "stream",
    _constants(
        "spacenet.data.stream_specs",
        "split-digits",
        "split-mnist",
        "split-fashion-mnist",
        "split-cifar-10",
        "icifar-100",
        "cifar-10-100",
    ),
)
"""`spacenet.data.stream_specs.StreamSpec`: a data set, and how many classes a task has unless settings say it."""
