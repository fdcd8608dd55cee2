"""Compare methods on your own images: a folder with one sub-folder per class.

python examples/own_data.py [FOLDER] [--size 32] [--classes-per-task 2] [--out comparison.html]

Without a folder, the digits that come with scikit-learn are used.
It needs `pip install "spacenet-cl[report,images]"`.
"""

import argparse
import logging
from pathlib import Path

from sklearn.datasets import load_digits

import spacenet
from spacenet.errors import SpacenetError

METHODS = ("naive", "er", "spacenet", "spacenet-density", "joint")


def main() -> None:
    """Make a stream, compare the methods, print the table and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="images, one sub-folder per class")
    parser.add_argument("--size", type=int, default=32, help="resize images to this height and width (default: 32)")
    parser.add_argument("--classes-per-task", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--out", type=Path, default=Path("comparison.html"), help="the page (default: comparison.html)")
    options = parser.parse_args()
    if options.folder is None:
        data = load_digits()
        stream = spacenet.Stream.from_arrays(
            data.images, data.target, classes_per_task=options.classes_per_task, name="digits"
        )
    else:
        stream = spacenet.Stream.from_folder(
            options.folder, image_size=options.size, classes_per_task=options.classes_per_task
        )
    print(stream)
    table = spacenet.compare(stream, options.methods, epochs=options.epochs)
    print(table)
    print(f"The page is in {table.report(options.out)}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        main()
    except SpacenetError as error:
        raise SystemExit(f"own_data: {error}") from None
