"""What the passes say of some cases: which leads, by how much, and what can't be told."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from sqlstress.analysis.finding import Finding, leaves_open
from sqlstress.analysis.group import EQUAL, ERROR, Group, Tested, noise, of_closed_loops, too_noisy
from sqlstress.analysis.wording import place, places
from sqlstress.experiment import face_of
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.statistics.compare import DIFFERENT, FEWEST, UNCLEAR, Passes, Ratio, verdict
from sqlstress.statistics.compare import EQUAL as ABOUT_EQUAL
from sqlstress.target import target_name, worth

HEADS = 10
"""So many of the highest are looked at: each pair of many hundred cases would take half a minute."""
ENOUGH_PASSES = 5
"""What is advised where there were too few."""


@dataclass(frozen=True)
class Leaders:
    """The run with the highest figure, and those that can't be told from it."""

    best: Run
    runs: tuple[Run, ...]
    """The best one among them."""
    equal: bool
    """Whether they differ by less than EQUAL, beyond doubt."""

    @property
    def unclear(self) -> bool:
        """Whether there are several that can't be told apart."""
        return len(self.runs) > 1 and not self.equal


def leaders(tested: Tested, runs: Sequence[Run]) -> Leaders:
    """Return the highest of one or more runs, with all that none of the highest leads beyond doubt."""
    heads = sorted(runs, key=tested.middle)[-HEADS:]
    near = (run for run in runs if not any(tested.is_less(run, head) for head in heads))
    return _near(tested, heads[-1], near)


def laggards(tested: Tested, runs: Sequence[Run]) -> Leaders:
    """Return the lowest of one or more runs, with all that lead none of the lowest beyond doubt."""
    tails = sorted(runs, key=tested.middle)[:HEADS]
    near = (run for run in runs if not any(tested.is_less(tail, run) for tail in tails))
    return _near(tested, tails[0], near)


def _near(tested: Tested, best: Run, runs: Iterable[Run]) -> Leaders:
    near = tuple(runs)
    return Leaders(best, near, all(tested.are_equal(best, run) for run in near))


def is_told(ratio: Ratio | None) -> bool:
    """Return whether a ratio says more, less or as much, beyond its noise."""
    return verdict(ratio, EQUAL) in (DIFFERENT, ABOUT_EQUAL)


def too_few(case: Case) -> Finding:
    """Return that there were too few trials, and what to do: a run that was stopped had asked for enough."""
    if case.repeat >= ENOUGH_PASSES:
        return Finding("too-few-trials", repeat=case.repeat, enough=None)
    return Finding("too-few-trials", repeat=None, enough=ENOUGH_PASSES)


def doubts(tested: Tested | None, found: Sequence[Finding], case: Case) -> Iterator[Finding]:
    """Yield why something can't be told, and what would help, where something that was found can't.

    `tested` is None where there were too few passes; then what was found are single figures.
    """
    if found and tested is None:
        yield Finding("cannot-tell", too_few=too_few(case), noise=None)
    elif tested and any(map(leaves_open, found)):
        yield Finding("cannot-tell", too_few=None, noise=noise(tested))


# Sides: the targets of a group whose cases differ in the driver only, and which of them leads where.
#
# Only those are set against each other whose commits are worth the same: one that waits for no sync is no
# faster than one that does, it does less.


Place = tuple[int, int]
"""Files and processes."""

TOLD_APART, NO_DIFFERENCE, UNTELLABLE, TOO_FEW_PASSES = "leads", "equal", "can't tell", "too few passes"


@dataclass(frozen=True, slots=True)
class Side:
    """A target, and what was measured of it."""

    name: str
    """The target's; the driver's where that stands for several sides."""
    runs: tuple[Run, ...]
    worth: str
    """What a commit is worth, on the scale that all targets share; "" where it is not known, or differs."""

    @property
    def bare_call_ns(self) -> float | None:
        """What the cheapest call through its binding costs, in nanoseconds; None where nobody measured it."""
        found = [one for run in self.runs for trial in run.valid if (one := trial.bare_call_ns) is not None]
        return median(found) if found else None

    @property
    def driver(self) -> str:
        """What its processes speak through."""
        return self.runs[0].case.driver


@dataclass(frozen=True, slots=True)
class Lead:
    """Which of some sides leads at a place."""

    case: Case
    """One of the cases at that place."""
    names: tuple[str, ...]
    """Of the sides that were set against each other."""
    ahead: tuple[str, ...]
    """Of those that lead, or can't be told from who does."""
    verdict: str
    """TOLD_APART: one leads; EQUAL: those ahead are about equal; UNTELLABLE or TOO_FEW_PASSES."""
    ratio: Ratio | None = None
    """The leader over the next one, where one leads."""
    noise: Finding | None = None
    """Why it can't be told, and what would help."""


def sides_of(group: Group) -> tuple[Side, ...]:
    """Return the targets of a group; none where it has not got several."""
    targets = [target_name(part.case.driver) for part in group.parts] if group.setting == "driver" else []
    if len(set(targets)) < 2:
        return ()
    return tuple(
        Side(target if targets.count(target) == 1 else part.case.driver, part.runs, _worth(part.runs))
        for target, part in zip(targets, group.parts, strict=True)
    )


def _worth(runs: Sequence[Run]) -> str:
    found = {worth(trial.durability) for run in runs for trial in run.valid}
    return found.pop() if len(found) == 1 else ""


def at(case: Case) -> Place:
    """Return where a case stands among those of its side."""
    return case.buckets, case.concurrency


def by_worth(sides: Sequence[Side]) -> list[tuple[Side, ...]]:
    """Return the sides that can be set against each other, together; of which it is not known, each alone."""
    found: dict[str, list[Side]] = {}
    for side in sides:
        found.setdefault(side.worth or f"unknown of {side.name}", []).append(side)
    return [tuple(own) for own in found.values()]


def leads(group: Group) -> list[Lead]:
    """Return who leads at each place that comparable sides have in common.

    Of a load at a rate it is none: what is done a second says only that it kept up.
    """
    if group.case.rate:
        return []
    several = [own for own in by_worth(sides_of(group)) if len(own) > 1]
    return [one for own in several for one in _leads(group, own, ERROR / group.groups / len(several))]


def _leads(group: Group, sides: Sequence[Side], error: float) -> Iterator[Lead]:
    runs = [{at(run.case): run for run in side.runs if group.is_believed(run)} for side in sides]
    common = [layout for layout in sorted(runs[0]) if all(layout in own for own in runs)]
    everyone = [own[layout] for layout in common for own in runs]
    names = tuple(side.name for side in sides)
    tested = Tested(everyone, [run.rates() for run in everyone], error) if everyone else None
    for layout in common:
        case, here = runs[0][layout].case, {name: own[layout] for name, own in zip(names, runs, strict=True)}
        if tested is None or tested.passes < FEWEST:
            yield Lead(case, names, names, TOO_FEW_PASSES)
        else:
            yield _lead(case, here, tested)


def _lead(case: Case, here: dict[str, Run], tested: Tested) -> Lead:
    found, names = leaders(tested, list(here.values())), tuple(here)
    ahead = tuple(name for name, run in here.items() if run in found.runs)
    if len(ahead) == 1:
        others = [run for run in here.values() if run is not found.best]
        return Lead(case, names, ahead, TOLD_APART, tested.ratio(tested.best(others), found.best))
    if found.equal:
        return Lead(case, names, ahead, NO_DIFFERENCE)
    return Lead(case, names, ahead, UNTELLABLE, noise=noise(tested))


def who_leads(group: Group) -> Iterator[Finding]:
    """Yield at which places which target leads, and which can't be compared."""
    sides = sides_of(group)
    classes = by_worth(sides)
    if len(classes) > 1 and not any(side.worth for side in sides):
        yield Finding("not-comparable", unknown=tuple(side.name for side in sides))
    elif len(classes) > 1:
        yield Finding(
            "not-comparable",
            worths=tuple(
                Finding("commit-worth", sides=tuple(side.name for side in own), worth=own[0].worth)
                for own in classes
            ),
            # Where the connections are the user's own there is no such option.
            can_be_set=face_of(group.case).behaviour.sets,
        )
    found = leads(group)
    for names in dict.fromkeys(one.names for one in found):
        yield _said([one for one in found if one.names == names], group)


def _said(found: Sequence[Lead], group: Group) -> Finding:
    """Return who leads among some sides."""
    names = found[0].names
    if all(one.verdict == TOO_FEW_PASSES for one in found):
        return Finding("leads", unclear=names, too_few=too_few(found[0].case))
    together: dict[tuple[str, tuple[str, ...]], list[Lead]] = {}
    for one in found:
        together.setdefault((one.verdict, one.ahead), []).append(one)
    # The first side's worth is that of all of them.
    side = next(one for one in sides_of(group) if one.name == names[0])
    return Finding(
        "leads",
        worth=side.worth,
        places=tuple(_led(own) for own in together.values()),
        noise=next((one.noise for one in found if one.noise), None),
    )


def _led(own: Sequence[Lead]) -> Finding:
    """Return who leads at some places, and by how much: what the intervals of all of them span."""
    first, where = own[0], places(one.case for one in own)
    if first.verdict == NO_DIFFERENCE:
        lead = len(first.ahead) < len(first.names)
        return Finding("sides-equal", sides=first.ahead, lead=lead, where=where)
    if first.verdict != TOLD_APART:
        return Finding("sides-unclear", sides=first.ahead, where=where)
    ratios = [one.ratio for one in own if one.ratio]
    others = [name for name in first.names if name not in first.ahead]
    return Finding(
        "side-leads",
        side=first.ahead[0],
        where=where,
        low=min((one.low for one in ratios), default=None),
        high=max((one.high for one in ratios), default=None),
        other=others[0] if len(others) == 1 else None,
        several=len(others) > 1,
    )


# Answers: which value of the option in which the parts of a group differ does better, and by how much.
#
# Each value is set against the first one, pass by pass. Over several places (processes, files) a pass
# counts
# with the geometric mean of its figures, so that each place weighs the same.


Layout = tuple[int, int]
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
    rates: Mapping[str, Mapping[Layout, Rates]]
    """By value, the first one before the others."""

    @property
    def others(self) -> list[str]:
        """The values that are set against the first one."""
        return [value for value in self.rates if value != self.base]


@of_closed_loops
def answer(group: Group) -> Iterator[Finding]:
    """Yield the answer of a group with parts, and where it is another one.

    Half of the probability of being wrong is the answer's, and half that of the places.
    """
    if sides_of(group):
        return  # targets are compared place by place, and only where a commit is worth the same
    sides = _sides(group)
    if sides is None:
        return
    error = ERROR / group.groups / 2
    passes = Passes({value: _mean(own) for value, own in sides.rates.items()}, error)
    ratios = {value: passes.ratio(sides.base, value) for value in sides.others}
    yield Finding(
        "answer",
        setting=group.setting,
        values=tuple(
            _compared(value, ratio, passes.middle(value) / passes.middle(sides.base), sides.base)
            for value, ratio in ratios.items()
        ),
        unit=group.unit,
        places=places(sides.cases) if len(sides.cases) > 1 else None,
        too_few=too_few(group.case) if None in ratios.values() else None,
        noise=_noise(ratios, passes),
    )
    if apart := [one for value in sides.others if (one := _apart(sides, value, error))]:
        yield Finding("answer-by-place", values=tuple(apart))


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


def _at(case: Case) -> Layout:
    return case.buckets, case.concurrency


def _by_place(part: Group) -> dict[Layout, Rates]:
    """Return the figures of a part that can be believed, pass by pass."""
    found = {_at(run.case): run.rates() for run in part.runs if part.is_believed(run)}
    return {at: rates for at, rates in found.items() if rates}


def _common(own: Mapping[Layout, Rates], at: list[Layout]) -> set[int]:
    """Return the passes that all of these places have."""
    return set.intersection(*(set(own[one]) for one in at))


def _mean(own: Mapping[Layout, Rates]) -> Rates:
    """Return the geometric mean over the places, of each pass that has them all."""
    logs = {number: [math.log(rates[number]) for rates in own.values()] for number in _common(own, [*own])}
    return {number: math.exp(fmean(each)) for number, each in logs.items()}


def _compared(value: str, ratio: Ratio | None, estimate: float, base: str) -> Finding:
    """Return how a value compares with the first one; of too few passes what the figures are."""
    found = verdict(ratio, EQUAL)
    if found == ABOUT_EQUAL:
        return Finding("value-equal", value=value, base=base, ratio=ratio)
    if found == UNCLEAR:
        return Finding("value-unclear", value=value, base=base, ratio=ratio)
    gave = ratio.estimate if ratio else estimate
    return Finding("value-gave", value=value, base=base, times=gave, ratio=ratio)


def _noise(ratios: Mapping[str, Ratio | None], passes: Passes[str]) -> Finding | None:
    """Return what would say more, where something could not be told."""
    told = None in ratios.values() or all(map(is_told, ratios.values()))
    return None if told else too_noisy(passes.count, passes.needed(EQUAL))


def _apart(sides: _Sides, value: str, error: float) -> Finding | None:
    """Return at which places a value does best and worst, if these differ beyond their noise."""
    found = []
    for case in sides.cases:
        both = {each: sides.rates[each][_at(case)] for each in (sides.base, value)}
        share = error / len(sides.cases) / len(sides.others)
        if ratio := Passes(both, share).ratio(sides.base, value):
            found.append((ratio, case))
    if len(found) < 2:
        return None
    (most, where), (least, elsewhere) = max(found, key=_estimate), min(found, key=_estimate)
    if most.low <= least.high:
        return None
    return Finding(
        "value-by-place",
        value=value,
        most=most.estimate,
        where=place(where),
        least=least.estimate,
        elsewhere=place(elsewhere),
    )


def _estimate(found: tuple[Ratio, Case]) -> float:
    return found[0].estimate
