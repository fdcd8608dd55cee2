"""The studio in a real browser: teaching, trying, editing; by mouse and keyboard; narrow and wide; light and dark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import spacenet
from tests.browsers import needs_browser
from tests.studio.live import LEARNING, Person, live_studio
from tests.studio.support import draw

pytest.importorskip("PIL.Image", reason="the studio needs the extra 'studio'")
pytestmark = needs_browser
HOSTILE = "<img src=x onerror=alert(1)>"
LEAST_CONTRAST = 4.5
"""Of text and its ground, as the Web Content Accessibility Guidelines ask for (AA)."""

CONTRASTS = """() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => v / 255).map(
    (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (e) => { for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.99) return c; } return [255, 255, 255, 1]; };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.disabled || e.id === "status" || !e.checkVisibility() || e.closest("svg,.sr,template")) continue;
    const [one, other] = [light(parse(getComputedStyle(e).color)), light(ground(e))].sort((a, b) => b - a);
    found.push([(one + 0.05) / (other + 0.05), e.textContent.trim().slice(0, 50)]);
  }
  return found;
}"""
"""The contrast of each visible text with what is behind it."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with live_studio(tmp_path) as address:
        yield address


def check_looks(page: Any) -> None:
    """Nothing scrolls sideways, and all text can be read, at every width and in both color schemes."""
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            contrasts = page.evaluate(CONTRASTS)
            assert len(contrasts) > 5
            assert [each for each in contrasts if each[0] < LEAST_CONTRAST] == [], (width, scheme)
    page.emulate_media(color_scheme="light")


def test_a_person_teaches_tries_and_edits(browser: Any, address: str, tmp_path: Path) -> None:
    person = Person(browser, address, accept_downloads=True)
    page = person.page
    check_looks(page)
    person.begin()
    for name in "012":
        person.teach(name, name, range(5))
    check_looks(page)
    person.learn()
    for name in "34":
        person.teach(name, name, range(5))
    person.learn()
    assert person.classes() == list("01234")
    for seed, name in enumerate("01234"):
        assert person.answer(name, 300 + seed) == name
    assert "Task 2" in page.locator("#reason").inner_text()
    assert page.locator("#map path.here").count() == 2
    assert "Nothing was forgotten" in page.locator("#kept").inner_text()
    check_looks(page)
    assert person.answer("star", 300) == "unknown"
    check_looks(page)

    page.click("button[aria-label='Forget: 1']")
    page.click("dialog button:has-text('Back')")
    assert person.classes() == list("01234")
    page.click("#undo")
    page.click("dialog button.primary")
    page.locator("#status", has_text="undone").wait_for()
    assert person.classes() == list("012")
    page.click("button[aria-label='Rename: 0']")
    page.fill("#new-name", HOSTILE)
    page.keyboard.press("Enter")
    page.locator("#status", has_text="is now called").wait_for()
    page.click("button[aria-label='Forget: 1']")
    check_looks(page)
    page.click("dialog button.primary")
    page.locator("#status", has_text="was forgotten").wait_for()
    assert person.classes() == [HOSTILE, "2"]
    assert page.locator("img[src='x']").count() == 0
    assert person.answer("0", 301) == HOSTILE

    page.click("#download")
    with page.expect_download() as waiting:
        page.click("dialog button[value='model.safetensors']")
    waiting.value.save_as(tmp_path / "taken.safetensors")
    assert spacenet.load(tmp_path / "taken.safetensors").model_.classes == [HOSTILE, "2"]
    person.close()


def test_the_keyboard_is_enough(browser: Any, address: str, tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    for name in "01":
        for seed in range(6):
            (tmp_path / "pictures" / f"{name}-{seed}.png").write_bytes(draw(name, seed))
    person = Person(browser, address)
    page, press = person.page, person.page.keyboard.press

    def reach(selector: str) -> None:
        """Press Tab until an element has the focus, which has to be visible."""
        for _ in range(60):
            if page.evaluate("(wanted) => document.activeElement.matches(wanted)", selector):
                assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
                return
            press("Tab")
        raise AssertionError(f"the keyboard does not reach {selector}")

    opened: list[Any] = []
    page.on("filechooser", lambda chooser: opened.append(chooser))

    def choose(*names: str) -> None:
        """Open the files that the focused button asks for."""
        count = len(opened)
        press("Enter")
        while len(opened) == count:
            page.wait_for_timeout(20)
        opened[-1].set_files([tmp_path / "pictures" / name for name in names])

    reach("#start-drawings")
    press("Enter")
    page.locator("#work").wait_for()
    for name in "01":
        reach("#class-name")
        page.keyboard.type(name)
        press("Enter")
        reach("#teach-draw, #teach-files")
        if page.evaluate("document.activeElement.id") == "teach-draw":
            press("ArrowRight")
        reach("#teach-source [data-do=files]")
        choose(*(f"{name}-{seed}.png" for seed in range(5)))
        page.locator(".card.chosen .count", has_text="5 examples").wait_for()
    reach("#learn")
    press("Enter")
    person.wait_until_learned()
    reach("#try-draw")
    press("ArrowRight")
    reach("#try-source [data-do=files]")
    choose("1-5.png")
    page.locator(".verdict .label", has_text="1").wait_for()
    reach("#rate")
    press("ArrowRight")
    page.locator("#rate-text", has_text="6 %").wait_for()
    held: list[Any] = []
    page.route("**/studio/answer*", lambda route: held.append(route))
    page.evaluate("document.getElementById('rate').dataset.before = 1")
    reach("#rate")
    press("ArrowRight")
    while not held:
        page.wait_for_timeout(20)
    reach("button[aria-label='Forget: 0']")
    held[0].continue_()  # an answer that comes late leaves the focus where it is
    page.unroute("**/studio/answer*")
    page.locator("#rate:not([data-before])").wait_for()
    page.wait_for_timeout(200)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Forget: 0"
    press("Enter")
    page.locator("dialog[open]").wait_for()
    press("Escape")
    assert person.classes() == ["0", "1"]
    reach("#class-name")  # round and round: nothing holds the focus
    person.close()


def test_files_folders_and_the_camera(browser: Any, address: str, tmp_path: Path) -> None:
    for label, name in (("zero", "0"), (HOSTILE.replace("/", ""), "2")):
        folder = tmp_path / "all" / label
        folder.mkdir(parents=True)
        (folder / "notes.txt").write_text("no picture")
        for seed in range(2):
            (folder / f"{seed}.png").write_bytes(draw(name, seed))
    (tmp_path / "all" / "zero" / "broken.png").write_bytes(b"no picture")
    person = Person(browser, address)
    page = person.page
    person.begin()
    page.fill("#class-name", "mine")
    page.click("#add-class button")
    page.click("#teach-files")
    page.set_input_files("#teach-source [data-kind=folder]", tmp_path / "all")
    page.locator("#problem", has_text="2 files that are no PNG").wait_for()
    assert "broken.png" in page.locator("#problem").inner_text()
    names, counts = (page.locator(f".card .{part}").all_inner_texts() for part in ("name", "count"))
    expected = {"mine": "0 examples", "zero": "2 examples", HOSTILE.replace("/", ""): "2 examples"}
    assert dict(zip(names, counts, strict=True)) == expected
    assert page.locator("img[src='x']").count() == 0
    page.locator(".card", has_text="zero").locator(".thumb").first.click()
    page.locator(".card", has_text="zero").locator(".count", has_text="1 example").wait_for()
    page.evaluate(
        """([bytes]) => { const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], "one.png", { type: "image/png" }));
        document.querySelector("[data-label=mine]").dispatchEvent(
          new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })); }""",
        [list(draw("1", 0))],
    )
    page.locator(".card", has_text="mine").locator(".count", has_text="1 example").wait_for()

    page.click("#teach-camera")
    page.click("#teach-source [data-do=camera]")
    page.locator("#problem", has_text="does not let this page use the camera").wait_for()
    person.context.grant_permissions(["camera"])
    page.click("#teach-source [data-do=camera]")
    page.locator(".card-head", has_text="mine").click()
    page.click("#teach-source [data-do=shoot]")
    page.locator(".card", has_text="mine").locator(".count", has_text="2 examples").wait_for()
    page.click("#teach-draw")
    assert page.locator("#teach-source video").is_hidden()
    person.said = [said for said in person.said if "422" not in said]  # the broken picture
    person.close()


def test_a_page_of_another_origin_can_do_nothing(browser: Any, address: str) -> None:
    person = Person(browser, address)
    person.begin()
    person.teach("a", "0", range(1))
    other = person.context.new_page()
    other.route("http://evil.example/", lambda route: route.fulfill(body="<html></html>", content_type="text/html"))
    other.goto("http://evil.example/")
    tried = """async (address) => {
      const tries = [["POST", "/studio/start", '{"start": "drawings"}'], ["POST", "/studio/learn"], ["GET", "/studio"],
        ["DELETE", "/studio/examples/1"], ["POST", "/edit", '{"action": "undo"}']];
      const said = [];
      for (const [method, path, body] of tries) for (const mode of ["cors", "no-cors"])
        said.push(await fetch(address + path, { method, body, mode }).then((r) => r.type, () => "refused"));
      const shown = await new Promise((done) => { const image = new Image();
        image.onload = () => done("shown"); image.onerror = () => done("refused");
        image.src = address + "/studio/examples/1"; });
      return [...said, shown];
    }"""
    assert set(other.evaluate(tried, address)) <= {"refused", "opaque"}
    assert other.evaluate(tried, address)[-1] == "refused"
    person.page.reload()
    person.page.locator(".card .count", has_text="1 example").wait_for(timeout=LEARNING)
    assert person.page.locator("#classes").inner_text() == "Nothing yet."
    person.close()
