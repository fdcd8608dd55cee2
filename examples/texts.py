"""Which part of SciPy is it? A model that reads sentences and gains two subjects a time, on a pretrained encoder.

python examples/texts.py [--texts 50] [--seeds 3]

The texts are the first sentences of the documentation of SciPy's functions (BSD-3-Clause), as they are installed; the
subject is the module that a function is in. It needs `pip install "spacenet-cl[texts]"`.
"""

import argparse
import importlib
import inspect

import numpy as np

import spacenet
from spacenet.errors import SpacenetError

TASKS = [["linalg", "signal"], ["ndimage", "stats"], ["optimize", "special"], ["interpolate", "sparse"]]
QUESTIONS = [
    "Is the difference between these two groups significant?",
    "I want to remove the hum from a recording",
    "Find the cheapest mixture that satisfies all constraints",
    "Most entries of my matrix are zero",
    "Draw a smooth curve through these points",
    "Count the cells in this microscope picture",
]


def read_sentences(module: str) -> list[str]:
    """The first sentence of what is said of each function and class."""
    library = importlib.import_module(f"scipy.{module}")
    found = []
    for name in library.__all__:
        text = inspect.getdoc(getattr(library, name)) if not name.startswith("_") else None
        paragraphs = [" ".join(each.split()) for each in (text or "").split("\n\n")]
        prose = [each for each in paragraphs if "(" not in each[:25] and len(each) > 20]  # no signatures
        found += [prose[0].split(". ")[0]] if prose else []
    return list(dict.fromkeys(found))


def learn(count: int, seed: int) -> tuple[spacenet.SpaceNetClassifier, float]:
    """A model of all subjects, learned one task after the other, and its accuracy on sentences it has not seen."""
    rng = np.random.default_rng(seed)
    classifier = spacenet.SpaceNetClassifier(encoder="all-minilm-l6-v2", random_state=seed)
    test: list[tuple[str, str]] = []
    accuracy = 0.0
    for task in TASKS:
        train = []
        for module in task:
            sentences = rng.permutation(read_sentences(module))[:count].tolist()
            half = len(sentences) // 2
            train += [(each, module) for each in sentences[:half]]
            test += [(each, module) for each in sentences[half:]]
        classifier.partial_fit([text for text, _ in train], [module for _, module in train])
        texts, modules = zip(*test, strict=True)
        accuracy = 100 * float(np.mean(classifier.predict(texts) == modules))
        print(f"{' and '.join(task):<24}{len(train)} sentences learned, {accuracy:.1f} % of {len(test)} others right")
    return classifier, accuracy


def main() -> None:
    """Learn with every seed, ask the last model some questions, print the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=50, help="of each subject, half of them for the test")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    reached = []
    for seed in range(options.seeds):
        classifier, accuracy = learn(options.texts, seed)
        reached.append(accuracy)
    print()
    for question, answer in zip(QUESTIONS, classifier.predict(QUESTIONS), strict=True):
        print(f"{question:<60}scipy.{answer}")
    spread = f" ± {np.std(reached, ddof=1):.1f}" if len(reached) > 1 else ""
    print(f"\nAll eight subjects: {np.mean(reached):.1f}{spread} %, seeds: {len(reached)}")


if __name__ == "__main__":
    try:
        main()
    except SpacenetError as error:
        raise SystemExit(f"texts: {error}") from None
