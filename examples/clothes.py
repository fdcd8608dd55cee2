"""A shop's model gains kinds of clothes month by month (Fashion-MNIST), from its own file and the new photos alone.

python examples/clothes.py [--samples N] [--model FILE]

Each month the model is loaded as a new process would do it, learns what is new, is tested on everything it should know
by then, and is saved in the place of the old one. Photos of earlier months are not looked at again.
"""

import argparse
from pathlib import Path

import numpy as np

import spacenet
from spacenet.data.datasets import load_dataset
from spacenet.errors import SpacenetError

NAMES = ("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
MONTHS = (
    ("T-shirt", "trousers", "sneaker", "bag"),
    ("dress", "ankle boot"),
    ("coat", "sandal"),
    ("pullover", "shirt"),
)


def main() -> None:
    """Learn the months one after another and print what the model knows after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--samples", type=int, default=6000, help="photos of each kind to learn from (default: all 6000)"
    )
    parser.add_argument("--model", type=Path, default=Path("clothes.safetensors"), help="the model's file")
    options = parser.parse_args()
    data = load_dataset("fashion-mnist")
    names, names_test = np.array(NAMES)[data.y_train], np.array(NAMES)[data.y_test]
    known: list[str] = []
    for month, kinds in enumerate(MONTHS, 1):
        rows = np.concatenate([np.flatnonzero(names == kind)[: options.samples] for kind in kinds])
        if month == 1:
            classifier = spacenet.SpaceNetClassifier(expected_tasks=len(MONTHS))
        else:
            classifier = spacenet.load(options.model)
        classifier.partial_fit(data.x_train[rows], names[rows])
        classifier.save(options.model)
        known += kinds
        print(f"Month {month}: {', '.join(kinds)} are new. Right answers among all {len(known)} kinds:")
        answers = classifier.predict(data.x_test)
        for kind in known:
            own = names_test == kind
            print(f"  {kind:11} {100 * np.mean(answers[own] == kind):5.1f} %")
        size = options.model.stat().st_size / 1024
        all_known = np.isin(names_test, known)
        right = 100 * np.mean(answers[all_known] == names_test[all_known])
        print(f"  together {right:.1f} %; {size:.0f} KiB; room for {classifier.space_left_} more such months\n")


if __name__ == "__main__":
    try:
        main()
    except SpacenetError as error:
        raise SystemExit(f"clothes: {error}") from None
