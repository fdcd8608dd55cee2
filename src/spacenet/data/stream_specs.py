"""What the streams that are known by name are made of."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StreamSpec:
    """What a stream is made from: a data set, and how many classes a task has unless the configuration says."""

    dataset: str
    classes_per_task: int


SPLIT_DIGITS = StreamSpec("digits", 2)
SPLIT_MNIST = StreamSpec("mnist", 2)
SPLIT_FASHION_MNIST = StreamSpec("fashion-mnist", 2)
SPLIT_CIFAR_10 = StreamSpec("cifar-10", 2)
ICIFAR_100 = StreamSpec("cifar-100", 20)
CIFAR_10_100 = StreamSpec("cifar-10-100", 10)
"""All of CIFAR-10 first, then the classes 0 to 49 of CIFAR-100 in tasks of ten."""
