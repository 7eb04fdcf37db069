"""Conclusions: what a comparison means, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.comparison.compared import Compared
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.wording import listing, rounded, times, whole
from sqlstress.experiment import face_of

FLAT = 1.25
"""Totals that differ by no more than this factor are called the same."""


def conclude(compared: Compared) -> Iterator[Finding]:
    """Yield how the others compare with the first, and how the shapes compare."""
    for place in range(1, len(compared.table.parts)):
        if rows := _common(compared, place):
            yield _against_first(compared, place, rows)
    yield from _shapes(compared)


def _common(compared: Compared, place: int) -> list[int]:
    """Return the rows that say how a part compares with the first: of each layout the most processes.

    In the other experiments every row stands for itself.
    """
    found: dict[object, int] = {}
    for row, key in enumerate(compared.table.keys):
        if compared.rate(row, 0) and compared.rate(row, place):
            found[key[:-1] if compared.table.sweeps else key] = row
    return list(found.values())


def _against_first(compared: Compared, place: int, rows: Sequence[int]) -> Finding:
    letter, reasons = compared.table.parts[place].letter, compared.reasons(place)
    if not reasons:
        return Finding("ratio", f"{letter} reached {_ratios(compared, place, rows)}.")
    if compared.anyway:
        shown = f"{letter} shows {_ratios(compared, place, rows)}"
    else:
        shown = f"At {compared.table.row_name(rows[-1])} {_rates(compared, place, rows[-1])}"
    return Finding("not-comparable", f"{shown}, but {listing(reasons)}: that is no measure of speed.")


def _ratios(compared: Compared, place: int, rows: Sequence[int]) -> str:
    """Return "0.84 times A's pairs a second at 8 processes on 1 file", for so many rows."""
    whose = f"{compared.table.parts[0].letter}'s {_unit(compared, 0)}"
    ratios = [compared.ratio(row, place) or 0.0 for row in rows]
    if not compared.table.sweeps and len(rows) > 1:
        return f"{rounded(min(ratios), 2)} to {times(max(ratios))} {whose}, over {whole(len(rows))} cases"
    names = [f"at {compared.table.row_name(row)}" for row in rows]
    first, *others = zip(map(times, ratios), names, strict=True)
    return listing([f"{first[0]} {whose} {first[1]}", *map(" ".join, others)])


def _rates(compared: Compared, place: int, row: int) -> str:
    """Return "A shows 7,450 and B 1,140 pairs a second"."""
    parts = compared.table.parts
    base, rate = (rounded(compared.rate(row, one) or 0) for one in (0, place))
    unit = _unit(compared, place)
    own = f" {_unit(compared, 0)}" if _unit(compared, 0) != unit else ""
    return f"{parts[0].letter} shows {base}{own} and {parts[place].letter} {rate} {unit}"


def _unit(compared: Compared, place: int) -> str:
    return f"{face_of(compared.table.parts[place].case).rate_counts} a second"


def _shapes(compared: Compared) -> Iterator[Finding]:
    """Yield how the totals of each layout grew, up to the most processes that two parts or more have."""
    found: dict[object, tuple[int, dict[str, float]]] = {}
    for row, (*layout, processes) in enumerate(compared.table.keys):
        shapes = {
            part.letter: shape
            for place, part in enumerate(compared.table.parts)
            if (shape := compared.shape(row, place))
        }
        if len(shapes) > 1 and processes != 1:
            found[tuple(layout)] = row, shapes
    for row, shapes in found.values():
        told = listing([f"{times(shape)} in {letter}" for letter, shape in shapes.items()])
        text = f"From 1 process to {compared.table.row_name(row)} the total went to {told}"
        yield Finding("shape", f"{text}: {_alike(list(shapes.values()))}.")


def _alike(shapes: Sequence[float]) -> str:
    if all(1 / FLAT <= shape <= FLAT for shape in shapes):
        return "more processes change next to nothing in any of them"
    return "the same shape" if max(shapes) <= FLAT * min(shapes) else "the shapes differ"
