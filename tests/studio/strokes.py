"""Drawings of digits and shapes as strokes: lists of points in a square of side 1, varied by a seed."""

import math

import numpy as np

Stroke = list[tuple[float, float]]


def _arc(x: float, y: float, rx: float, ry: float, start: float, end: float) -> Stroke:
    """A part of an ellipse; angles in turns, from the right, clockwise."""
    turns = np.linspace(start, end, 12)
    return [(x + rx * math.cos(2 * math.pi * t), y + ry * math.sin(2 * math.pi * t)) for t in turns]


SHAPES: dict[str, list[Stroke]] = {
    "0": [_arc(0.5, 0.5, 0.22, 0.33, -0.25, 0.78)],
    "1": [[(0.38, 0.3), (0.52, 0.17), (0.52, 0.83)]],
    "2": [[*_arc(0.5, 0.34, 0.2, 0.17, -0.45, 0.12), (0.32, 0.8), (0.72, 0.8)]],
    "3": [[*_arc(0.47, 0.34, 0.19, 0.16, -0.42, 0.25), *_arc(0.47, 0.66, 0.22, 0.17, -0.25, 0.42)]],
    "4": [[(0.44, 0.18), (0.28, 0.57), (0.74, 0.57)], [(0.6, 0.36), (0.6, 0.84)]],
    "star": [[(0.5, 0.15), (0.7, 0.8), (0.18, 0.4), (0.82, 0.4), (0.3, 0.8), (0.5, 0.15)]],
    "grid": [
        *([(0.2, y), (0.8, y)] for y in (0.2, 0.5, 0.8)),
        *([(x, 0.2), (x, 0.8)] for x in (0.2, 0.5, 0.8)),
    ],
}


def strokes(name: str, seed: int) -> list[Stroke]:
    """One way to draw a shape: somewhat turned, slanted, larger and unsteady."""
    rng = np.random.default_rng([seed, len(name), ord(name[0])])
    angle, (wide, high) = rng.uniform(-0.14, 0.14), np.exp(rng.uniform(-0.15, 0.15, 2))
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    matrix = turn @ np.array([[wide, rng.uniform(-0.15, 0.15)], [0.0, high]])
    made = []
    for stroke in SHAPES[name]:
        points = (np.array(stroke) - 0.5) @ matrix.T + 0.5 + rng.normal(0, 0.012, (len(stroke), 2))
        made.append([(float(x), float(y)) for x, y in points.clip(0.06, 0.94)])
    return made
