"""Conclusions: what a comparison means, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlstress.analysis.comparison.compared import Compared
from sqlstress.analysis.comparison.estimates import (
    DIFFERENT,
    EQUAL,
    OPEN,
    TOO_FEW,
    Estimate,
    estimate,
)
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.wording import listing, rounded, times, whole
from sqlstress.experiment import face_of
from sqlstress.statistics.unpaired import needed


def conclude(compared: Compared) -> Iterator[Finding]:
    """Yield how the others compare with the first, and how the shapes compare."""
    for place in range(1, len(compared.table.parts)):
        if rows := _common(compared, place):
            yield _against_first(compared, place, rows)
    for row, shapes in compared.grown():
        yield _shapes(compared, row, shapes)


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
        return Finding("ratio", " ".join(_claims(compared, place, rows)))
    if compared.anyway:
        shown = f"{letter} shows {_ratios(compared, place, rows)}"
    else:
        shown = f"At {compared.table.row_name(rows[-1])} {_rates(compared, place, rows[-1])}"
    return Finding("not-comparable", f"{shown}, but {listing(reasons)}: that is no measure of speed.")


def _claims(compared: Compared, place: int, rows: Sequence[int]) -> Iterator[str]:
    """Yield a sentence for each thing that can be said of these rows, the firmest first."""
    found = {row: one for row in rows if (one := compared.estimate(row, place))}
    by_verdict = {
        verdict: [row for row, one in found.items() if one.verdict == verdict]
        for verdict in (DIFFERENT, EQUAL, OPEN, TOO_FEW)
    }
    a, b = (compared.table.parts[one].letter for one in (0, place))
    if own := by_verdict[DIFFERENT]:
        yield f"{b} reached {_ratios(compared, place, own)}{_ends(own, found)}."
    if own := by_verdict[EQUAL]:
        yield f"{b} and {a} are about equal {_where(compared, own)}{_ends(own, found)}."
    if own := by_verdict[OPEN]:
        where = f"{_where(compared, own)}{_ends(own, found)}"
        yield f"{b} can't be told from {a} {where}: measure longer, or more trials."
    if own := by_verdict[TOO_FEW]:
        yield (
            f"{b} showed {_ratios(compared, place, own)}, but that may be chance: measure both with "
            f"--repeat {needed(compared.alpha / 2)}."
        )


def _ends(rows: Sequence[int], found: Mapping[int, Estimate]) -> str:
    """Return the interval of one row, or the widest of several; they hold together."""
    ends = [(one.low, one.high) for one in map(found.__getitem__, rows) if one.low and one.high]
    if not ends:
        return ""
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    what = "95% interval" if len(ends) == 1 else "95% intervals from"
    return f" ({what} {rounded(low, 2)} to {times(high)})"


def _where(compared: Compared, rows: Sequence[int]) -> str:
    if not compared.table.sweeps and len(rows) > 1:
        return f"in {whole(len(rows))} cases"
    return listing([f"at {compared.table.row_name(row)}" for row in rows])


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


def _shapes(compared: Compared, row: int, shapes: Mapping[int, float]) -> Finding:
    """Return how the totals of a layout grew, and which grew otherwise than the first one's."""
    letters = {place: compared.table.parts[place].letter for place in shapes}
    told = listing([f"{times(shape)} in {letters[place]}" for place, shape in shapes.items()])
    first, *others = shapes
    verdicts: dict[str, list[str]] = {}
    for place in others:
        own = estimate(compared.shapes(row, first), compared.shapes(row, place), 1 - compared.alpha)
        verdicts.setdefault(own.verdict if own else TOO_FEW, []).append(letters[place])
    alike = [_ALIKE[verdict].format(b=listing(own), a=letters[first]) for verdict, own in verdicts.items()]
    text = f"From 1 process to {compared.table.row_name(row)} the total went to {told}"
    return Finding("shape", f"{text}: {'; '.join(alike)}.")


_ALIKE = {
    DIFFERENT: "{b} grew otherwise than {a}",
    EQUAL: "{b} grew about as {a} did",
    OPEN: "the trials differ too much to tell whether {b} grew otherwise than {a}",
    TOO_FEW: "too few trials to tell whether {b} grew otherwise than {a}",
}
