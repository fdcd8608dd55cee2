"""Measurements: of speed and memory (`python -m benchmarks.speed`), of accuracy (`python -m benchmarks.results`)."""
