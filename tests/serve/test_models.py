"""Several models in one service: their names, their addresses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spacenet.errors import SettingsError
from spacenet.model.file import save_model
from spacenet.serve.models import name_models
from tests.model.support import blobs, new_model
from tests.serve.support import Service, services

ROW = [[0.5] * 8]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("models")
    for name, labels in (("digits", [0, 1]), ("fruit", ["apple", "pear"])):
        model = new_model((8,))
        model.learn(*blobs(labels))
        save_model(folder / f"{name}.safetensors", model)
    with services({name: folder / f"{name}.safetensors" for name in ("digits", "fruit")}) as it:
        yield it


def test_each_model_has_addresses_and_the_first_also_those_without_a_name(served: Service) -> None:
    listed = served.get("/models")["models"]
    assert [(each["name"], each["classes"], each["learns"]) for each in listed] == [
        ("digits", 2, False),
        ("fruit", 2, False),
    ]
    assert served.get("/model")["classes"] == served.get("/models/digits/model")["classes"] == [0, 1]
    assert served.get("/models/fruit/model")["classes"] == ["apple", "pear"]
    assert served.get("/models/fruit/health")["classes"] == 2
    x = blobs(["pear"])[0]
    found = served.post("/models/fruit/predict", json={"inputs": x.tolist()}).json()["predictions"]
    assert {each["label"] for each in found} <= {"apple", "pear"}
    first, same = (served.post(f"{at}/predict", json={"inputs": ROW}).json() for at in ("", "/models/digits"))
    assert first == same


def test_unknown_models_are_named(served: Service) -> None:
    answer = served.post("/models/fruits/predict", json={"inputs": ROW})
    assert (answer.status_code, answer.json()) == (404, {"error": "unknown model 'fruits'; choose from digits, fruit"})
    assert len(served.ask("GET", "/models/" + "x" * 5000 + "/model").content) < 300


def test_names_follow_from_files_or_are_given(tmp_path: Path) -> None:
    odd = tmp_path / "a=b.safetensors"
    odd.touch()
    found = name_models(["some/a.safetensors", "fruit=b.safetensors", "my model ä.safetensors", str(odd)])
    assert [(name, path.name) for name, path in found.items()] == [
        ("a", "a.safetensors"),
        ("fruit", "b.safetensors"),
        ("my-model-", "my model ä.safetensors"),
        ("a-b", "a=b.safetensors"),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "at least one model"),
        (["x/a.safetensors", "y/a.safetensors"], "two models are called 'a'"),
        (["one=a.safetensors", "two=./a.safetensors"], "given twice"),
        (["a/b=c.safetensors"], "'a/b' cannot name a model"),
        (["=c.safetensors"], "'' cannot name a model"),
    ],
)
def test_bad_names_are_refused(arguments: list[str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        name_models(arguments)
