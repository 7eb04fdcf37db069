"""In which order cases are measured: in passes over all of them, so that drift meets all alike.

What changes while we measure (heat, a neighbour, the disk's mood) would else be taken for what differs
between the cases: the trials of one case would meet it, and those of another one not. Two trials of the same
pass lie near each other in time, and are a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from sqlstress.experiment import face_of
from sqlstress.report.case import Case


class Turn(NamedTuple):
    """One trial of a sweep."""

    case: int
    """Which case."""
    number: int
    """Which of its trials, from 0: the number of the pass."""


def turns(cases: Sequence[Case]) -> Iterator[Turn]:
    """Yield the trials of a sweep in their order.

    The first pass goes as the cases were asked for, the second one backwards; each further two go in an
    order that is drawn from the seed, and in its reverse. The published script's files serve all of its
    cases, one after the other: they are measured so.
    """
    if any(face_of(case).whole_script for case in cases):
        yield from (Turn(index, trial) for index, case in enumerate(cases) for trial in range(case.repeat))
        return
    draw, order = Random(f"{cases[0].seed}:passes"), list(range(len(cases)))
    for number in range(max(case.repeat for case in cases)):
        if number % 2:
            order.reverse()
        elif number:
            draw.shuffle(order)
        yield from (Turn(index, number) for index in order if number < cases[index].repeat)
