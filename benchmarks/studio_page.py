"""What the studio's page costs beside the same made with Gradio: `python -m benchmarks.studio_page --gradio PYTHON`.

PYTHON is the interpreter of an environment of its own in which Gradio is installed. Both pages are opened in Chromium.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console

from benchmarks.command import measured, read_options
from benchmarks.studio import running_studio
from spacenet.errors import RunError
from spacenet.report.tables import Table

BROWSER = [*("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")]
BROWSER += ["--disable-component-update", "--disable-sync", "--disable-quic"]
QUIET_SECONDS = 3.0
"""How long a page is left open before its requests are counted."""
PAGE = """
import gradio
theme = gradio.themes.Base(font=["sans-serif"], font_mono=["monospace"]) if {own_theme} else None
with gradio.Blocks() as page:
    gradio.Textbox(label="Class")
    gradio.Sketchpad()
    gradio.Image(sources=["upload", "webcam"])
    gradio.Gallery()
    gradio.Label()
    gradio.Button("Learn")
_, address, _ = page.launch(prevent_thread_lock=True, quiet=True, theme=theme)
print(address, flush=True)
input()
"""
"""The parts that the studio's page has; by default, and with a theme that names fonts of the system only."""
INSTALLED = """
import importlib.metadata as known, json, re
def needed(names):
    found, left = {}, list(names)
    while left:
        name = re.split(r"[^A-Za-z0-9._-]", left.pop())[0]
        key = re.sub("[-_.]+", "-", name).lower()
        try:
            part = known.distribution(name)
        except known.PackageNotFoundError:
            continue
        if key in found:
            continue
        found[key] = sum(file.size or 0 for file in part.files or ())
        left += [each for each in part.requires or () if "extra ==" not in each]
    return found
print(json.dumps([needed(each) for each in (%r, ["gradio"])]))
"""
OURS = ["fastapi", "uvicorn", "python-multipart", "prometheus-client", "pillow", "numpy"]
"""What the extra `studio` brings, and numpy, which spacenet needs anyway."""


@dataclass(frozen=True)
class Options:
    """Where Gradio is."""

    gradio: Path
    """The Python interpreter of an environment in which Gradio is installed."""
    json: Path | None = None
    """Write the raw figures to this file."""


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Open both pages; print and return the figures."""
    figures: dict[str, Any] = {"installed": _installed(options.gradio), "import": _import_seconds(options.gradio)}
    with running_studio() as address:
        figures["studio"] = _opened(address)
    for name, own_theme in (("gradio", False), ("gradio, fonts of the system", True)):
        with _running_gradio(options.gradio, own_theme) as address:
            figures[name] = _opened(address)
    rows = [
        [name, f"{page['requests']}", f"{page['bytes'] / 1024:,.0f}", ", ".join(page["elsewhere"]) or "none"]
        for name, page in figures.items()
        if "requests" in page
    ]
    console.print(Table("The first page", ["page", "requests", "KiB", "other hosts that it asks"], rows, "lrrl"))
    console.print(figures["installed"], figures["import"])
    return figures


def _installed(python: Path) -> dict[str, Any]:
    """What Gradio brings beyond the packages that the studio needs: how many, and their bytes."""
    said = subprocess.run([python, "-c", INSTALLED % OURS], capture_output=True, text=True, check=True).stdout
    ours, gradio = json.loads(said)
    more = {name: size for name, size in gradio.items() if name not in ours}
    return {"more_packages": len(more), "more_bytes": sum(more.values())}


def _import_seconds(python: Path) -> dict[str, float]:
    """The better of three: Gradio, and all that the studio's page takes beside the model."""
    found = {}
    for name, interpreter, modules in (
        ("gradio", python, "gradio"),
        ("studio", Path(sys.executable), "fastapi, uvicorn, PIL.Image"),
    ):
        times = []
        for _ in range(3):
            began = time.monotonic()
            subprocess.run([interpreter, "-c", f"import {modules}"], check=True, capture_output=True)
            times.append(time.monotonic() - began)
        found[name] = round(min(times), 2)
    return found


@contextmanager
def _running_gradio(python: Path, own_theme: bool) -> Iterator[str]:
    command = [str(python), "-c", PAGE.replace("{own_theme}", str(own_theme))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(r"http://[\d.:]+", line):
                    yield found[0]
                    return
            raise RunError("Gradio did not start")
        finally:
            process.kill()


def _opened(address: str) -> dict[str, Any]:
    """The requests that a page makes when it is opened, their bytes, and the hosts beside its own."""
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    size = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER)
        page = browser.new_page()
        answers: list[Any] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("response", lambda answer: answers.append(answer))
        page.goto(address)
        page.wait_for_timeout(1000 * QUIET_SECONDS)
        for answer in answers:
            if answer.url.startswith(address) and "/queue/" not in answer.url and "heartbeat" not in answer.url:
                size += len(answer.body())
        browser.close()
    urls = [url for url in asked if not url.startswith(("data:", "blob:"))]
    elsewhere = sorted({urlsplit(url).netloc for url in urls} - {urlsplit(address).netloc})
    return {"requests": len(urls), "bytes": size, "elsewhere": elsewhere}


def main(arguments: list[str] | None = None) -> int:
    return measured("studio_page", read_options(Options, "studio_page", arguments), measure)


if __name__ == "__main__":
    raise SystemExit(main())
