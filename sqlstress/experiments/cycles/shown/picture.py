"""A picture of series in characters: a line for each, a column for one cycle or a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

from sqlstress.display.figures import ms_cell

WIDTH = 80
LEVELS = "▁▂▃▄▅▆▇█"
LEAST_RANGE = 10.0
"""The lowest level is a tenth of the highest, or less: small differences look small."""
MARK = "^"


@dataclass(frozen=True, slots=True)
class Line:
    """One series."""

    name: str
    values: tuple[int, ...]
    """One a cycle, in ns; one or more."""
    marked: frozenset[int] = frozenset()
    """Cycles, counted from 1, in which a checkpoint was seen."""


def picture(lines: Sequence[Line]) -> Iterator[str]:
    """Yield each series as a line with its range in ms, its marks below it, and what all of it means."""
    ranges = [f"{ms_cell(min(line.values))}-{ms_cell(max(line.values))}" for line in lines]
    names = max(len(line.name) for line in lines)
    room = WIDTH - names - max(map(len, ranges)) - 4
    longest = max(len(line.values) for line in lines)
    each = -(-longest // room)
    for line, shown in zip(lines, ranges, strict=True):
        drawn = bars([max(part) for part in _parts(line.values, each)])
        yield f"{line.name:<{names}}  {drawn:<{-(-longest // each)}}  {shown}"
        if line.marked:
            yield f"{'':<{names}}  {_marks(line, each)}"
    yield ""
    yield from _explained(each, any(line.marked for line in lines))


def bars(values: Sequence[int]) -> str:
    """Return a character for each value: its height on a logarithmic scale of the series' own."""
    most = max(1, *values)
    least = min([value for value in values if value > 0] + [most / LEAST_RANGE])
    steps = [log(max(value, least) / least) / log(most / least) for value in values]
    return "".join(LEVELS[min(len(LEVELS) - 1, int(step * len(LEVELS)))] for step in steps)


def _parts(values: Sequence[int], each: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(values), each):
        yield values[start : start + each]


def _marks(line: Line, each: int) -> str:
    columns = {(cycle - 1) // each for cycle in line.marked}
    return "".join(MARK if column in columns else " " for column in range(-(-len(line.values) // each)))


def _explained(each: int, marked: bool) -> Iterator[str]:
    column = "a cycle" if each == 1 else f"the slowest of {each:,} cycles"
    yield f"A column: {column}, in ms; a logarithmic scale for each line."
    if marked:
        yield f"{MARK}: a checkpoint was seen."
