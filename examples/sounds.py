"""Words that are heard somewhere in a noisy recording, two new ones a time, on a pretrained encoder of speech.

python examples/sounds.py [--recordings 20] [--seeds 3]

The program makes the recordings itself: a word is a row of vowels, spoken by a synthetic voice (pulses through three
resonances, those of American English vowels) of any pitch, size and speed. It needs `pip install "spacenet-cl[audio]"`.
"""

import argparse
from typing import Any

import numpy as np
from scipy.signal import lfilter

import spacenet
from spacenet.errors import SpacenetError

RATE, STEP = 16_000, 80
TASKS = [["aiu", "oma"], ["iei", "umu"], ["moa", "eao"], ["uea", "omi"]]
RESONANCES = {  # in Hz
    "a": (730, 1090, 2440),
    "e": (530, 1840, 2480),
    "i": (270, 2290, 3010),
    "o": (570, 840, 2410),
    "u": (300, 870, 2240),
    "m": (250, 1000, 2200),
}
Array = np.ndarray[Any, Any]


def speak(word: str, rng: np.random.Generator) -> Array:
    """A word in a new voice."""
    lengths = (RATE * rng.uniform(0.12, 0.2, len(word)) * rng.uniform(0.8, 1.25)).astype(int)
    times = np.arange(lengths.sum())
    pitch = rng.uniform(90, 240) * (1 + 0.1 * np.sin(times * rng.uniform(1, 6) / len(times)))
    sound = lfilter([1], [1, -0.95], np.diff(np.floor(np.cumsum(pitch) / RATE), prepend=0))
    middles, size = np.cumsum(lengths) - lengths / 2, rng.uniform(0.85, 1.2)
    for number in range(3):
        wanted = [size * RESONANCES[letter][number] for letter in word]
        frequency = np.interp(times[::STEP], middles, wanted)  # gliding from vowel to vowel
        radius, state = np.exp(-np.pi * (60 + 40 * number) / RATE), np.zeros(2)
        for first, angle in zip(times[::STEP], 2 * np.pi * frequency / RATE, strict=True):
            poles = [1, -2 * radius * np.cos(angle), radius**2]
            part = slice(first, first + STEP)
            sound[part], state = lfilter([sum(poles)], poles, sound[part], zi=state)
    return np.asarray(sound / np.abs(sound).max())


def record(word: str, rng: np.random.Generator) -> Array:
    """A second and a half with the word somewhere in it, louder or softer, and noise."""
    sound, recording = speak(word, rng), rng.normal(0, rng.uniform(0.002, 0.03), 3 * RATE // 2)
    start = rng.integers(len(recording) - len(sound))
    recording[start : start + len(sound)] += rng.uniform(0.2, 0.7) * sound
    return recording.clip(-1, 1).astype(np.float32)


def learn(count: int, seed: int) -> float:
    """Learn all words, one task after the other; the accuracy on as many recordings of other voices."""
    rng = np.random.default_rng(seed)
    classifier = spacenet.SpaceNetClassifier(encoder="speech-embedding", random_state=seed)
    heard: list[str] = []
    test: list[Array] = []
    accuracy = 0.0
    for task in TASKS:
        words = np.repeat(task, count)
        classifier.partial_fit(np.stack([record(word, rng) for word in words]), words)
        heard += words.tolist()
        test += [record(word, rng) for word in words]
        accuracy = 100 * float(np.mean(classifier.predict(np.stack(test)) == heard))
        print(f"{' and '.join(task):<16}{count} recordings of each, {accuracy:.1f} % of {len(test)} others right")
    return accuracy


def main() -> None:
    """Learn with every seed, print the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=20, help="of each word, to learn from")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    reached = [learn(options.recordings, seed) for seed in range(options.seeds)]
    spread = f" ± {np.std(reached, ddof=1):.1f}" if len(reached) > 1 else ""
    print(f"\nAll eight words: {np.mean(reached):.1f}{spread} %, seeds: {len(reached)}")


if __name__ == "__main__":
    try:
        main()
    except SpacenetError as error:
        raise SystemExit(f"sounds: {error}") from None
