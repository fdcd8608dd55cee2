import json
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from spacenet.cli.main import main
from spacenet.experiments.run import CONFIG, METRICS
from spacenet.report.page import build
from spacenet.utils import extras
from tests.cli.support import QUICK, SMALL
from tests.support import clouds_file

PIP = 'pip install "spacenet-cl[report]"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, with its page."""
    place = tmp_path_factory.mktemp("run")
    assert main(["run", str(clouds_file(place)), "--out", str(place / "run"), "--quiet", *SMALL]) == 0
    return place / "run"


@pytest.fixture
def npz(tmp_path: Path) -> list[str]:
    return [str(clouds_file(tmp_path)), "--out", str(tmp_path / "out"), "--quiet"]


def test_a_run_ends_with_its_page(folder: Path) -> None:
    assert "<h1>spacenet-density on clouds, seed 0</h1>" in (folder / "report.html").read_text(encoding="utf-8")


def test_the_page_again(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder), "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_bytes() == (folder / "report.html").read_bytes()
    assert f"Wrote {tmp_path / 'page.html'} (" in capsys.readouterr().out


@pytest.fixture
def bare(folder: Path, tmp_path: Path) -> Path:
    """The run without its model and its analysis, so that there are fewer figures."""
    (tmp_path / "run").mkdir()
    for name in (CONFIG, METRICS):
        shutil.copy(folder / name, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.usefixtures("_undrawn")
def test_its_figures(bare: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--out", str(tmp_path / "page.html"), "--figures", str(tmp_path / "figures")]
    assert main(["report", str(bare), *place]) == 0
    figures = sorted(path.suffix for path in (tmp_path / "figures").iterdir())
    assert figures.count(".svg") == figures.count(".png") > 2
    assert f"Wrote {len(figures)} files of figures" in capsys.readouterr().out


@pytest.mark.usefixtures("_undrawn")
def test_figures_as_pdf_and_tables_for_a_paper(bare: Path, tmp_path: Path) -> None:
    place = ["--out", str(tmp_path / "page.html"), "--figures", str(tmp_path / "figures"), "--format", "pdf"]
    assert main(["report", str(bare), *place, "--tables", str(tmp_path / "tables")]) == 0
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".pdf"}
    assert {path.suffix for path in (tmp_path / "tables").iterdir()} == {".tex", ".csv"}


@pytest.mark.usefixtures("_undrawn")
def test_several_seeds_get_one_page(
    npz: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *npz, *SMALL, "--seeds", "2", "--workers", "1"]) == 0
    assert f"The report is in {tmp_path / 'out' / 'report.html'}" in capsys.readouterr().out
    assert "spacenet-density on clouds, 2 seeds" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert not list(tmp_path.glob("out/seed-*/report.html"))


@pytest.mark.usefixtures("_undrawn")
def test_a_comparison_ends_with_its_page(
    npz: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "quick.toml").write_text(QUICK)
    arguments = ["compare", *npz, "--config", str(tmp_path / "quick.toml"), "--workers", "1"]
    assert main([*arguments, "--methods", "naive,spacenet", "--format", "json"]) == 0
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<h1>clouds: naive, spacenet</h1>" in text
    assert json.loads(capsys.readouterr().out)["failures"] == []  # nothing else is said
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(tmp_path / "out" / "naive"), str(tmp_path / "out" / "spacenet")]) == 0
    assert Path("report.html").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("json_wanted", [True, False])
def test_without_the_libraries_a_run_says_how_to_get_them(
    npz: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    json_wanted: bool,
) -> None:
    def missing(name: str) -> object:
        if name.split(".")[0] in ("jinja2", "matplotlib"):
            raise ImportError(name)
        return import_module(name)

    monkeypatch.setattr(extras, "import_module", missing)
    assert main(["run", *npz, *SMALL, *(["--json"] if json_wanted else [])]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count(PIP) == (0 if json_wanted else 1)
    assert not (tmp_path / "out" / "report.html").exists()
    assert main(["report", str(tmp_path / "out")]) == 2
    assert PIP in capsys.readouterr().err


def test_a_fault_in_a_picture_is_no_fault_of_the_run(
    npz: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def faulty(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(build, "run_page", faulty)
    assert main(["run", *npz, *SMALL]) == 0
    assert "No report was written: ZeroDivisionError: of all things" in capsys.readouterr().out


def test_no_report(npz: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *npz, *SMALL, "--no-report"]) == 0
    assert "page" not in capsys.readouterr().out
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give the folder of a run"),
        (["nowhere"], "nowhere holds no runs"),
        (["{run}", "--out", "nowhere/page.html"], "out: nowhere is not a folder that can be written to"),
        (["{run}", "--out", "{run}/model.safetensors"], "it would be lost"),
        (["{run}", "--beside", "nowhere"], "nowhere holds no run"),
    ],
)
def test_bad_input_is_explained(
    folder: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main(["report", *(text.format(run=folder) for text in arguments)]) == 2
    assert words in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
