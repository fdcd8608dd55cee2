"""Class-incremental learning in a network of fixed size, by adaptive sparse training (SpaceNet)."""

from importlib.metadata import version

__version__ = version("spacenet")
