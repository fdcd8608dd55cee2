"""Files out of a tar.gz: what comes of it, and of archives made to do harm."""

import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from spacenet.data import datasets, download, fetch
from spacenet.data.files import Archive, DataFile, FileProblem, FileSet, VerifiedFile
from spacenet.errors import DataError
from tests.data.support import CONTENTS, PACKED, Handler, files, fill, left_in

FOLDER = "tiny-bin"
FIRST, *REST = CONTENTS
Member = tuple[tarfile.TarInfo, bytes]


def member(name: str, content: bytes = b"", **changes: object) -> Member:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in changes.items():
        setattr(info, key, value)
    return info, content


def whole(names: Iterable[str] = CONTENTS) -> list[Member]:
    return [member(f"{FOLDER}/{name}", CONTENTS[name]) for name in names]


def tar(members: Iterable[Member]) -> bytes:
    """The archive, written header by header: tarfile itself would not write one that lies."""
    out = bytearray()
    for info, content in members:
        out += info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)
    return bytes(out) + bytes(2 * tarfile.BLOCKSIZE)


def read(tmp_path: Path, raw: bytes, limit: int = 100_000) -> tuple[dict[str, bytes], list[str]]:
    path = tmp_path / "archive"
    path.write_bytes(raw)
    results = list(download.read_tar(path, FOLDER, files(), limit))
    assert left_in(tmp_path) == ["archive"]
    pieces = {result.file.name: result.content for result in results if isinstance(result, VerifiedFile)}
    assert all(result.broken for result in results if isinstance(result, FileProblem))
    return pieces, [str(result) for result in results if isinstance(result, FileProblem)]


@pytest.fixture
def archived(tiny: Callable[..., FileSet], server: str) -> Callable[[bytes], FileSet]:
    """The data set `tiny`, whose only source is an archive with these bytes."""

    def make(raw: bytes) -> FileSet:
        Handler.archives["/tiny.tar.gz"] = raw
        return tiny(archive=Archive(f"{server}/tiny.tar.gz", FOLDER))

    return make


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_fetch_takes_the_files_and_caches_them(
    archived: Callable[[bytes], FileSet], tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    file_set = archived(
        pack(tar([member(FOLDER, type=tarfile.DIRTYPE), *whole(), member(f"{FOLDER}/readme.html", b"<html>")]))
    )
    fetched = fetch.fetch_files(file_set)
    assert fetched.downloaded == tuple(CONTENTS)
    assert fetched.where.endswith("/tiny.tar.gz")
    assert left_in(tmp_path) == sorted(PACKED)
    assert fetch.load_files(file_set).contents == CONTENTS
    assert Handler.requests == ["/tiny.tar.gz"]


def test_only_what_is_missing_is_stored(archived: Callable[[bytes], FileSet], tmp_path: Path) -> None:
    file_set = archived(gzip.compress(tar(whole())))
    (fill(tmp_path / "cache" / "data" / "tiny") / f"{FIRST}.gz").write_bytes(b"broken")
    assert fetch.fetch_files(file_set).downloaded == (FIRST,)
    assert fetch.load_files(file_set).contents == CONTENTS


def test_a_bad_archive_falls_through(archived: Callable[[bytes], FileSet], caplog: pytest.LogCaptureFixture) -> None:
    wrong = bytes(len(CONTENTS[FIRST]))
    file_set = archived(gzip.compress(tar([member(f"{FOLDER}/{FIRST}", wrong), *whole(REST)])))
    with pytest.raises(DataError) as error:
        fetch.fetch_files(file_set)
    assert f"/tiny.tar.gz: {FOLDER}/{FIRST}: checksum does not match" in str(error.value)
    assert "1 of 4 files could not be found or downloaded. Tried" in str(error.value)
    assert f"Put {FIRST} into DIR/{file_set.folders[0]}/" in str(error.value)
    assert "checksum does not match" in caplog.text


def test_the_next_source_gives_the_rest(tiny: Callable[..., FileSet], server: str, tmp_path: Path) -> None:
    Handler.archives["/tiny.tar.gz"] = gzip.compress(tar(whole(REST)))
    archive = Archive(f"{server}/tiny.tar.gz", FOLDER)
    file_set = tiny(mirrors=(f"{server}/gone/",), archive=archive)
    found = fetch.search(file_set)
    assert set(found.contents) == set(REST)
    assert f"{archive.url}: has no {FOLDER}/{FIRST}" in found.problems
    file_set = tiny(mirrors=(f"{server}/good/",), archive=archive)
    assert fetch.load_files(file_set).downloaded == [FIRST]


def test_an_answer_without_end_and_none_at_all(
    archived: Callable[[bytes], FileSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr(download, "ARCHIVE_OVERHEAD", 1000)
    file_set = archived(bytes(100_000))
    with pytest.raises(DataError, match="tiny.tar.gz: the server sends more than the file should have"):
        fetch.fetch_files(file_set)
    assert file_set.archive is not None
    gone = replace(file_set.archive, url=file_set.archive.url.replace("tiny.tar.gz", "gone/tiny.tar.gz"))
    (reason,) = download.read_archive(file_set, gone, file_set.files)
    assert str(reason) == "the server answers 404 Not Found"
    assert left_in(tmp_path) == []
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [f"/{FOLDER}/{FIRST}", f"./{FOLDER}/{FIRST}", f"../{FOLDER}/{FIRST}", f"{FOLDER}//{FIRST}", FIRST, f"x/{FIRST}"],
)
def test_names_must_be_exact(tmp_path: Path, name: str) -> None:
    odd = member(name, CONTENTS[FIRST])
    pieces, reasons = read(tmp_path, gzip.compress(tar([odd, *whole(REST)])))
    assert set(pieces) == set(REST)
    assert reasons == [f"has no {FOLDER}/{FIRST}"]
    assert read(tmp_path, gzip.compress(tar([odd, *whole()]))) == (CONTENTS, [])


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE, tarfile.CONTTYPE],
)
def test_links_and_devices_are_no_files(tmp_path: Path, kind: bytes) -> None:
    secret = tmp_path.parent / "secret"
    secret.write_bytes(CONTENTS[FIRST])
    odd = member(f"{FOLDER}/{FIRST}", type=kind, linkname=str(secret))
    pieces, reasons = read(tmp_path, gzip.compress(tar([*whole(REST), odd])))
    assert set(pieces) == set(REST)
    assert reasons == [f"{FOLDER}/{FIRST}: not a regular file"]


def test_a_link_to_a_member_is_not_followed(tmp_path: Path) -> None:
    hidden = member("hidden", CONTENTS[FIRST])
    link = member(f"{FOLDER}/{FIRST}", type=tarfile.LNKTYPE, linkname="hidden")
    pieces, _ = read(tmp_path, gzip.compress(tar([hidden, link, *whole(REST)])))
    assert set(pieces) == set(REST)


def test_the_first_of_two_members_is_the_one(tmp_path: Path) -> None:
    other = member(f"{FOLDER}/{FIRST}", b"other")
    assert read(tmp_path, gzip.compress(tar([*whole(), other]))) == (CONTENTS, [])
    pieces, reasons = read(tmp_path, gzip.compress(tar([other, *whole()])))
    assert set(pieces) == set(REST)
    assert reasons == [f"{FOLDER}/{FIRST}: has 5 bytes instead of {len(CONTENTS[FIRST])}"]


@pytest.mark.parametrize("size", [10**9, 2**70, -1, -512])
@pytest.mark.parametrize("name", ["readme.html", f"{FOLDER}/{FIRST}"])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_sizes_that_are_made_up(tmp_path: Path, size: int, name: str, kind: bytes) -> None:
    odd = member(name, size=size, type=kind)
    pieces, reasons = read(tmp_path, gzip.compress(tar([*whole(REST), odd, *whole([FIRST])])))
    assert set(pieces) == set(REST)
    # Some versions of Python refuse a negative size themselves, and take it for the end of the archive.
    assert reasons in (["the archive has more content than it should"], [f"has no {FOLDER}/{FIRST}"])
    assert size < 0 or reasons[0].startswith("the archive has more")


def bomb(kind: bytes) -> bytes:
    return gzip.compress(tar([member("filler", bytes(50_000_000), type=kind), *whole()]))


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, b"?"])
def test_a_bomb_is_not_unpacked(tmp_path: Path, kind: bytes) -> None:
    raw = bomb(kind)
    tracemalloc.start()
    pieces, reasons = read(tmp_path, raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (pieces, reasons) == ({}, ["the archive has more content than it should"])
    # Not even one copy of the filler, which tarfile would make of an extended header.
    assert peak < 45_000_000


def test_members_without_end(tmp_path: Path) -> None:
    raw = gzip.compress(tar([*(member(f"empty-{number}") for number in range(1100)), *whole()]))
    assert read(tmp_path, raw) == ({}, ["the archive has more content than it should"])


def test_extended_headers_are_passed_over(tmp_path: Path) -> None:
    """Attributes in a pax header change nothing; not even a size that they claim for the next member."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, content in whole():
            info.pax_headers = {"comment": "x" * 2000, "mtime": "1.5"}
            archive.addfile(info, io.BytesIO(content))
    assert read(tmp_path, gzip.compress(stream.getvalue())) == (CONTENTS, [])
    record = b"24 size=99999999999999\n"
    sparse = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
    for attributes in (record, sparse):
        header = member("pax", attributes, type=tarfile.XHDTYPE)
        assert read(tmp_path, gzip.compress(tar([header, *whole()]))) == (CONTENTS, [])


def test_truncated_and_damaged(tmp_path: Path) -> None:
    """Whatever is cut off or flipped: right files or a reason, never another exception, and no wrong content."""
    packed, plain = gzip.compress(tar(whole())), tar(whole())
    for raw in (packed, plain):
        step = max(1, len(raw) // 60)
        cut = [raw[:length] for length in range(0, len(raw), step)]
        flipped = [raw[:at] + bytes([raw[at] ^ 0x5A]) + raw[at + 1 :] for at in range(0, len(raw), step)]
        for damaged in (*cut, *flipped):
            pieces, reasons = read(tmp_path, damaged)
            assert pieces.items() <= CONTENTS.items()
            assert len(pieces) == 4 or reasons
    for nonsense in (
        b"",
        b"<html>sorry</html>",
        gzip.compress(b""),
        gzip.compress(b"text"),
        b"\x1f\x8b" + b"\xff" * 99,
    ):
        pieces, reasons = read(tmp_path, nonsense)
        assert pieces == {}
        assert len(reasons) == 1


def test_a_member_that_is_cut_off(tmp_path: Path) -> None:
    plain = tar(whole([FIRST]))
    pieces, reasons = read(tmp_path, gzip.compress(plain[: tarfile.BLOCKSIZE + 5]))
    assert pieces == {}
    assert reasons == ["unreadable archive (unexpected end of data)"]


@pytest.mark.parametrize("known", [datasets.CIFAR_10, datasets.CIFAR_100])
def test_the_table_has_one_archive_for_each_cifar(known: datasets.FileDataset) -> None:
    entry = known.source
    assert entry.archive is not None
    assert entry.archive.url.endswith(f"/{known.name}-binary.tar.gz")
    assert entry.archive.folder == entry.folders[0]
    assert all(isinstance(file, DataFile) and len(file.sha256) == 64 for file in entry.files)
    assert len({file.sha256 for file in entry.files}) == len(entry.files)
