"""Plots. Each is drawn from a value that a function returns, so that its numbers can be checked."""
