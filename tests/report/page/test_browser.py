"""The page in a real browser: nothing is fetched, nothing overlaps, only boxes scroll sideways."""

import itertools
import math
from pathlib import Path
from typing import Any

import pytest

from spacenet.report.page.build import save_page
from spacenet.report.page.page import Page
from tests.browsers import needs_browser

pytestmark = needs_browser
WIDTHS = (360, 768, 1440)
ROUNDING = 2.0
"""Pixels."""

TEXTS = """() => {
  const corners = (r) => [[r.left, r.top], [r.right, r.top], [r.right, r.bottom], [r.left, r.bottom]];
  const turned = (e) => corners(DOMRect.fromRect(e.getBBox())).map(([x, y]) => {
    const p = new DOMPoint(x, y).matrixTransform(e.getScreenCTM()); return [p.x, p.y]; });
  const shown = (e) => e.checkVisibility() && e.textContent.trim() && e.getBoundingClientRect().width;
  const html = [...document.querySelectorAll("h1,h2,h3,p,dt,dd,th,td,caption,summary,pre,svg.plot")];
  const words = (e) => e.textContent.trim().slice(0, 60);
  const groups = [html.filter(shown).map((e) => [words(e), corners(e.getBoundingClientRect())])];
  for (const svg of document.querySelectorAll("svg.plot"))
    groups.push([...svg.querySelectorAll("text")].filter(shown).map((e) => [
      svg.closest("figure").id + ": " + words(e), turned(e)]));
  return groups;
}"""
"""Each visible text with its corners, for some are written aslant: those of the page, then those of each plot."""


@pytest.fixture
def files(pages: dict[str, Page], tmp_path: Path) -> dict[str, Path]:
    for name, page in pages.items():
        save_page(page, tmp_path / f"{name}.html")
    return {name: tmp_path / f"{name}.html" for name in pages}


Corners = list[tuple[float, float]]


def overlaps(texts: list[tuple[str, Corners]]) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other."""
    pairs = itertools.combinations(texts, 2)
    return [(one, other) for (one, box), (other, box2) in pairs if depth(box, box2) > ROUNDING]


def depth(one: Corners, other: Corners) -> float:
    """How far two boxes reach into each other: the least over all directions of their sides."""
    least = math.inf
    for box in (one, other):
        for (x, y), (x2, y2) in itertools.pairwise(box):
            length = math.hypot(x2 - x, y2 - y) or 1.0
            across = [[(px * (y - y2) + py * (x2 - x)) / length for px, py in each] for each in (one, other)]
            least = min(least, max(across[0]) - min(across[1]), max(across[1]) - min(across[0]))
            if least <= 0:
                return 0.0
    return least


def test_overlapping_boxes_are_found() -> None:
    def square(x: float, y: float) -> Corners:
        return [(x, y), (x + 10, y), (x + 10, y + 10), (x, y + 10)]

    aslant = [(0.0, 22.0), (20.0, 2.0), (24.0, 6.0), (4.0, 26.0)]
    boxes = [("a", square(0, 0)), ("b", square(5, 5)), ("c", square(14, 0)), ("d", aslant)]
    assert overlaps(boxes) == [("a", "b"), ("b", "d"), ("c", "d")]
    assert overlaps(boxes[::3]) == []  # though the boxes around them do overlap


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["run", "density", "hostile", "comparison", "evaluation"])
def test_a_page_is_whole_at_every_width(browser: Any, files: dict[str, Path], name: str, scheme: str) -> None:
    address = files[name].as_uri()
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        groups = page.evaluate(TEXTS)
        assert len(groups) > 3
        assert all(groups)
        assert [pair for group in groups for pair in overlaps(group)] == [], width
    assert not said
    assert {url for url in asked if not url.startswith("data:")} == {address}
    context.close()


def test_dark_is_dark_and_paper_is_light(browser: Any, files: dict[str, Path]) -> None:
    grounds = {}
    for scheme, medium in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
        page = browser.new_page(color_scheme=scheme)
        page.goto(files["run"].as_uri())
        page.emulate_media(media=medium, color_scheme=scheme)
        grounds[scheme, medium] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert page.evaluate("getComputedStyle(document.querySelector('svg text')).fill") == page.evaluate(
            "getComputedStyle(document.body).color"
        )
        page.close()
    assert grounds["light", "screen"] == grounds["dark", "print"] == "rgb(255, 255, 255)"
    assert grounds["dark", "screen"] != grounds["light", "screen"]


def test_on_a_phone_wide_things_move_in_their_own_box(browser: Any, files: dict[str, Path]) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.goto(files["run"].as_uri())
    for box in page.query_selector_all("figure > .scroll"):
        assert box.evaluate("e => e.firstElementChild.getBoundingClientRect().width") >= 480
        assert box.evaluate("e => e.getBoundingClientRect().width") <= 360
        hint = box.evaluate_handle("e => e.previousElementSibling")
        assert "sideways" in hint.inner_text()
        assert hint.is_visible()
    page.set_viewport_size({"width": 1200, "height": 900})
    assert not any(hint.is_visible() for hint in page.query_selector_all(".hint"))
    page.close()


def test_the_keyboard_reaches_what_can_be_moved_and_unfolded(browser: Any, files: dict[str, Path]) -> None:
    page = browser.new_page()
    page.goto(files["run"].as_uri())
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert {"DIV", "SUMMARY"} <= reached
    page.close()
