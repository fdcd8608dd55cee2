"""A service that a proxy shows below a path."""

from collections.abc import Iterator
from typing import Any

import pytest

from spacenet.errors import SettingsError
from spacenet.serve.gate import Access
from spacenet.serve.paths import check_root_path
from tests.serve.support import Service, service
from tests.serve.tokens import READING, bearer, both_tokens

BODY: dict[str, Any] = {"json": {"inputs": [[0.5] * 8]}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("served")
    with service(folder, learns=True, access=Access(both_tokens(folder), root_path="/a/spacenet")) as it:
        yield it


@pytest.mark.parametrize("prefix", ["", "/a/spacenet"])
def test_it_answers_whether_the_proxy_strips_the_path_or_not(served: Service, prefix: str) -> None:
    token = {"headers": bearer(READING)}
    assert served.ask("GET", f"{prefix}/health").status_code == 200
    assert served.post(f"{prefix}/predict", **token, **BODY).status_code == 200
    assert served.post(f"{prefix}/models/model/predict", **token, **BODY).status_code == 200
    described = served.ask("GET", f"{prefix}/openapi.json", **token).json()
    assert described["servers"] == [{"url": "/a/spacenet"}]
    assert "/predict" in described["paths"]
    assert 'href="openapi.json"' in served.ask("GET", f"{prefix}/docs", **token).text  # relative: right below any path


@pytest.mark.parametrize("prefix", ["", "/a/spacenet"])
def test_permissions_are_those_of_the_endpoint(served: Service, prefix: str) -> None:
    assert served.post(f"{prefix}/predict", **BODY).status_code == 401
    assert served.post(f"{prefix}/learn", headers=bearer(READING)).status_code == 403


def test_a_similar_path_is_another_one(served: Service) -> None:
    assert served.ask("GET", "/a/spacenetwork/health").status_code == 401
    assert served.ask("GET", "/a/spacenet").status_code == 401
    assert served.ask("GET", "/a/spacenet/a/spacenet/health").status_code == 401


@pytest.mark.parametrize(("given", "path"), [("", ""), ("/", ""), ("/a", "/a"), ("/a/b-c.d/", "/a/b-c.d")])
def test_what_a_root_path_is(given: str, path: str) -> None:
    assert check_root_path(given) == path


@pytest.mark.parametrize(
    "given", ["a", "//", "/a//b", "/a b", "/%61", "https://a/b", "/a?b", "/{name}", "/models", "/v2/x"]
)
def test_what_is_no_root_path_is_said(given: str) -> None:
    with pytest.raises(SettingsError, match="is not a path|own path"):
        check_root_path(given)
