"""Pages of runs and comparisons, from data in memory or from folders."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spacenet.errors import RunError, SettingsError
from spacenet.experiments.analysis import MANY_SAMPLES, SAMPLES_PER_TASK
from spacenet.experiments.comparison import ComparisonData, Failure, load_comparison, runs_in
from spacenet.experiments.run import CONFIG, MODEL, RunData, load_config, load_run
from spacenet.model.file import to_bytes
from spacenet.model.scores import Mistakes
from spacenet.report import tables
from spacenet.report.evaluation_tables import mistakes_table
from spacenet.report.page.cli_command import run_command
from spacenet.report.page.page import Metric, Page, Section
from spacenet.report.page.references import reference_section
from spacenet.report.plots import collect
from spacenet.report.plots.plot import FigureFormat, Plot
from spacenet.report.table import Table
from spacenet.utils.files import make_folder, save_bytes
from spacenet.utils.text import MeanStd, format_bytes, format_seconds, plural

PAGE = "report.html"
WITHOUT_NETWORK = {"net": (), "training": ("device", "threads")}  # the settings that matter to a method without one
NOT_GIVEN = "The task of a sample is not given (class-incremental)."


def run_page(runs: Sequence[RunData], beside: RunData | None = None, failures: Sequence[Failure] = ()) -> Page:
    """The page of a run, or of the same run with several seeds: figures of all; plots say which seeds they show.

    beside     another run, to compare its inputs with
    failures   seeds that are missing
    """
    runs = [run for run in runs if run.metrics["tasks_learned"]]
    if not runs:
        raise RunError("no task was learned, there is nothing to report")
    first, seeds = runs[0], [run.seed for run in runs]
    sections = [
        Section("Accuracy", [tables.seeds_table(runs)] if runs[1:] else [], plots=collect.accuracy_plots(runs)),
        reference_section(runs, beside),
        Section("Precision, recall and calibration", plots=collect.class_plots(runs)),
        Section("Confusion", plots=collect.confusion_plots(runs)),
        mistakes_section(first.analysis.mistakes, collect.mistakes_plots(runs)),
        _class_statistics_section(runs),
        Section("Network capacity", plots=collect.capacity_plots(runs, beside)),
        _reproduce_section(runs),
    ]
    title = f"{first.method} on {first.stream}, {tables.seeds_text(seeds)}"
    where = ""
    if first.folder is not None:
        where = f" from the runs in {first.folder.parent}" if runs[1:] else f" from the run in {first.folder}"
    how = f"with the network {first.config.model.net.name}" if first.metrics["layers"] else "without a network"
    size = f"{plural(sum(map(len, first.labels)), 'class', 'es')} in {plural(len(first.labels), 'task')}"
    lead = f"{size}, learned in sequence {how}. {NOT_GIVEN}"
    return Page(title, lead, sections, _notices(runs, failures), run_metrics(runs), _footer(runs, where))


def comparison_page(data: ComparisonData) -> Page:
    """The page of a comparison."""
    count = len(data.rows)
    methods = ", ".join(data.runs) if count <= 4 else f"{count} methods compared"
    lead = (
        f"{plural(count, 'method')} on the same {plural(len(data.labels), 'task')} with "
        f"{plural(sum(map(len, data.labels)), 'class', 'es')}, measured on the {data.evaluated_on}. {NOT_GIVEN}"
    )
    sections = [
        Section("Results", [tables.comparison_table(data)]),
        Section("Plots", plots=collect.comparison_plots(data)),
        _reproduce_comparison_section(data),
    ]
    footer = _footer(next(iter(data.runs.values())))
    return Page(f"{data.stream}: {methods}", lead, sections, _notices([], data.failures), footer=footer)


def page_from_folders(folders: Sequence[Path], beside: Path | None = None) -> Page:
    """The page of a run, of its seeds, or of a comparison, depending on what the folders hold."""
    places = dict.fromkeys(run.resolve() for folder in folders for run in runs_in(folder))
    configs = {place: load_config(place).model for place in places}
    if len({config.method for config in configs.values()}) > 1 or len(folders) > 1:
        if beside is not None:
            raise SettingsError("goes with one run; a comparison shows all its methods anyway", setting="beside")
        return comparison_page(load_comparison(folders))
    runs: list[RunData] = []
    failures: list[Failure] = []
    for place in sorted(places, key=lambda place: configs[place].seed):
        try:
            runs.append(load_run(place))
        except RunError as error:
            failures.append(Failure(configs[place].method, configs[place].seed, error.message))
            if len(places) == 1:
                raise
    if not runs:
        raise RunError(f"{folders[0]}: no run is finished, there is nothing to report")
    return run_page(runs, load_run(beside) if beside else None, failures)


def default_page_path(folders: Sequence[Path]) -> Path:
    """Where the page goes: into the folder that it is about; if there are several, into the current one."""
    return folders[0] / PAGE if len(folders) == 1 else Path(PAGE)


def save_page(page: Page, path: Path) -> None:
    """Write the page. Characters that are not valid Unicode, as file names may have, become question marks."""
    save_bytes(path, page.to_html().encode("utf-8", "replace"))


def save_figures(page: Page, folder: Path, formats: Sequence[FigureFormat] = ("svg", "png")) -> list[Path]:
    """Write every plot of a page into files."""
    make_folder(folder)
    return [path for plot in page.plots for path in plot.save(folder, formats)]


def save_tables(page: Page, folder: Path) -> list[Path]:
    """Write every table of a page, also the data of its plots, as LaTeX and as CSV."""
    make_folder(folder)
    written = []
    for name, table in page.tables.items():
        for suffix, text in (("tex", table.to_latex()), ("csv", table.to_csv())):
            written.append(folder / f"{name}.{suffix}")
            save_bytes(written[-1], text.encode("utf-8", "replace"))
    return written


def run_metrics(runs: Sequence[RunData]) -> list[Metric]:
    """The numbers at the top: of one run, or mean ± standard deviation."""
    metrics, memory = [run.metrics | {"model_bytes": _model_bytes(run)} for run in runs], runs[0].analysis.class_memory
    stored = plural(max(each["images_kept"] for each in metrics), "stored sample")
    per_class = f" and {memory.floats:,} values per class" if memory else ""
    changed = "percentage points by which earlier tasks changed since they were learned"
    time = f"for training and evaluation{' per seed' if len(runs) > 1 else ''}"
    percent, points = "{:.1f} %".format, "{:.1f}".format
    rows: list[tuple[str, str, Callable[[float], str], str]] = [
        ("ACC", "acc", percent, f"mean accuracy over all tasks, {metrics[0]['evaluated_on']}"),
        ("Task-incremental ACC", "task_il_acc", percent, "if only the task's own classes compete"),
        ("BWT", "bwt", "{:+z.1f}".format, changed),
        ("Forgetting", "forgetting", points, "percentage points that earlier tasks lost from their best"),
        ("Connections", "connections", "{:,.0f}".format, "in the whole network"),
        ("Model file", "model_bytes", format_bytes, "size of the file"),
        ("Memory", "bytes_kept", format_bytes, f"kept between tasks, with {stored}{per_class}"),
        ("Time", "seconds", format_seconds, time),
    ]
    found = []
    for name, key, form, meaning in rows:
        if all(each[key] is not None for each in metrics) and (key != "connections" or metrics[0]["layers"]):
            figure = MeanStd.of([float(each[key]) for each in metrics])
            std = form(figure.std).strip("+ %") if figure.std else ""
            found.append(Metric(name, form(figure.mean).replace("-", "−"), meaning, std))
    return found


def _model_bytes(run: RunData) -> int | None:
    """The size of the run's model file, or of the one that its model would make."""
    if run.folder is not None and (run.folder / MODEL).is_file():
        return (run.folder / MODEL).stat().st_size
    return len(to_bytes(run.model)) if run.model is not None else None


def _notices(runs: Sequence[RunData], failures: Sequence[Failure]) -> list[str]:
    found = []
    for run in runs:
        seed = f"Seed {run.seed}: " if len(runs) > 1 else ""
        if run.metrics["stopped"]:
            done = f"{run.metrics['tasks_learned']} of {plural(len(run.metrics['matrix'][0]), 'task')}"
            found.append(f"{seed}Stopped early, after {done}: {run.metrics['stopped']}")
        found += [f"{seed}Warning: {warning}" for warning in run.metrics["warnings"]]
    return [*found, *(f"Left out: {failure}" for failure in failures)]


def mistakes_section(mistakes: Mistakes, plots: Sequence[Plot]) -> Section:
    """Samples that are predicted wrongly: the plot where they are images, else their values."""
    values = mistakes.inputs is not None and mistakes.inputs.ndim == 2
    return Section("Wrong predictions", [mistakes_table(mistakes)] if values else [], plots=plots)


def _class_statistics_section(runs: Sequence[RunData]) -> Section:
    """What is kept of each class, and how the accuracy depends on it."""
    run = runs[0]
    memory, confusion = run.analysis.class_memory, run.analysis.confusion
    if memory is None:
        return Section("Class statistics")
    besides = "Besides the network, the method keeps" if run.metrics["layers"] else "The method keeps"
    notes, plots = [f"{besides} {tables.class_memory_text(memory)}."], collect.class_memory_plots(runs)
    if plots and not run.config.stream.validation:
        notes.append("The curve was measured on the test set; to choose a setting, hold out validation data.")
    if plots and confusion is not None and int(confusion.sum()) > MANY_SAMPLES:
        notes.append(f"At most {SAMPLES_PER_TASK:,} samples of each task were used for the curve.")
    return Section("Class statistics", notes=notes, plots=plots)


def _reproduce_section(runs: Sequence[RunData]) -> Section:
    first, metrics = runs[0], runs[0].metrics
    made_with = [
        ["seeds" if runs[1:] else "seed", ", ".join(str(run.seed) for run in runs)],
        ["hardware", metrics["hardware"]],
        *([name, version] for name, version in metrics["versions"].items()),
    ]
    line = run_command(first.config, len(runs))
    commands = [("Repeat the run:", line)] if line else []
    commands.append(("Or from its settings file, shown below:", f"spacenet run --config {CONFIG}"))
    settings = Table("Settings", ["setting", "section", "value"], _settings(first), "lll")
    shown = [Table("Made with", [], made_with, "ll"), settings]
    return Section("How to reproduce it", shown, commands=commands, files=[(CONFIG, first.config.to_toml())])


def _reproduce_comparison_section(data: ComparisonData) -> Section:
    lines, files = [], []
    groups: dict[tuple[str, str, str], list[str]] = {}
    for method, runs in data.runs.items():
        first = runs[0]
        line = run_command(first.config, len(runs))
        lines += [line] if line else []
        files.append((f"{CONFIG} of {method}", first.config.to_toml()))
        versions = ", ".join(f"{name} {version}" for name, version in first.metrics["versions"].items())
        seeds = ", ".join(str(run.seed) for run in runs)
        groups.setdefault((seeds, first.metrics["hardware"], versions), []).append(method)
    rows = [[", ".join(methods), *how] for how, methods in groups.items()]
    made_with = Table("Made with", ["methods", "seeds", "hardware", "versions"], rows, "llll")
    commands = [("Repeat the runs, one line per method:", "\n".join(lines))] if lines else []
    return Section("How to reproduce it", [made_with], commands=commands, files=files)


def _settings(run: RunData) -> list[list[str]]:
    """Name, section and value of all settings that the method uses."""
    plain, relevant = run.config.to_plain(), {} if run.metrics["layers"] else WITHOUT_NETWORK
    return [
        [name.replace("_", " "), section, _setting_text(value)]
        for section in ("stream", "method", "net", "training", "preprocessing")
        for name, value in plain[section].items()
        if section not in relevant or name in relevant[section]
    ]


def _setting_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_setting_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _footer(runs: Sequence[RunData], where: str = "") -> str:
    return f"Made by spacenet {runs[0].metrics['versions']['spacenet']}{where}."
