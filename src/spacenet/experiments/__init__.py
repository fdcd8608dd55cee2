"""Experiments: presets with the paper's settings, runs, seeds."""
