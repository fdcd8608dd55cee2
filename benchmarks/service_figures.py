"""The figures of the service's benchmark: right and wrong answers, latencies, requests per second."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from benchmarks.clients import NO_ANSWER, Asked
from spacenet.report.tables import Table

Figures = dict[str, Any]
Answer = tuple[Any, float]
"""A label and its probability."""
Expected = Mapping[int | None, Sequence[Sequence[Answer]]]
"""For each number of tasks that the model may have learned, what it answers to each body: one entry per sample. Where
answers do not say how many tasks there are, that number is None."""
LARGEST = "largest_difference"
PERCENTILES = (50, 90, 99, 100)
PHASES = ("before", "during", "after")
LATENCY_COLUMNS = ["p50 ms", "p90 ms", "p99 ms", "max ms"]
MOST_SLOWDOWN = 3.0
"""How many times as long the slowest of 100 requests may take while a task is learned."""


@dataclass(frozen=True)
class Checker:
    """Compares answers with those of the model."""

    expected: Expected
    tolerance: float

    def count(self, asked: Sequence[Asked]) -> Figures:
        """How many requests were answered wrongly, how many not at all, and how far probabilities of the others are
        from the model's."""
        found = [self._difference(each) for each in asked if each.status == 200]
        return {
            "requests": len(asked),
            "wrong": sum(each > self.tolerance for each in found),
            LARGEST: max((each for each in found if each <= self.tolerance), default=0.0),
            "status_4xx": sum(400 <= each.status < 500 for each in asked),
            "status_5xx": sum(each.status >= 500 for each in asked),
            "no_answer": sum(each.status == NO_ANSWER for each in asked),
        }

    def _difference(self, asked: Asked) -> float:
        """The largest difference of a probability; infinite if a label is another one, or if there is no such model."""
        answer = asked.answer()
        known = self.expected.get(answer.get("tasks"))
        if known is None or len(known[asked.number]) != len(answer["predictions"]):
            return math.inf
        pairs = zip(known[asked.number], answer["predictions"], strict=True)
        return max(_difference(wanted, (found["label"], found["probability"])) for wanted, found in pairs)

    def alike(self, one: Answer, other: Answer) -> bool:
        """Whether two answers are the same up to rounding."""
        return _difference(one, other) <= self.tolerance


def _difference(one: Answer, other: Answer) -> float:
    return abs(one[1] - other[1]) if one[0] == other[0] else math.inf


def count_failures(figures: Mapping[str, Any]) -> int:
    """Requests that were not answered as they should be."""
    return sum(figures[name] for name in ("wrong", "status_4xx", "status_5xx", "no_answer"))


def add_counts(several: Sequence[Figures]) -> Figures:
    """The sums of counts, and the largest difference."""
    return {name: (max if name == LARGEST else sum)(each[name] for each in several) for name in several[0]}


def latencies(asked: Sequence[Asked]) -> Figures:
    """Percentiles in milliseconds."""
    values = np.percentile([1000 * each.seconds for each in asked], PERCENTILES).tolist()
    names = (f"p{percentile}" if percentile < 100 else "max" for percentile in PERCENTILES)
    return dict(zip(names, values, strict=True))


def wall_seconds(asked: Sequence[Asked]) -> float:
    """From the first request to the last answer."""
    return max(each.began + each.seconds for each in asked) - min(each.began for each in asked)


# While a task is learned


def split_phases(asked: Sequence[Asked], times: tuple[float, float]) -> dict[str, list[Asked]]:
    """Requests before, during and after; one belongs to the learning if it was on its way at any moment of it."""
    phases: dict[str, list[Asked]] = {name: [] for name in PHASES}
    for each in asked:
        ended = each.began + each.seconds < times[0]
        phases["before" if ended else "during" if each.began <= times[1] else "after"].append(each)
    return phases


def describe_phases(rounds: Sequence[Mapping[str, Sequence[Asked]]]) -> Figures:
    """Requests per second and latencies of each phase, of all rounds together."""
    found: Figures = {}
    for name in PHASES:
        every = [each for phases in rounds for each in phases[name]]
        seconds = sum(wall_seconds(phases[name]) for phases in rounds if phases[name])
        found[name] = {"requests": len(every)}
        if every:
            found[name] |= {"per_second": len(every) / seconds, "milliseconds": latencies(every)}
    return found


def slowdown(phases: Mapping[str, Any]) -> float | None:
    """How many times as long the slowest of 100 requests take while a task is learned."""
    before, during = (phases[name].get("milliseconds") for name in ("before", "during"))
    return during["p99"] / before["p99"] if before and during else None


def phases_table(figures: Mapping[str, Any]) -> Table:
    """A row for each phase."""
    rows = []
    for name, phase in figures["phases"].items():
        if phase["requests"]:
            times = [f"{value:.1f}" for value in phase["milliseconds"].values()]
            rows.append([name, f"{phase['requests']:,}", f"{phase['per_second']:.0f}", *times])
    columns = ["the task is learned", "requests", "per second", *LATENCY_COLUMNS]
    return Table(f"{figures['clients']} clients, one sample per request, while a task is learned", columns, rows)


def learning_verdict(figures: Mapping[str, Any]) -> str:
    """All that the table does not say."""
    rounds = ", ".join("-" if each is None else f"{each:.2f}" for each in figures["slowdown_of_rounds"])
    factor = figures["slowdown"]
    held = factor is not None and factor <= MOST_SLOWDOWN
    return (
        f"{_counts(figures)}\n"
        f"{figures['by_old_model']:,} answers by the model before the task, {figures['by_new_model']:,} by the one "
        f"after; they answer {figures['inputs_distinguished']} of the {figures['inputs']} inputs differently.\n"
        f"Learning took {', '.join(f'{each:.1f}' for each in figures['learning_seconds'])} s.\n"
        f"p99 during / before: {'-' if factor is None else f'{factor:.2f}'} (each round: {rounds}); "
        f"{_as_wanted(held)} (at most {MOST_SLOWDOWN:g})."
    )


# Beside the plain service


def comparison_table(figures: Mapping[str, Any]) -> Table:
    """A row for each service: the medians of its rounds."""
    rows = []
    for name, each in figures["services"].items():
        times = [f"{value:.1f}" for value in each["milliseconds"].values()]
        own = [f"{each['requests']:,}", f"{each['per_second']:.0f}", *times, f"{each['cpu_milliseconds']:.3f}"]
        rows.append([name, *own, f"{count_failures(each):,}"])
    columns = ["service", "requests", "per second", *LATENCY_COLUMNS, "CPU ms / request", "wrong or failed"]
    facts = f"{figures['clients']} clients, {figures['samples']} × {figures['values']:,} values per request"
    return Table(f"{facts}, {len(figures['ratios'])} rounds in turns", columns, rows)


def describe_service(rounds: Sequence[Figures]) -> Figures:
    """Sums of counts, and the medians over the rounds of all else."""
    counts = add_counts([each["counts"] for each in rounds])
    names = rounds[0]["milliseconds"]
    return {
        **counts,
        "per_second": median(each["per_second"] for each in rounds),
        "milliseconds": {name: median(each["milliseconds"][name] for each in rounds) for name in names},
        "cpu_milliseconds": median(each["cpu_milliseconds"] for each in rounds),
        "rounds": list(rounds),
    }


def comparison_verdict(figures: Mapping[str, Any]) -> str:
    """How many requests per second the first service answers for each one of the second."""
    ratios: list[float] = figures["ratios"]
    own, other = figures["services"].values()
    cpu = other["cpu_milliseconds"] / own["cpu_milliseconds"]
    return (
        f"the first / the second: {figures['ratio']:.2f} times the requests per second (median of the rounds, "
        f"{min(ratios):.2f} to {max(ratios):.2f}), {cpu:.2f} times as many per second of CPU; "
        f"{_as_wanted(figures['ratio'] >= 1)} (at least 1)."
    )


def _counts(figures: Mapping[str, Any]) -> str:
    return (
        f"{figures['requests']:,} requests: {figures['wrong']} wrong answers, {figures['status_4xx']} refused (4xx), "
        f"{figures['status_5xx']} failed (5xx), {figures['no_answer']} without answer. "
        f"Probabilities are within {figures[LARGEST]:.1e} of the model's for one sample alone."
    )


def _as_wanted(held: bool) -> str:
    return "as wanted" if held else "NOT as wanted"
