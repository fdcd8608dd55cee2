import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from spacenet.report.page.build import build_page
from spacenet.report.page.page import Page, Section, Table, save_figures, save_page, to_html
from tests.report.page.conftest import HOSTILE

VOID = {"meta", "link", "br", "img"}


class Reader(HTMLParser):
    """Checks that tags close in order, and notes what is there."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_it_is_whole_and_takes_nothing_from_elsewhere(run_folder: Path) -> None:
    text = to_html(build_page([run_folder]))
    page = Reader(text)
    assert not page.open
    names = [tag for tag, _ in page.tags]
    assert "script" not in names
    assert names.count("title") >= 1
    for _, given in page.tags:
        for name in ("src", "href", "xlink:href", "action"):
            assert re.match(r"data:|#", given.get(name) or "#"), given
        assert not [name for name in given if name.startswith("on")]
    assert not re.search(r"url\((?!#)|@import", text)
    (policy,) = [g["content"] or "" for t, g in page.tags if t == "meta" and "http-equiv" in g]
    assert policy.startswith("default-src 'none'")
    identifiers = [given["id"] for _, given in page.tags if "id" in given]
    assert len(identifiers) == len(set(identifiers))


def test_headings_are_in_order_and_pictures_say_what_they_show(run_folder: Path) -> None:
    page = build_page([run_folder])
    tags = Reader(to_html(page)).tags
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= before + 1 for before, later in pairwise(levels))
    drawn = [given for tag, given in tags if tag == "svg"]
    assert [given.get("aria-label") for given in drawn] == [plot.text for plot in page.plots]
    assert all(given.get("role") == "img" for given in drawn)
    assert [tag for tag, _ in tags].count("caption") == [tag for tag, _ in tags].count("table")


def test_names_from_outside_stay_text(hostile_folder: Path) -> None:
    page = Reader(to_html(build_page([hostile_folder])))
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "b", "i"}
    words = "".join(page.words)
    assert HOSTILE[0] in words  # as text, in a table
    assert "<i>run" in words
    assert "<b>data.npz" in words


def test_a_name_that_is_no_unicode_can_be_written(tmp_path: Path) -> None:
    page = Page("a \udcff name", "", [Section("x", ["y"]), Section("empty")])
    save_page(page, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>a ? name</h1>" in text
    assert "empty" not in text


def test_a_table_names_its_rows_and_columns() -> None:
    text = to_html(Page("t", "", [Section("s", tables=[Table("what it is", ["a", "b"], [["<1>", "2"]])])]))
    assert "<caption>what it is</caption>" in text
    assert '<th scope="col">b</th>' in text
    assert '<th scope="row">&lt;1&gt;</th><td>2</td>' in text


def test_figures_as_files(run_folder: Path, tmp_path: Path) -> None:
    page = build_page([run_folder])
    written = save_figures(page, tmp_path / "new" / "figures")
    assert len(written) == 2 * len(page.plots) > 8
    assert {path.suffix for path in written} == {".svg", ".png"}
    assert all(path.stat().st_size for path in written)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_can_be_read(mode: str) -> None:
    css = (Path(build_page.__code__.co_filename).parent / "page.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    found = dict(re.findall(r"(--\w+): (#\w{6})", dark if mode == "dark" else light))
    for text in ("--ink", "--muted"):
        for ground in ("--ground", "--raised"):
            assert _contrast(found[text], found[ground]) >= 4.5, (text, ground)
    assert _contrast(found["--focus"], found["--ground"]) >= 3
    assert _contrast(found["--alarm"], found["--raised"]) >= 3


def _contrast(one: str, other: str) -> float:
    bright, dim = sorted((_brightness(one), _brightness(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _brightness(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
