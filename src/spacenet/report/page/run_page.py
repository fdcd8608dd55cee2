"""The page of a run, or of the same run with several seeds."""

from collections.abc import Callable, Sequence
from statistics import mean, stdev

from spacenet.config.plain import to_plain
from spacenet.config.run import to_toml
from spacenet.experiments.analysis import MANY_SAMPLES, SAMPLES_PER_TASK
from spacenet.experiments.callbacks import TIME_OF_DAY
from spacenet.experiments.run import CONFIG, LOG, MODEL
from spacenet.report.model import kept_text
from spacenet.report.page.cli_command import run_command
from spacenet.report.page.page import Command, Exhibit, Number, Page, Section, Table
from spacenet.report.plots.accuracy import accuracy_pictures
from spacenet.report.plots.class_memory import class_memory_data, class_memory_picture
from spacenet.report.plots.plot import Plot
from spacenet.report.plots.space import space_pictures
from spacenet.report.run_data import RunFacts
from spacenet.report.tables import bytes_text

MANY = 12
"""Tables with more columns are not shown: nobody reads them."""
SECTIONS = ("data", "net", "training", "options")
WITHOUT_NETWORK = {"net": (), "training": ("device", "threads")}
"""Of these sections, the settings that count where there is no network to train."""
OF_CLASSES = "What it keeps of each class"


def run_page(runs: Sequence[RunFacts], beside: RunFacts | None = None, failures: Sequence[str] = ()) -> Page:
    """Of several seeds the figures are of all, the pictures of the first. `failures`: why seeds are missing."""
    first = runs[0]
    accuracy = accuracy_pictures(first)
    confusion = [plot for plot in accuracy if "confusion" in plot.name]
    memory = [plot for plot in accuracy if plot not in confusion]
    of_which = [f"The pictures show seed {first.config.seed}."] if len(runs) > 1 else []
    sections = [
        Section("What it remembers", of_which, _seeds(runs), _exhibits(memory, first)),
        Section("What it confuses", exhibits=_exhibits(confusion, first)),
        *_of_classes(first),
        Section("The space", exhibits=_exhibits(space_pictures(first, beside), first)),
        _provenance(runs),
    ]
    return Page(_title(runs), _lead(first), sections, [*alarms(runs), *failures], numbers(runs), _foot(runs))


def numbers(runs: Sequence[RunFacts]) -> list[Number]:
    """The figures at the top: of one run, or mean ± standard deviation."""
    metrics = [facts.metrics for facts in runs]
    samples = max(each["images_kept"] for each in metrics)
    of_a_seed = " of a seed" if len(runs) > 1 else ""

    def of(name: str, meaning: str, values: Sequence[float], form: Callable[[float], str], unit: str = "") -> Number:
        sd = stdev(values) if len(values) > 1 else 0.0
        return Number(name, form(mean(values)) + unit, meaning, form(sd).lstrip("+") if sd else "")

    def every(key: str) -> list[float]:
        return [float(each[key]) for each in metrics]

    task_il_acc = [float(each["task_incremental"]["acc"]) for each in metrics]
    kept = runs[0].analysis.kept
    of_classes = f" and {kept.floats:,} numbers for each class" if kept else ""
    files = [float((facts.folder / MODEL).stat().st_size) for facts in runs]
    plain = "{:.1f}".format
    connections = of("Connections", "in the whole network", every("connections"), "{:,.0f}".format)
    return [
        of("ACC", f"mean accuracy over all tasks, {metrics[0]['evaluated_on']}", every("acc"), plain, " %"),
        of("ACC, task told", "if it only had to choose among the task's own classes", task_il_acc, plain, " %"),
        of("BWT", "percentage points that earlier tasks changed by since they were learned", every("bwt"), _signed),
        of("Forgetting", "percentage points that earlier tasks lost from their best", every("forgetting"), plain),
        *([connections] if metrics[0]["layers"] else []),
        of("Model file", "on disk", files, bytes_text),
        of("Kept", f"between tasks, with {samples:,} old samples{of_classes}", every("bytes_kept"), bytes_text),
        of("Time", f"for training and evaluation{of_a_seed}", every("seconds"), seconds_text),
    ]


def alarms(runs: Sequence[RunFacts]) -> list[str]:
    """What must not be overlooked."""
    found = []
    for facts in runs:
        seed = f"Seed {facts.config.seed}: " if len(runs) > 1 else ""
        planned = len(facts.metrics["matrix"][0])
        if facts.metrics["stopped"]:
            learned = facts.metrics["tasks_learned"]
            found.append(f"{seed}Stopped early, after {learned} of {planned} tasks: {facts.metrics['stopped']}")
        found += [f"{seed}Warning: {warning}" for warning in _warnings(facts)]
    return found


def _warnings(facts: RunFacts) -> list[str]:
    """Those in the log; a run that was resumed may have written them several times."""
    log = facts.folder / LOG
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    found = (line[TIME_OF_DAY:].strip() for line in lines)
    return list(dict.fromkeys(line.removeprefix("warning: ") for line in found if line.startswith("warning: ")))


def _title(runs: Sequence[RunFacts]) -> str:
    config = runs[0].config
    of_seeds = f"{len(runs)} seeds" if len(runs) > 1 else f"seed {config.seed}"
    return f"{config.method} on {config.stream}, {of_seeds}"


def _lead(facts: RunFacts) -> str:
    tasks = facts.labels
    classes = sum(map(len, tasks))
    by = f"by a network of the kind {facts.config.net.net}" if facts.metrics["layers"] else "without a network"
    return (
        f"{classes} classes learned in {len(tasks)} {'tasks' if len(tasks) > 1 else 'task'}, one after another, "
        f"{by}. Asked for a class, it is not told the task."
    )


def _exhibits(plots: Sequence[Plot], facts: RunFacts) -> list[Exhibit]:
    """The pictures with their figures."""
    tables = {"accuracy-matrix": _matrix(facts), "class-confusion": _confusion(facts), "capacity-map": _layers(facts)}
    return [Exhibit(plot, tables.get(plot.name)) for plot in plots]


def _of_classes(facts: RunFacts) -> list[Section]:
    """What is kept of each class, and what it buys."""
    kept, data = facts.analysis.kept, class_memory_data(facts)
    if kept is None:
        return []
    beside = " beside the network" if facts.metrics["layers"] else ""
    notes = [f"It keeps{beside} {kept_text(kept)}."]
    if data is None:
        return [Section(OF_CLASSES, notes)]
    if not facts.config.data.validation:
        notes.append("The curve is of the test set; to choose a number of directions, look at a run with --validation.")
    counts = facts.analysis.confusion
    if counts is not None and int(counts.sum()) > MANY_SAMPLES:
        notes.append(f"At most {SAMPLES_PER_TASK:,} samples of each task count for the curve.")
    rows = [[f"{point.directions}", f"{point.floats:,}", f"{point.acc:.2f}"] for point in data.points]
    table = Table("With fewer directions", ["directions", "numbers for each class", "ACC %"], rows)
    return [Section(OF_CLASSES, notes, exhibits=[Exhibit(class_memory_picture(data), table)])]


def _matrix(facts: RunFacts) -> Table | None:
    tasks = facts.labels
    if len(tasks) > MANY:
        return None
    columns = ["after task", *(f"task {number + 1}" for number in range(len(tasks)))]
    rows = [
        [str(j + 1), *(f"{value:.1f}" if i <= j else "" for i, value in enumerate(row[: len(tasks)]))]
        for j, row in enumerate(facts.metrics["matrix"])
    ]
    return Table("Accuracy in %, without being told the task", columns, rows)


def _confusion(facts: RunFacts) -> Table | None:
    counts = facts.analysis.confusion
    labels = [label for task in facts.labels for label in task]
    if counts is None or len(labels) > MANY:
        return None
    rows = [[label, *(f"{count:,}" for count in row)] for label, row in zip(labels, counts.tolist(), strict=True)]
    return Table("Samples of each class (row) by the class they were given (column)", ["class", *labels], rows)


def _layers(facts: RunFacts) -> Table:
    fields = ("units", "used", "reserved", "unused", "connections")
    rows = [[layer["name"], *(f"{layer[field]:,}" for field in fields)] for layer in facts.metrics["layers"]]
    return Table("What each layer holds", ["layer", *fields[:-1], "connections in"], rows)


def _seeds(runs: Sequence[RunFacts]) -> list[Table]:
    """Each seed's figures."""
    if len(runs) < 2:
        return []
    rows = [
        [
            str(m["seed"]),
            *(f"{value:.2f}" for value in (m["acc"], m["bwt"], m["forgetting"], m["task_incremental"]["acc"])),
            seconds_text(m["seconds"]),
        ]
        for m in (facts.metrics for facts in runs)
    ]
    return [Table("Each seed", ["seed", "ACC %", "BWT", "forgetting", "ACC %, task told", "time"], rows)]


def _provenance(runs: Sequence[RunFacts]) -> Section:
    """How the run was made, and how to make it again."""
    config, metrics = runs[0].config, runs[0].metrics
    rows = [[name.replace("_", " "), part, _text(value)] for part, name, value in _settings(runs[0])]
    around = [
        ["seeds" if runs[1:] else "seed", ", ".join(str(facts.config.seed) for facts in runs)],
        ["hardware", metrics["hardware"]],
        *([name, version] for name, version in metrics["versions"].items()),
    ]
    commands = [
        Command("The same run again:", run_command(config, len(runs))),
        Command("Or from its settings file, which is below:", f"spacenet run --config {CONFIG}"),
    ]
    tables = [
        Table("Made with", [], around, words=2),
        Table("Settings", ["setting", "of", "value"], rows, words=3),
    ]
    return Section("How it was made", tables=tables, commands=commands, files=[(CONFIG, to_toml(config))])


def _settings(facts: RunFacts) -> list[tuple[str, str, object]]:
    """Section, name and value of all settings that the method looks at."""
    plain, only = to_plain(facts.config), {} if facts.metrics["layers"] else WITHOUT_NETWORK
    return [
        (part, name, value)
        for part in SECTIONS
        for name, value in plain[part].items()
        if part not in only or name in only[part]
    ]


def _foot(runs: Sequence[RunFacts]) -> str:
    first = runs[0]
    place = f"the runs in {first.folder.parent}" if len(runs) > 1 else f"the run in {first.folder}"
    return f"Made by spacenet {first.metrics['versions']['spacenet']} from {place}."


def _text(value: object) -> str:
    """A setting for people."""
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def seconds_text(seconds: float) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
