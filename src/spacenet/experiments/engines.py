"""Where runs are computed: in this process, in others on this machine, or on a Dask or Ray cluster that exists already.

All go through joblib. A worker that dies takes nothing with it: runs save their state in their folders, so whatever
has no result is handed out again and goes on where it stopped. On a cluster the folders must lie where all workers see
them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from spacenet.config.engine import EngineConfig
from spacenet.errors import SettingsError, SpacenetError
from spacenet.utils.extras import require_extra

TRIES = 3
PATIENCE = 10
Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkersDied(SpacenetError):
    """Workers kept dying; what they had finished is kept."""

    exit_code = 1


def run_parallel(
    work: Callable[[Item], Result], items: Sequence[Item], engine: EngineConfig
) -> Iterator[tuple[int, Result]]:
    """Do the work for every item and yield results as they come, each with the position of its item.

    `work` must not raise; it may be called again. Raises `WorkersDied` if that does not help.
    """
    import joblib

    left, call = dict(enumerate(items)), joblib.delayed(_numbered)
    with _connected(engine) as settings:
        for attempt in range(TRIES):
            try:
                calls = [call(work, number, item) for number, item in left.items()]
                for number, result in joblib.Parallel(**settings, batch_size=1, pre_dispatch="all")(calls):
                    del left[number]
                    yield number, result
                return
            except (SpacenetError, GeneratorExit):
                raise
            except Exception as error:  # each engine has its own for a worker that is gone
                reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
                if attempt == TRIES - 1:
                    raise WorkersDied(
                        f"workers died {TRIES} times ({reason}); {len(left)} of {len(items)} runs are not finished"
                    ) from error


def _numbered(work: Callable[[Item], Result], number: int, item: Item) -> tuple[int, Result]:
    return number, work(item)


@contextmanager
def _connected(engine: EngineConfig) -> Iterator[dict[str, Any]]:
    """What joblib is told, while the connection to a cluster stands."""
    from joblib import parallel_config

    workers = {"n_jobs": engine.workers or -1}  # all that there are
    if engine.engine == "local":
        yield {**workers, "return_as": "generator_unordered"}
    elif engine.engine == "dask":
        with _dask(str(engine.address)), parallel_config("dask"):
            yield {**workers, "return_as": "generator_unordered"}
    else:
        with _ray(str(engine.address)), parallel_config("ray"):
            yield workers  # Ray gives its results back as a list only


def _dask(address: str) -> AbstractContextManager[Any]:
    library = require_extra("engine", "dask", "distributed")
    try:
        client: AbstractContextManager[Any] = library.Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(f"no Dask scheduler answers at {address}: {error}", setting="address") from error
    return client


@contextmanager
def _ray(address: str) -> Iterator[None]:
    library = require_extra("engine", "ray", "ray")
    try:
        library.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise SettingsError(f"no Ray cluster answers at {address}: {error}", setting="address") from error
    require_extra("engine", "ray", "ray.util.joblib").register_ray()
    try:
        yield
    finally:
        library.shutdown()
