import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from spacenet.report.page import page as page_module
from spacenet.report.page.build import save_page
from spacenet.report.page.page import Page, Section
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


@pytest.mark.parametrize("name", ["run", "density", "hostile", "comparison", "evaluation"])
def test_it_is_complete_and_loads_nothing(html: Callable[[str], str], name: str) -> None:
    text = html(name)
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


def test_headings_are_in_order_and_plots_have_text_alternatives(
    pages: dict[str, Page], html: Callable[[str], str]
) -> None:
    page = pages["run"]
    tags = Reader(html("run")).tags
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= before + 1 for before, later in pairwise(levels))
    drawn = [given for tag, given in tags if tag == "svg"]
    assert [given.get("aria-label") for given in drawn] == [plot.text for plot in page.plots]
    assert all(given.get("role") == "img" for given in drawn)
    assert [tag for tag, _ in tags].count("caption") == [tag for tag, _ in tags].count("table")


def test_names_from_users_stay_text(html: Callable[[str], str]) -> None:
    page = Reader(html("hostile"))
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "b", "i"}
    words = "".join(page.words)
    assert HOSTILE[0] in words  # as text, in a table
    assert "<i>run" in words
    assert "<b>full" in words


def test_a_name_that_is_no_unicode_can_be_written(tmp_path: Path) -> None:
    page = Page("a \udcff name", "", [Section("x", notes=["y"]), Section("empty")])
    save_page(page, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>a ? name</h1>" in text
    assert "empty" not in text


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_can_be_read(mode: str) -> None:
    css = (Path(page_module.__file__).parent / "page.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    found = dict(re.findall(r"(--\w+): (#\w{6})", dark if mode == "dark" else light))
    for text in ("--ink", "--muted"):
        for ground in ("--ground", "--raised"):
            assert _contrast(found[text], found[ground]) >= 4.5, (text, ground)
    assert _contrast(found["--focus"], found["--ground"]) >= 3
    assert _contrast(found["--warning"], found["--raised"]) >= 3


def _contrast(one: str, other: str) -> float:
    bright, dim = sorted((_brightness(one), _brightness(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _brightness(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
