"""What the passes say of some cases: which leads, by how much, and what can't be told."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Protocol, TypeVar

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding, leaves_open
from sqlstress.analysis.group import ERROR, Group, Tested, noise, of_closed_loops, too_noisy
from sqlstress.analysis.sentences import CommitWorth, Noise, SidesAhead, ValueRange, ValueRatio
from sqlstress.analysis.wording import place, places
from sqlstress.experiment import experiment_of
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.statistics.compare import DIFFERENT, FEWEST, NEAR, Passes, Ratio, verdict
from sqlstress.statistics.compare import EQUAL as ABOUT_EQUAL
from sqlstress.statistics.units import plural
from sqlstress.target import commit_class, target_name

HEADS = 10
"""So many of the highest are looked at: each pair of many hundred cases would take half a minute."""


class OfRun(Protocol):
    """What was measured in a run."""

    @property
    def run(self) -> Run:
        """The run."""


Cell = TypeVar("Cell", bound=OfRun)


@dataclass(frozen=True)
class Leaders:
    """The run with the highest figure, and those that can't be told from it."""

    best: Run
    runs: tuple[Run, ...]
    """The best one among them."""
    equal: bool
    """Whether there are several, and they differ by less than NEAR, beyond doubt."""

    @property
    def unclear(self) -> bool:
        """Whether there are several that can't be told apart."""
        return len(self.runs) > 1 and not self.equal

    def among(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return those cells that are of the leading runs, in their order."""
        leading = {id(run) for run in self.runs}
        return [cell for cell in cells if id(cell.run) in leading]


def leaders(tested: Tested, runs: Sequence[Run], families: int = 1) -> Leaders:
    """Return the highest of one or more runs, with all that may be the best.

    `families`: in how many sets of the tested runs the best, or the last, are looked for.
    """
    heads = sorted(runs, key=tested.middle)[-HEADS:]
    near = tuple(
        run
        for run in runs
        if not any(tested.is_behind(run, head, families) for head in heads if head is not run)
    )
    equal = all(tested.is_near(run, head, families) for run in near for head in heads if head is not run)
    return Leaders(heads[-1], near, len(near) > 1 and equal)


def laggards(tested: Tested, runs: Sequence[Run], families: int = 1) -> Leaders:
    """Return the lowest of one or more runs, with all that may be the last."""
    tails = sorted(runs, key=tested.middle)[:HEADS]
    near = tuple(
        run
        for run in runs
        if not any(tested.is_behind(tail, run, families) for tail in tails if tail is not run)
    )
    equal = all(tested.is_near(tail, run, families) for run in near for tail in tails if tail is not run)
    return Leaders(tails[0], near, len(near) > 1 and equal)


def is_conclusive(ratio: Ratio | None) -> bool:
    """Return whether a ratio says more, less or as much, beyond its noise."""
    return verdict(ratio, NEAR) in (DIFFERENT, ABOUT_EQUAL)


def more_trials(case: Case) -> str:
    """Return the advice for too few trials. A run that was stopped had asked for enough."""
    if case.repeat >= FEWEST:
        return f"let all {plural(case.repeat, 'pass')} finish"
    return f"use --repeat {FEWEST} or more"


def doubts(tested: Tested | None, found: Sequence[Finding], case: Case) -> Iterator[Finding]:
    """Yield why something can't be told, and what would help, where something that was found can't.

    `tested` is None where there were too few passes; then what was found are single figures.
    """
    if found and tested is None:
        yield Finding(sentences.cannot_tell, advice=more_trials(case))
    elif tested and any(map(leaves_open, found)):
        yield Finding(sentences.cannot_tell, noise=noise(tested))


# Sides: the targets of a group whose cases differ in the driver only, and which of them leads where.
#
# Only those are set against each other whose commits are worth the same: one that waits for no sync is no
# faster than one that does, it does less.


Place = tuple[int, int]
"""Files and processes."""

TOLD_APART, NO_DIFFERENCE, UNTELLABLE, TOO_FEW_PASSES = "leads", "equal", "cannot tell", "too few passes"


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
    """TOLD_APART: one leads; NEAR: those ahead are about equal; UNTELLABLE or TOO_FEW_PASSES."""
    ratio: Ratio | None = None
    """The leader over the next one, where one leads."""
    noise: Noise | None = None
    """Why it can't be told, and what would help."""


def sides_of(group: Group) -> tuple[Side, ...]:
    """Return the targets of a group; none where it has not got several."""
    targets = [target_name(part.case.driver) for part in group.parts] if group.setting == "driver" else []
    if len(set(targets)) < 2:
        return ()
    sides = []
    for target, part in zip(targets, group.parts, strict=True):
        worths = {commit_class(trial.durability) for run in part.runs for trial in run.valid}
        name = target if targets.count(target) == 1 else part.case.driver
        sides.append(Side(name, part.runs, worths.pop() if len(worths) == 1 else ""))
    return tuple(sides)


def at(case: Case) -> Place:
    """Return where a case stands among those of its side."""
    return case.buckets, case.concurrency


def by_commit_class(sides: Sequence[Side]) -> list[tuple[Side, ...]]:
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
    several = [sides for sides in by_commit_class(sides_of(group)) if len(sides) > 1]
    return [lead for sides in several for lead in _leads(group, sides, ERROR / group.groups / len(several))]


def _leads(group: Group, sides: Sequence[Side], error: float) -> Iterator[Lead]:
    names = tuple(side.name for side in sides)
    runs = [{at(run.case): run for run in side.runs if group.is_believed(run)} for side in sides]
    common = [place for place in sorted(runs[0]) if all(place in own for own in runs)]
    everyone = [own[place] for place in common for own in runs]
    tested = Tested(everyone, [run.rates() for run in everyone], error) if everyone else None
    for layout in common:
        case, here = runs[0][layout].case, [own[layout] for own in runs]
        if tested is None or tested.passes < FEWEST:
            yield Lead(case, names, names, TOO_FEW_PASSES)
            continue
        found = leaders(tested, here)
        ahead = tuple(name for name, run in zip(names, here, strict=True) if run in found.runs)
        if len(ahead) == 1:
            next_best = tested.best(run for run in here if run is not found.best)
            yield Lead(case, names, ahead, TOLD_APART, tested.ratio(next_best, found.best))
        elif found.equal:
            yield Lead(case, names, ahead, NO_DIFFERENCE)
        else:
            yield Lead(case, names, ahead, UNTELLABLE, noise=noise(tested))


def who_leads(group: Group) -> Iterator[Finding]:
    """Yield at which places which target leads, and which can't be compared."""
    sides = sides_of(group)
    classes = by_commit_class(sides)
    if len(classes) > 1 and not any(side.worth for side in sides):
        yield Finding(sentences.not_comparable, unknown=tuple(side.name for side in sides))
    elif len(classes) > 1:
        yield Finding(
            sentences.not_comparable,
            worths=tuple(CommitWorth(tuple(side.name for side in own), own[0].worth) for own in classes),
            # Where the connections are the user's own there is no such option.
            can_be_set=experiment_of(group.case).applies_settings,
        )
    of_names: dict[tuple[str, ...], list[Lead]] = {}
    for lead in leads(group):
        of_names.setdefault(lead.names, []).append(lead)
    for names, found in of_names.items():
        if all(lead.verdict == TOO_FEW_PASSES for lead in found):
            yield Finding(sentences.leads, sides=names, advice=more_trials(found[0].case))
            continue
        together: dict[tuple[str, tuple[str, ...]], list[Lead]] = {}
        for lead in found:
            together.setdefault((lead.verdict, lead.ahead), []).append(lead)
        yield Finding(
            sentences.leads,
            sides=names,
            # The first side's is that of all of them.
            worth=next(side.worth for side in sides if side.name == names[0]),
            places=tuple(map(_sides_ahead, together.values())),
            noise=next((lead.noise for lead in found if lead.noise), None),
        )


def _sides_ahead(found: Sequence[Lead]) -> SidesAhead:
    """Return the sides that lead at some places, with the bounds of all intervals."""
    first = found[0]
    ratios = [lead.ratio for lead in found if lead.ratio]
    return SidesAhead(
        ahead=first.ahead,
        behind=tuple(name for name in first.names if name not in first.ahead),
        where=places(lead.case for lead in found),
        unclear=first.verdict not in (TOLD_APART, NO_DIFFERENCE),
        low=min((ratio.low for ratio in ratios), default=None),
        high=max((ratio.high for ratio in ratios), default=None),
    )


# Answers: which value of the option in which the parts of a group differ does better, and by how much.
#
# Each value is set against the first one, pass by pass. Over several places (processes, files) a pass counts
# with the geometric mean of its figures, so that each place weighs the same.


Rates = Mapping[int, float]
"""Transactions a second by pass."""


@of_closed_loops
def answer(group: Group) -> Iterator[Finding]:
    """Yield the answer of a group with parts, and where it is another one.

    Half of the probability of being wrong is the answer's, and half that of the places.
    """
    if sides_of(group):
        return  # targets are compared place by place, and only where a commit is worth the same
    rates = {group.value(part.case): _by_place(part) for part in group.parts}
    rates = {value: own for value, own in rates.items() if own}
    common = [
        place for place in next(iter(rates.values()), {}) if all(place in own for own in rates.values())
    ]
    rates = {value: {place: own[place] for place in common} for value, own in rates.items()}
    if len(rates) < 2 or not common or not all(map(_passes_of, rates.values())):
        return
    base, *others = rates
    first = next(part for part in group.parts if group.value(part.case) == base)
    cases = {at(run.case): run.case for run in first.runs}
    error = ERROR / group.groups / 2
    passes = Passes({value: _mean(own) for value, own in rates.items()}, error, len(others))
    ratios = {value: passes.ratio(base, value) for value in others}
    clear = None in ratios.values() or all(map(is_conclusive, ratios.values()))
    yield Finding(
        sentences.answer,
        setting=group.setting,
        values=tuple(
            _compared(value, ratio, passes.middle(value) / passes.middle(base), base)
            for value, ratio in ratios.items()
        ),
        unit=group.unit,
        places=places(cases[place] for place in common) if len(common) > 1 else None,
        advice=more_trials(group.case) if None in ratios.values() else None,
        noise=None if clear else too_noisy(passes.count, passes.needed(NEAR)),
    )
    apart = []
    for value in others:
        share = error / len(common) / len(others)
        by_case = [(_over(rates[base][place], rates[value][place], share), cases[place]) for place in common]
        if found := _by_case(value, [(ratio, case) for ratio, case in by_case if ratio]):
            apart.append(found)
    if apart:
        yield Finding(sentences.answer_by_place, values=tuple(apart))


def _by_place(part: Group) -> dict[Place, Rates]:
    """Return the figures of a part that can be believed, pass by pass."""
    found = {at(run.case): run.rates() for run in part.runs if part.is_believed(run)}
    return {place: rates for place, rates in found.items() if rates}


def _passes_of(own: Mapping[Place, Rates]) -> set[int]:
    """Return the passes that all places have."""
    return set.intersection(*(set(rates) for rates in own.values()))


def _mean(own: Mapping[Place, Rates]) -> Rates:
    """Return the geometric mean over the places, of each pass that has them all."""
    return {
        number: math.exp(fmean(math.log(rates[number]) for rates in own.values()))
        for number in _passes_of(own)
    }


def _over(base: Rates, other: Rates, error: float) -> Ratio | None:
    return Passes({"base": base, "other": other}, error).ratio("base", "other")


def _compared(value: str, ratio: Ratio | None, estimate: float, base: str) -> ValueRatio:
    """Return the comparison of a value with the first value; `estimate` is the ratio of too few passes."""
    times = ratio.estimate if ratio else estimate
    return ValueRatio(value, base, times, ratio, verdict(ratio, NEAR))


def _by_case(value: str, found: Sequence[tuple[Ratio, Case]]) -> ValueRange | None:
    """Return the places where a value does best and worst, if these differ beyond their noise."""
    if len(found) < 2:
        return None
    (least, elsewhere), (most, where) = (end(found, key=lambda pair: pair[0].estimate) for end in (min, max))
    if most.low <= least.high:
        return None
    return ValueRange(
        value=value,
        most=most.estimate,
        where=place(where),
        least=least.estimate,
        elsewhere=place(elsewhere),
    )
