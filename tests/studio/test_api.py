"""What the studio answers: examples, learning, why, what it keeps and what it deletes."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spacenet
from spacenet.model.file import save_model
from spacenet.studio import session as session_module
from spacenet.studio.examples import MOST
from spacenet.studio.pictures import read_picture
from tests.model.support import model as table_model
from tests.studio.support import PNG, SIDE, Studio, draw, studio, to_png, wait_until

Image = pytest.importorskip("PIL.Image", reason="the studio needs the extra 'studio'")
HOSTILE = "<img src=x onerror=alert(1)> \"&'; ../../etc"


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Studio]:
    with studio(tmp_path) as it:
        yield it


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """Knows 0, 1 and 2, then 3 and 4; tests do not change it."""
    with studio(tmp_path_factory.mktemp("taught")) as it:
        first = it.teach("012", range(6))
        assert [each["before"] for each in first["classes"]] == [None] * 3
        it.teach("34", range(6))
        yield it


def measured(state: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    counts = [(each["label"], each["before"], each["after"]) for each in state["classes"]]
    pairs = [(label, *(part and (part["right"], part["of"]) for part in parts)) for label, *parts in counts]
    return {label: (before, after) for label, before, after in pairs}


def test_it_begins_with_nothing(fresh: Studio) -> None:
    state = fresh.get("/studio")
    assert (state["started"], state["classes"], state["tasks"], state["examples"]) == (False, [], 0, [])
    assert state["layers"][0]["unused"] == state["layers"][0]["units"]
    assert fresh.post("/studio/learn").status_code == 422
    assert fresh.post("/studio/answer", content=draw("1", 0), headers=PNG).status_code == 409
    assert fresh.ask("GET", "/studio/model.safetensors").status_code == 409


def test_new_drawings_are_recognized_and_others_are_unknown(taught: Studio) -> None:
    for name in "01234":
        for seed in range(50, 54):
            answer = taught.answer(draw(name, seed))
            assert (answer["classes"][0]["label"], answer["unknown"]) == (name, False), (name, seed)
    for name in ("star", "grid"):
        assert all(taught.answer(draw(name, seed))["unknown"] for seed in range(50, 54))


def test_an_answer_says_why(taught: Studio) -> None:
    answer = taught.answer(draw("3", 60))
    labels = [each["label"] for each in answer["classes"]]
    assert sorted(labels) == list("01234")
    assert sum(each["probability"] for each in answer["classes"]) == pytest.approx(1)
    assert sum(answer["tasks"]) == pytest.approx(1)
    assert answer["tasks"][1] > 0.9
    best = answer["classes"][0]
    assert (best["label"], best["task"]) == ("3", 2)
    assert best["typicality"] == max(each["typicality"] for each in answer["classes"])
    assert taught.answer(draw("3", 60), rate=0.999)["unknown"]
    for rate in ("0", "1", "nan", "x", "-1"):
        asked = taught.post("/studio/answer", params={"rate": rate}, content=draw("3", 1), headers=PNG)
        assert asked.status_code == 422


def test_a_fifth_is_set_aside_and_measured_before_and_after(taught: Studio) -> None:
    state = taught.get("/studio")
    found = measured(state)
    assert found["0"] == found["1"] == found["2"] == ((1, 1), (1, 1))
    assert found["3"] == found["4"] == (None, (1, 1))
    assert [sum(layer["reserved"]) + layer["shared"] + layer["unused"] for layer in state["layers"]] == [400, 400]
    assert all(len(layer["reserved"]) == 2 for layer in state["layers"])


def test_examples_are_deleted_after_learning(taught: Studio) -> None:
    assert taught.get("/studio")["examples"] == []
    assert taught.ask("GET", "/studio/examples/1").status_code == 404
    left = {"model-1.safetensors", "model-1.safetensors.undo"}
    assert wait_until(lambda: {path.name for path in taught.session.folder.iterdir()} == left)
    learned = [draw(name, seed) for name in "01234" for seed in range(6)]
    kept = taught.ask("GET", "/studio/model.safetensors").content
    for content in learned:
        pixels = np.asarray(Image.open(io.BytesIO(content)))
        sample = read_picture(content, taught.store.current).sample
        assert pixels.tobytes() not in kept
        rows = [row.tobytes() for row in sample.reshape(28, 28)[10:14]]
        assert not any(row in kept or np.float32(np.frombuffer(row, np.uint8)).tobytes() in kept for row in rows)


def test_examples_can_be_removed(fresh: Studio) -> None:
    numbers = [fresh.add(" cat ", draw("1", seed)).json()["number"] for seed in range(3)]
    assert fresh.add("dog", draw("2", 0)).json()["count"] == 1
    shown = fresh.ask("GET", f"/studio/examples/{numbers[0]}")
    assert Image.open(io.BytesIO(shown.content)).size == (28, 28)
    state = fresh.ask("DELETE", f"/studio/examples/{numbers[0]}").json()
    assert state["examples"][0] == {"label": "cat", "examples": numbers[1:]}
    state = fresh.ask("DELETE", "/studio/examples", params={"label": "cat"}).json()
    assert [each["label"] for each in state["examples"]] == ["dog"]


def test_edits_forget_and_undo(tmp_path: Path) -> None:
    with studio(tmp_path) as it:
        it.teach("012", range(6))
        renamed = it.done(it.post("/edit", json={"action": "rename", "label": "1", "new": "one"}))
        assert measured(renamed)["one"] == (None, (1, 1))
        assert list(measured(it.done(it.post("/edit", json={"action": "undo"})))) == ["0", "1", "2"]
        state = it.done(it.post("/edit", json={"action": "forget", "label": "1"}))
        assert (list(measured(state)), state["can_undo"]) == (["0", "2"], False)
        assert it.session.held_out.samples.keys() == {"0", "2"}
        state = it.teach("2", range(6, 12))  # more of a known class
        assert (state["tasks"], measured(state)["2"]) == (1, ((1, 1), (2, 2)))
        state = it.done(it.post("/edit", json={"action": "undo"}))
        assert measured(state)["2"] == (None, (1, 1))


def test_canceled_learning_leaves_the_examples(fresh: Studio) -> None:
    for seed in range(5):
        fresh.add("a", draw("0", seed))
    number = fresh.post("/studio/learn").json()["number"]
    assert fresh.post("/studio/learn").status_code == 409
    assert fresh.ask("DELETE", f"/jobs/{number}").json()["state"] == "canceled"
    state = fresh.get("/studio")
    assert (state["tasks"], len(state["examples"][0]["examples"])) == (0, 5)
    assert wait_until(lambda: not list(fresh.session.folder.iterdir()))


def test_the_model_can_be_taken_along_and_opened_again(taught: Studio, tmp_path: Path) -> None:
    content = taught.ask("GET", "/studio/model.safetensors").content
    (tmp_path / "mine.safetensors").write_bytes(content)
    assert spacenet.load(tmp_path / "mine.safetensors").model_.classes == list("01234")
    with studio(tmp_path) as it:
        state = it.post("/studio/open", content=content).json()
        assert (state["kind"], state["started"], [each["label"] for each in state["classes"]]) == (
            "drawings",
            True,
            list("01234"),
        )
        assert it.answer(draw("4", 70))["classes"][0]["label"] == "4"
        it.add("x", draw("star", 0))
        for wrong in (b"", b"no model", content[:1000], content[:-10]):
            answer = it.post("/studio/open", content=wrong)
            assert answer.status_code == 422
            assert "cannot be opened" in answer.json()["error"]
            assert str(tmp_path) not in answer.json()["error"]
        assert len(it.get("/studio")["examples"]) == 1, "what was there is gone, though nothing was opened"
        assert it.post("/studio/start", json={"start": "drawings"}).json()["classes"] == []


def test_models_that_take_no_images_are_refused(fresh: Studio, tmp_path: Path) -> None:
    save_model(tmp_path / "table.safetensors", table_model())
    answer = fresh.post("/studio/open", content=(tmp_path / "table.safetensors").read_bytes())
    assert answer.status_code == 422
    assert "shows images" in answer.json()["error"]


def test_a_file_of_ones_own_is_used_in_its_place(tmp_path: Path) -> None:
    (folder := tmp_path / "temporary").mkdir()
    path = tmp_path / "mine.safetensors"
    with studio(folder, path) as it:
        assert not it.get("/studio")["started"]
        it.post("/studio/start", json={"start": "drawings"})
        state = it.teach("01", range(5))
        assert state["file"] == str(path)
    assert path.exists()
    with studio(folder, path) as it:
        assert it.get("/studio")["started"]
        it.post("/studio/start", json={"start": "drawings"})
        assert it.get("/studio")["file"] is None
    assert spacenet.load(path).model_.classes == ["0", "1"]


def test_photos_say_what_to_install(fresh: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacenet.studio.starting.ENCODER", "no-such-encoder")
    assert "spacenet-cl[encoders]" in fresh.get("/studio")["photo_problem"]
    answer = fresh.post("/studio/start", json={"start": "photos"})
    assert answer.status_code == 409
    assert "spacenet-cl[encoders]" in answer.json()["error"]


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"no image", "image/png", 422),
        (b"", "image/png", 422),
        (b"GIF89a", "image/gif", 415),
        (b"x" * (2**22 + 1), "image/png", 413),
    ],
)
def test_bad_pictures(fresh: Studio, content: bytes, kind: str, status: int) -> None:
    for path in ("/studio/examples?label=a", "/studio/answer"):
        answer = fresh.post(path, content=content, headers={"content-type": kind})
        assert answer.status_code == (status if "examples" in path else status if status != 422 else 409)
        assert "error" in answer.json()


def test_an_empty_picture_and_a_bomb(fresh: Studio) -> None:
    empty = to_png(Image.new("L", (SIDE, SIDE), 255))
    assert "empty" in fresh.add("a", empty).json()["error"]
    bomb = to_png(Image.new("1", (20_000, 20_000)))
    assert len(bomb) < 100_000
    assert "too large" in fresh.add("a", bomb).json()["error"]


def test_hostile_names_are_kept_as_they_are_or_refused(fresh: Studio) -> None:
    assert fresh.add(HOSTILE, draw("0", 0)).json()["label"] == HOSTILE
    assert fresh.get("/studio")["examples"][0]["label"] == HOSTILE
    for name in ("", "  ", "x" * 101, "a\0b", "a\u202eb"):
        assert fresh.add(name, draw("0", 0)).status_code == 422
    assert [path.name for path in fresh.session.folder.iterdir()] == []


def test_examples_are_bounded(fresh: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST >= 1000
    monkeypatch.setattr("spacenet.studio.examples.MOST", 2)
    answers = [fresh.add("a", draw("0", seed)).status_code for seed in range(3)]
    assert answers == [201, 201, 413]


def test_pages_of_others_are_refused(fresh: Studio) -> None:
    fresh.add("a", draw("0", 0))
    for verb, path in (
        ("GET", "/"),
        ("GET", "/studio"),
        ("POST", "/studio/learn"),
        ("POST", "/studio/start"),
        ("POST", "/studio/examples?label=a"),
        ("DELETE", "/studio/examples/1"),
        ("GET", "/studio/model.safetensors"),
    ):
        assert fresh.ask(verb, path, headers={"origin": "http://evil.example"}).status_code == 403
        assert fresh.ask(verb, path, headers={"host": "evil.example"}).status_code == 421
    assert len(fresh.get("/studio")["examples"]) == 1


def test_the_page_loads_nothing_from_elsewhere(fresh: Studio) -> None:
    page = fresh.ask("GET", "/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert fresh.ask("GET", "/static/main.js").headers["content-type"].startswith("text/javascript")
    for path in ("/static/", "/static/../app.py", "/static/%2e%2e/app.py", "/static/nothing.js"):
        assert fresh.ask("GET", path).status_code == 404
    names = [path.name for path in Path(session_module.__file__).with_name("static").iterdir()]
    texts = [fresh.ask("GET", f"/static/{name}").text for name in names if name != "index.html"]
    for text in (page.text, *texts):
        assert "https://" not in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "innerHTML" not in text
