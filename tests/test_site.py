"""The documentation is built without a warning, is complete, and loads nothing from elsewhere."""

import re
import subprocess
from pathlib import Path

import pytest

from spacenet.cli.main import COMMANDS
from tests.campaigns.pages import ROOT
from tests.warm import start

pytest.importorskip("mkdocstrings", reason="needs the extra docs")
BUILD = """
import os, sys
os.environ["NO_MKDOCS_2_WARNING"] = "1"
from mkdocs.__main__ import cli
cli(["build", "--strict", "--quiet", "--config-file", sys.argv[1], "--site-dir", sys.argv[2]])
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = ["python", "-c", BUILD, str(ROOT / "mkdocs.yml"), str(folder)]
    build = start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said, _ = build.communicate(timeout=100)
    assert build.returncode == 0, said
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} | {"command-line"}
    assert {path.stem for path in site.glob("*.html")} == pages | {"404"}
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page for page in sorted(pages) if f"{page}.md" not in navigation] == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^>]*>")
    for page in site.glob("*.html"):
        found = [tag for tag in loads.findall(page.read_text(encoding="utf-8")) if 'rel="canonical"' not in tag]
        assert found == [], page.name


def test_the_reference_has_every_command_and_every_public_name(site: Path) -> None:
    import spacenet

    commands = (site / "command-line.html").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f'id="spacenet-{name}"' not in commands] == []
    assert "--classes-per-task" in commands
    reference = (site / "python.html").read_text(encoding="utf-8")
    assert [name for name in spacenet.__all__ if not re.search(rf'id="spacenet\.[\w.]*\b{name}"', reference)] == []
    assert "rewire_fraction" in reference  # from the estimator's own docstring, which is made when it is imported
