"""Answers: which value of the option in which the parts of a group differ does better, and by how much.

Each value is set against the first one, pass by pass. Over several places (processes, files) a pass counts
with the geometric mean of its figures, so that each place weighs the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from sqlstress.analysis.comparing import TOO_FEW
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, ERROR, Group, too_noisy
from sqlstress.analysis.sides import sides_of
from sqlstress.analysis.wording import between, listing, place, places, times
from sqlstress.report.case import Case
from sqlstress.statistics.ratios import Passes, Ratio

Place = tuple[int, int]
"""Files and processes."""
Rates = Mapping[int, float]
"""Transactions a second by pass."""


@dataclass(frozen=True, slots=True)
class _Sides:
    """The values that were measured, and what they reached at the places that all of them have."""

    base: str
    """The first value, against which the others are set."""
    cases: tuple[Case, ...]
    """The places, as cases of the first value."""
    rates: Mapping[str, Mapping[Place, Rates]]
    """By value, the first one before the others."""

    @property
    def others(self) -> list[str]:
        """The values that are set against the first one."""
        return [value for value in self.rates if value != self.base]


def answer(group: Group) -> Iterator[Finding]:
    """Yield the answer of a group with parts in a sentence, and where it is another one.

    Half of the probability of being wrong is the sentence's, and half that of the places.
    """
    if sides_of(group):
        return  # targets are compared place by place, and only where a commit is worth the same
    sides = _sides(group)
    # At a rate what is done says only that it kept up.
    if sides is None or group.case.arrivals:
        return
    error = ERROR / group.groups / 2
    passes = Passes({value: _mean(own) for value, own in sides.rates.items()}, error)
    ratios = {value: passes.ratio(sides.base, value) for value in sides.others}
    told = [
        _clause(value, ratio, passes.middle(value) / passes.middle(sides.base), sides.base)
        for value, ratio in ratios.items()
    ]
    mean = f", as the mean over {places(sides.cases)}" if len(sides.cases) > 1 else ""
    measured = f"Measured in {group.unit} a second{mean}."
    yield Finding("answer", f"{group.setting} {'; '.join(told)}. {measured}{_noise(ratios, passes)}")
    if apart := [text for value in sides.others if (text := _apart(sides, value, error))]:
        yield Finding("answer-by-place", f"{'; '.join(apart)}.")


def _sides(group: Group) -> _Sides | None:
    """Return what can be set side by side; None where it is fewer than two values."""
    found = {group.value(part.case): _by_place(part) for part in group.parts}
    rates = {value: own for value, own in found.items() if own}
    if len(rates) < 2:
        return None
    base, *others = rates
    common = [at for at in rates[base] if all(at in rates[value] for value in others)]
    if not common or not all(_common(own, common) for own in rates.values()):
        return None
    first = next(part for part in group.parts if group.value(part.case) == base)
    cases = {_at(run.case): run.case for run in first.runs}
    kept = {value: {at: own[at] for at in common} for value, own in rates.items()}
    return _Sides(base, tuple(cases[at] for at in common), kept)


def _at(case: Case) -> Place:
    return case.buckets, case.concurrency


def _by_place(part: Group) -> dict[Place, Rates]:
    """Return the figures of a part that can be believed, pass by pass."""
    found = {_at(run.case): run.rates() for run in part.runs if part.is_believed(run)}
    return {at: rates for at, rates in found.items() if rates}


def _common(own: Mapping[Place, Rates], at: list[Place]) -> set[int]:
    """Return the passes that all of these places have."""
    return set.intersection(*(set(own[one]) for one in at))


def _mean(own: Mapping[Place, Rates]) -> Rates:
    """Return the geometric mean over the places, of each pass that has them all."""
    logs = {number: [math.log(rates[number]) for rates in own.values()] for number in _common(own, [*own])}
    return {number: math.exp(fmean(each)) for number, each in logs.items()}


def _clause(value: str, ratio: Ratio | None, estimate: float, base: str) -> str:
    """Return "normal: 15 times full (13 to 17)"."""
    if ratio is None:
        return f"{value}: {times(estimate)} {base}"
    if ratio.is_within(EQUAL):
        return f"{value}: about equal to {base} ({between(ratio)} times)"
    if ratio.is_above or ratio.is_below:
        return f"{value}: {times(ratio.estimate)} {base} ({between(ratio)})"
    return f"{value}: can't be told from {base} ({between(ratio)} times)"


def _noise(ratios: Mapping[str, Ratio | None], passes: Passes[str]) -> str:
    """Return what would say more, where something could not be told."""
    if None in ratios.values():
        return f" {TOO_FEW}"
    known = [ratio for ratio in ratios.values() if ratio]
    if all(ratio.is_within(EQUAL) or ratio.is_above or ratio.is_below for ratio in known):
        return ""
    return f" {too_noisy(passes.count, passes.needed(EQUAL))}."


def _apart(sides: _Sides, value: str, error: float) -> str:
    """Return at which places a value does best and worst, if these differ beyond their noise."""
    found = []
    for case in sides.cases:
        both = {each: sides.rates[each][_at(case)] for each in (sides.base, value)}
        share = error / len(sides.cases) / len(sides.others)
        if ratio := Passes(both, share).ratio(sides.base, value):
            found.append((ratio, case))
    if len(found) < 2:
        return ""
    (most, where), (least, elsewhere) = max(found, key=_estimate), min(found, key=_estimate)
    if most.low <= least.high:
        return ""
    told = [
        f"{times(ratio.estimate)} at {place(case)}" for ratio, case in ((most, where), (least, elsewhere))
    ]
    return f"{value} reached {listing(told, 'but')}"


def _estimate(found: tuple[Ratio, Case]) -> float:
    return found[0].estimate
