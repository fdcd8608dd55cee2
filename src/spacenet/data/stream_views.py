"""A stream as one line of text, and as a table for notebooks."""

import html
from collections import Counter
from typing import TYPE_CHECKING

from spacenet.data.preprocessing import Array
from spacenet.utils.text import plural

if TYPE_CHECKING:
    from spacenet.data.stream import Stream


def describe_stream(stream: "Stream") -> str:
    """Name, number of tasks, classes and samples, shape."""
    train, test = (sum(counts) for counts in count_samples(stream))
    shape = "×".join(map(str, stream.input_shape))
    return (
        f"Stream({stream.name!r}: {plural(len(stream), 'task')}, {plural(len(stream.labels), 'class', 'es')}, "
        f"{train:,} training and {test:,} test samples of shape {shape})"
    )


def stream_to_html(stream: "Stream") -> str:
    """A table with the classes and the number of samples of each task."""
    heading = "".join(f"<th>{word}</th>" for word in ("Task", "Classes", "Training samples", "Test samples"))
    counts = zip(stream.task_labels, *count_samples(stream), strict=True)
    rows = "".join(
        f"<tr><td>{number}</td><td>{html.escape(', '.join(map(str, labels)))}</td>"
        f"<td>{train:,}</td><td>{test:,}</td></tr>"
        for number, (labels, train, test) in enumerate(counts, start=1)
    )
    caption = f"<caption>{html.escape(stream.name)}</caption>"
    return f"<table>{caption}<thead><tr>{heading}</tr></thead><tbody>{rows}</tbody></table>"


def count_samples(stream: "Stream") -> tuple[list[int], list[int]]:
    """For each task the number of its training samples, and of its test samples."""

    def count(y: Array) -> list[int]:
        found = Counter(y.tolist())
        return [sum(found[label] for label in labels) for labels in stream.task_labels]

    return count(stream.dataset.y_train), count(stream.dataset.y_test)
