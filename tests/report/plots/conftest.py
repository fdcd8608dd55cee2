import pytest

from spacenet.report.run_data import RunFacts
from tests.report.plots.space_support import run_facts


@pytest.fixture(scope="session")
def spacenet_run(tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    return run_facts(tmp_path_factory.mktemp("spacenet-run"))


@pytest.fixture(scope="session")
def static_run(tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    return run_facts(tmp_path_factory.mktemp("static-run"), "static-sparse")
