"""What machines do to the throughput of slices: models of noise, from a quiet machine to a hopeless one.

Each model gives, slice by slice in the order of time, the logarithm of what the machine takes or gives; it
knows nothing of A and B.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

Slices = Iterator[float]


@dataclass(frozen=True, slots=True)
class Noise:
    """A model."""

    name: str
    what: str
    """In words, with its size."""
    slices: Callable[[Random], Slices]


def white(draw: Random, deviation: float) -> Slices:
    """Yield slices that know nothing of each other."""
    while True:
        yield draw.gauss(0.0, deviation)


def _heavy(draw: Random) -> Slices:
    """Yield Student's t with two degrees of freedom, which has no variance."""
    while True:
        yield 0.05 * draw.gauss(0.0, 1.0) / math.sqrt(draw.expovariate(1.0))


def _stalls(draw: Random) -> Slices:
    for calm in white(draw, 0.03):
        yield calm - (draw.uniform(0.3, 1.2) if draw.random() < 0.1 else 0.0)


def _drift(draw: Random) -> Slices:
    for number, calm in enumerate(white(draw, 0.05)):
        yield calm - 0.01 * number


def _autocorrelated(draw: Random) -> Slices:
    """Yield an autoregressive process: what is slow now is likely to be slow a slice later."""
    slow = draw.gauss(0.0, 0.15)
    for calm in white(draw, 0.03):
        yield slow + calm
        slow = 0.6 * slow + draw.gauss(0.0, 0.15 * math.sqrt(1 - 0.6**2))


def _periodic(draw: Random) -> Slices:
    """Yield a neighbour that comes around every four slices."""
    phase = draw.random()
    for number, calm in zip(count(), white(draw, 0.05), strict=False):
        yield calm + 0.1 * math.sin(2 * math.pi * (number / 4 + phase))


NOISES = (
    Noise("quiet", "slices vary by 2 %", lambda draw: white(draw, 0.02)),
    Noise("typical", "slices vary by 7 %", lambda draw: white(draw, 0.07)),
    Noise("noisy", "slices vary by 20 %", lambda draw: white(draw, 0.2)),
    Noise("hopeless", "slices vary by 70 %", lambda draw: white(draw, 0.7)),
    Noise("heavy tails", "Student's t, 2 degrees of freedom, times 5 %", _heavy),
    Noise("stalls", "every tenth slice loses a quarter to two thirds, others vary by 3 %", _stalls),
    Noise("drift", "1 % slower with every slice, which vary by 5 %", _drift),
    Noise("autocorrelated", "15 %, 0.6 of it still there a slice later, and 3 %", _autocorrelated),
    Noise("periodic", "a wave of 10 % every four slices, which vary by 5 %", _periodic),
)
"""From which all results come."""
