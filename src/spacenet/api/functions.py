"""`stream`, `run`, `compare` and `sweep`: from data to results in one call each."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, overload

from spacenet.api.progress import follow_jobs
from spacenet.api.results import Comparison, RunResult, SeedResults, SweepResult
from spacenet.api.settings import (
    Settings,
    build_config,
    layers_by_method,
    method_name,
    method_names,
    nest_method_settings,
    read_settings,
    resolve_stream,
    settings_layers,
    stream_name,
)
from spacenet.config.engine import EngineConfig
from spacenet.config.model import merge
from spacenet.config.run import RunConfig
from spacenet.data.stream import Stream
from spacenet.data.streams import build_stream
from spacenet.errors import RunError, SettingsError, SpaceFull
from spacenet.experiments.callbacks import Callback, default_callbacks
from spacenet.experiments.comparison import (
    compare_outcomes,
    comparison_configs,
    finished_seeds,
    save_summary,
    seed_folders,
)
from spacenet.experiments.jobs import (
    Job,
    Outcome,
    check_folder,
    default_workers,
    execute,
    execute_all,
    in_this_process,
    is_finished,
)
from spacenet.experiments.run import load_config
from spacenet.experiments.sweep import Search, Sweep, Trial
from spacenet.methods import Method
from spacenet.nets import Net, net_name
from spacenet.registry import STREAMS
from spacenet.utils.files import save_text

BEST = "best.toml"
VALIDATION = 0.16
MethodName = str | type[Method] | None
Callbacks = Sequence[Callback] | Callable[[Job], Sequence[Callback]]
Path_ = str | Path | None
Data = Any
"""A stream, the name of one, or whatever `Stream.from_data` takes."""


@overload
def run(stream: Data, method: MethodName = ..., *, seeds: None = ..., **options: Any) -> RunResult: ...
@overload
def run(stream: Data, method: MethodName = ..., *, seeds: int, **options: Any) -> SeedResults: ...
def run(
    stream: Data,
    method: MethodName = None,
    *,
    seed: int | None = None,
    seeds: int | None = None,
    net: Net | None = None,
    preset: str | None = None,
    config: Settings = None,
    out: Path_ = None,
    callbacks: Callbacks = (),
    progress: bool = True,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    **settings: Any,
) -> RunResult | SeedResults:
    """Learn a stream of tasks one after another, and measure what is remembered.

    Parameters
    ----------
    stream : Stream, str, path or data
        What to learn: a stream, the name of one ("split-digits", "split-mnist", …), or whatever `Stream.from_data`
        takes: a file, a folder of images, a data frame, arrays, a data set.
    method : str or subclass of Method, optional
        How to learn it; by default what `config` says, else "spacenet".
    seed : int, optional
        Everything random follows from it; the same seed gives the same result, bit for bit. Default 0.
    seeds : int, optional
        Run this many seeds, counting up from `seed`, in parallel processes.
    net : torch.nn.Module, callable or str, optional
        Another network than the preset's: a module, a function that returns one, or a name.
    preset : str, optional
        The name of the stream's preset, where it has several.
    config : path, mapping or RunConfig, optional
        Settings from a TOML file, or in its form, laid over the preset.
    out : path, optional
        Keep the results in this folder. If it holds the same run, unfinished, it is resumed; finished, it is returned.
        Seeds that are finished there are returned with the others, so that more `seeds` can be added later.
    callbacks : sequence of Callback, or a function of a job that returns one
        Called while the run goes on (only in this process: with `seeds`, together with ``workers=1``).
    progress : bool
        Show a progress bar in a terminal or a notebook; elsewhere lines in the log "spacenet".
    engine, address, workers
        Where several seeds are computed: "local", "dask" or "ray".
    **settings
        Any other setting by its name: ``epochs=5``, ``rewire_fraction=0.3``, ``hidden=(100, 100)``,
        ``classes_per_task=5``; and for data of one's own ``label="species"``, ``test="test.csv"``, …

    Returns
    -------
    RunResult, or SeedResults if `seeds` is given

    Raises
    ------
    SpaceFull
        If the network has no room for a task. Its `result` holds what was learned before.

    Examples
    --------
    >>> import spacenet
    >>> result = spacenet.run("split-digits", "spacenet", epochs=10, tasks="0,1/2,3", progress=False)
    >>> result.matrix.shape
    (2, 2)
    >>> result.acc > 90
    True
    """
    stream, settings = resolve_stream(stream, settings)
    base = build_config(stream, method, net=net, preset=preset, config=config, seed=seed, settings=settings)
    data = stream if isinstance(stream, Stream) else None
    folder = Path(out) if out is not None else None
    if seeds is None:
        job = Job(base, data, folder)
        check_folder(job)
        return _execute(job, callbacks, progress)
    if seeds < 1:
        raise SettingsError(f"{seeds} is out of range (1 or more)", setting="seeds")
    first = base.model.seed
    jobs = [
        Job(base.with_seed(each), data, folder / f"seed-{each}" if folder else None)
        for each in sorted({*range(first, first + seeds), *finished_seeds(folder)})
    ]
    where = EngineConfig(engine, address, workers)  # type: ignore[arg-type]
    return run_seeds(jobs, where, folder, callbacks, progress)


def run_seeds(
    jobs: Sequence[Job],
    engine: EngineConfig,
    folder: Path | None = None,
    callbacks: Callbacks = (),
    progress: bool = True,
) -> SeedResults:
    """Do the same run with several seeds."""
    outcomes = do_jobs(jobs, engine, callbacks, progress)
    results = [RunResult.of(outcome.data) for outcome in outcomes if outcome.data is not None and outcome.data.labels]
    if not results:
        raise outcomes[0].error or RunError("no run was finished")
    results.sort(key=lambda result: result.seed)
    if folder is not None:
        save_summary(folder, results)
    return SeedResults(results, compare_outcomes(outcomes).failures)


def resume(
    folder: str | Path,
    *,
    callbacks: Callbacks = (),
    progress: bool = True,
    engine: EngineConfig | None = None,
) -> RunResult | SeedResults:
    """Continue the run, or the runs with several seeds, in a folder."""
    place = Path(folder)
    several = seed_folders(place)
    jobs = [Job(load_config(each), folder=each) for each in several or [place]]
    stream = jobs[0].config.stream
    if stream.data is None and stream.name not in STREAMS:
        remedy = f"Call spacenet.run again with the same stream and out={str(folder)!r}."
        raise RunError(
            f"{folder}: the data of this run, {stream.name!r}, is in the program that made it.", python=remedy
        )
    if several:
        return run_seeds(jobs, engine or EngineConfig(), place, callbacks, progress)
    return _execute(jobs[0], callbacks, progress)


def compare(
    stream: Data,
    methods: str | Iterable[str | type[Method]] = ("naive", "ewc", "spacenet", "joint"),
    *,
    seeds: int = 1,
    seed: int = 0,
    net: Net | None = None,
    preset: str | None = None,
    config: Settings = None,
    method_settings: Mapping[str, Mapping[str, Any]] | None = None,
    out: Path_ = None,
    progress: bool = True,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    **settings: Any,
) -> Comparison:
    """Run several methods on one stream and put them side by side.

    Parameters
    ----------
    stream : Stream, str, path or data
        What to learn, as in `run`.
    methods : sequence of str or Method subclasses, or "all"
        The methods.
    seeds : int
        Run each method with this many seeds, counting up from `seed`.
    net, preset, progress, engine, address, workers
        As in `run`.
    config : path or mapping, optional
        Settings for all methods, and under ``methods.NAME`` for one of them.
    method_settings : mapping, optional
        Settings of single methods by their names: ``{"ewc": {"strength": 500}, "spacenet": {"epochs": 3}}``.
    out : path, optional
        Keep runs and tables in this folder. What is finished there is not repeated, and the tables include it: with
        more `seeds` than before, only the new ones are run.
    **settings
        Settings by their names; each is for the methods that have it.

    Returns
    -------
    Comparison
        A run that fails is listed in its `failures`; the others go on.

    Examples
    --------
    >>> import spacenet
    >>> table = spacenet.compare("split-digits", ["naive", "spacenet"], epochs=2, tasks="0,1/2,3", progress=False)
    >>> [row.method for row in table.rows]
    ['naive', 'spacenet']
    """
    if seeds < 1:
        raise SettingsError(f"{seeds} is out of range (1 or more)", setting="seeds")
    stream, settings = resolve_stream(stream, settings)
    names = method_names(methods)
    own = nest_method_settings(names, method_settings or {})
    network = {"net": {"name": net_name(net)}} if net is not None else {}
    layers = layers_by_method(stream, names, settings)
    over = {name: merge(layer, network, own.get(name, {})) for name, layer in layers.items()}
    configs = comparison_configs(stream_name(stream), over, read_settings(config), preset)
    folder, data = Path(out) if out is not None else None, stream if isinstance(stream, Stream) else None
    jobs = [
        Job(each.with_seed(number), data, folder / name / f"seed-{number}" if folder else None, tag=position)
        for position, (name, each) in enumerate(configs.items())
        for number in sorted({*range(seed, seed + seeds), *finished_seeds(folder / name if folder else None)})
    ]
    where = EngineConfig(engine, address, workers)  # type: ignore[arg-type]
    comparison = Comparison.of(compare_outcomes(do_jobs(jobs, where, (), progress)))
    if folder is not None:
        comparison.save(folder)
    return comparison


def sweep(
    stream: Data,
    method: str | type[Method] = "spacenet",
    *,
    trials: int = 20,
    search: Search = "random",
    seeds: int = 1,
    seed: int = 0,
    config: Settings = None,
    out: Path_ = None,
    validation: float = VALIDATION,
    progress: bool = True,
    on_trial: Callable[[Trial], None] = lambda trial: None,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    **settings: Any,
) -> SweepResult:
    """Search a method's settings over the ranges that it declares. Trials are scored on held-out training data.

    Parameters
    ----------
    stream : Stream, str, path or data
        What to learn, as in `run`.
    method : str or subclass of Method
        Whose settings; its `search_space` declares the ranges.
    trials : int
        How many settings are tried in all.
    search : "random" or "tpe"
        Draw them at random, or where earlier trials did well (optuna's TPE).
    seeds : int
        Seeds per trial; the score is the mean ACC.
    validation : float
        The fraction of the training data that is held out to score trials; the test set is not used.
    out : path, optional
        Keep the search in this folder; the same call continues where it stopped.
    on_trial : callable
        Called with each trial that ends.
    config, progress, engine, address, workers, **settings
        As in `run`; all trials share them. A setting that is given is not searched.

    Returns
    -------
    SweepResult

    Examples
    --------
    >>> import spacenet
    >>> result = spacenet.sweep("split-digits", "naive", trials=2, epochs=1, tasks="0,1/2,3", progress=False)
    >>> len(result.trials)
    2
    """
    for name, value in (("trials", trials), ("seeds", seeds)):
        if value < 1:
            raise SettingsError(f"{value} is out of range (1 or more)", setting=name)
    if not 0 < validation < 1:
        raise SettingsError(f"{validation} is out of range (more than 0, less than 1)", setting="validation")
    stream, settings = resolve_stream(stream, settings)
    name, data = method_name(method), None
    layers = read_settings(config, method)
    if isinstance(stream, Stream):
        stream = data = stream.with_validation(validation)
        over = settings_layers(stream, name, settings)
    else:
        over = settings_layers(stream, name, {**settings, "validation": validation})
    base, folder = merge(layers, over, {"seed": seed}), Path(out) if out is not None else None
    fixed = [f"{section}.{key}" for section, held in over.items() if isinstance(held, Mapping) for key in held]
    search_ = Sweep(stream_name(stream), name, base, search, seed, seeds, data, folder, fixed)
    if search_.config({}).stream.data is not None:
        search_.data = search_.data or build_stream(search_.config({}).stream, progress, encoder_of(search_.config({})))
    where = EngineConfig(engine, address, workers)  # type: ignore[arg-type]
    at_once = workers or default_workers(search_.config({}))
    for trial in search_.run(trials, at_once, partial(execute_all, engine=where)):
        on_trial(trial)
    scored = [trial for trial in search_.trials() if trial.score is not None]
    if not scored:
        raise RunError("no trial succeeded; the log of each trial says why")
    result = SweepResult(search_.config(scored[0].values, stream={"validation": 0.0}), scored)
    if folder is not None:
        save_text(folder / BEST, result.best.to_toml())
    return result


def do_jobs(jobs: Sequence[Job], engine: EngineConfig, callbacks: Callbacks, progress: bool) -> list[Outcome]:
    """Do all jobs, with progress: a bar for each in this process, or a look at all of them in others."""
    here = in_this_process(jobs, engine)
    if callbacks and not here:
        raise SettingsError("callbacks are only called in this process; pass workers=1", setting="callbacks")
    for job in jobs:
        check_folder(job)
    jobs = _with_data(jobs, progress)
    outcomes = execute_all(jobs, engine, lambda job: _callbacks(job, callbacks, progress))
    followed = follow_jobs(outcomes, jobs) if progress and not here else outcomes
    return sorted(followed, key=lambda outcome: outcome.job.tag)


def _execute(job: Job, callbacks: Callbacks, progress: bool) -> RunResult:
    if callbacks and job.config.model.training.devices > 1:
        raise SettingsError("callbacks go with one device only", setting="callbacks")
    (job,) = _with_data([job], progress)
    outcome = execute(job, _callbacks(job, callbacks, progress))
    if isinstance(outcome.error, SpaceFull) and outcome.data is not None:
        outcome.error.result = RunResult.of(outcome.data)  # what was learned before
    if outcome.error is not None:
        raise outcome.error
    assert outcome.data is not None
    return RunResult.of(outcome.data)


def _with_data(jobs: Sequence[Job], progress: bool) -> Sequence[Job]:
    """The jobs with the data that the user has in a file, or with features; read or encoded once for all of them."""
    config, encoder = (jobs[0].config.stream, encoder_of(jobs[0].config)) if jobs else (None, None)
    held = jobs[0].stream if jobs else None
    if config is None or all(map(is_finished, jobs)) or (encoder is None and (config.data is None or held is not None)):
        return jobs
    stream = held or build_stream(config, progress, encoder)
    stream = stream.with_encoder(encoder, progress) if encoder else stream
    return [replace(job, stream=stream) for job in jobs]


def encoder_of(config: RunConfig) -> str | None:
    return config.model.preprocessing.encoder


def _callbacks(job: Job, callbacks: Callbacks, progress: bool) -> list[Callback]:
    return [*default_callbacks(progress), *(callbacks(job) if callable(callbacks) else callbacks)]


def tensorboard_callbacks() -> Callable[[Job], Sequence[Callback]]:
    """For each job a callback that writes TensorBoard events into its folder."""
    from spacenet.report.tensorboard import TensorBoardLogger

    def callbacks(job: Job) -> Sequence[Callback]:
        return [TensorBoardLogger(job.folder)] if job.folder is not None else []

    return callbacks
