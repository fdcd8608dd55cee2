"""Measurements of the package's speed and memory; `python -m benchmarks.speed` from the repository's root."""
