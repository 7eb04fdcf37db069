"""Conclusions from the passes of several cases: the leader, its lead, and unclear comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Protocol, TypeVar

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding, is_unclear
from sqlstress.analysis.group import ERROR, Group, PairwiseTests, closed_loop_only, noise, rate_of, too_noisy
from sqlstress.analysis.sentences import CommitWorth, Noise, SidesAhead, ValueRange, ValueRatio
from sqlstress.analysis.wording import place, places
from sqlstress.experiment import experiment_of
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.statistics.compare import DIFFERENT, MIN_PASSES, NEAR, Passes, Ratio, verdict
from sqlstress.statistics.compare import EQUAL as ABOUT_EQUAL
from sqlstress.statistics.units import plural
from sqlstress.target import durability_level, target_name

MAX_COMPARED_RUNS = 10
"""Number of runs with the highest (or the lowest) figures that are compared with each run.

Comparing every pair of several hundred cases would take half a minute.
"""


class HasRun(Protocol):
    """An object with results of a run."""

    @property
    def run(self) -> Run:
        """The run that gave the results."""


Cell = TypeVar("Cell", bound=HasRun)


@dataclass(frozen=True)
class ExtremeRuns:
    """The run with the highest figure, and the runs that are not significantly worse."""

    best: Run
    runs: tuple[Run, ...]
    """All leading runs, including `best`."""
    equal: bool
    """Whether there are several leading runs, and they differ by significantly less than NEAR."""

    @property
    def unclear(self) -> bool:
        """Whether there are several leading runs that may differ by NEAR or more."""
        return len(self.runs) > 1 and not self.equal

    def among(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return the cells of the leading runs, in the given order."""
        leading = {id(run) for run in self.runs}
        return [cell for cell in cells if id(cell.run) in leading]


def leaders(tested: PairwiseTests, runs: Sequence[Run], families: int = 1) -> ExtremeRuns:
    """Return the run with the highest figure and all runs that are not significantly worse.

    `families` is the number of sets of the tested runs in which the best or the worst run is sought.
    """
    heads = sorted(runs, key=tested.middle)[-MAX_COMPARED_RUNS:]
    near = tuple(
        run
        for run in runs
        if not any(tested.is_behind(run, head, families) for head in heads if head is not run)
    )
    equal = all(tested.is_near(run, head, families) for run in near for head in heads if head is not run)
    return ExtremeRuns(heads[-1], near, len(near) > 1 and equal)


def is_conclusive(ratio: Ratio | None) -> bool:
    """Return whether a ratio is shown to differ from 1, or shown to be about 1."""
    return verdict(ratio, NEAR) in (DIFFERENT, ABOUT_EQUAL)


def more_trials(case: Case) -> str:
    """Return the advice for too few trials. If --repeat was large enough, the run was stopped early."""
    if case.repeat >= MIN_PASSES:
        return f"let all {plural(case.repeat, 'pass')} finish"
    return f"use --repeat {MIN_PASSES} or more"


def inconclusive_findings(
    tested: PairwiseTests | None, found: Sequence[Finding], case: Case
) -> Iterator[Finding]:
    """Yield the reason why findings are unclear, and a remedy, if any of `found` is unclear.

    `tested` is None if there were too few passes. If so, `found` has single figures only.
    """
    if found and tested is None:
        yield Finding(sentences.cannot_tell, advice=more_trials(case))
    elif tested and any(map(is_unclear, found)):
        yield Finding(sentences.cannot_tell, noise=noise(tested))


# Sides: the targets of a group whose cases differ in the driver only, and the leader at each place.
#
# Only sides whose commits have the same durability are compared: a target that waits for no sync is not
# faster than a target that does, it does less.


Layout = tuple[int, int]
"""Numbers of files and of processes."""

TOLD_APART, NO_DIFFERENCE, UNTELLABLE, TOO_FEW_PASSES = "leads", "equal", "cannot tell", "too few passes"
"""Verdicts on the sides at a place."""


@dataclass(frozen=True, slots=True)
class Side:
    """A target and its runs."""

    name: str
    """Name of the target; of the driver if several sides have the same target."""
    runs: tuple[Run, ...]
    worth: str
    """Durability of a commit, on the scale that all targets share; empty if it is unknown or varies."""

    @property
    def bare_call_ns(self) -> float | None:
        """Cost of the cheapest call through the side's binding, in ns; None if it was not measured."""
        costs = [cost for run in self.runs for trial in run.valid if (cost := trial.bare_call_ns) is not None]
        return median(costs) if costs else None

    @property
    def driver(self) -> str:
        """Name of the driver through which the processes use the target."""
        return self.runs[0].case.driver


@dataclass(frozen=True, slots=True)
class Lead:
    """Comparison of sides at a place: the side that leads, if it is known."""

    case: Case
    """One of the cases at that place."""
    names: tuple[str, ...]
    """Names of the compared sides."""
    ahead: tuple[str, ...]
    """Names of the sides that lead or are not significantly worse than the leader."""
    verdict: str
    """TOLD_APART: one side leads; NO_DIFFERENCE: `ahead` are about equal; UNTELLABLE or TOO_FEW_PASSES."""
    ratio: Ratio | None = None
    """Ratio of the leader to the next side; None unless a single side leads."""
    noise: Noise | None = None
    """Reason why the leader is unclear, and a remedy; None for other verdicts."""


def sides_of(group: Group) -> tuple[Side, ...]:
    """Return the targets of a group; empty if it has fewer than two."""
    targets = [target_name(part.case.driver) for part in group.parts] if group.setting == "driver" else []
    if len(set(targets)) < 2:
        return ()
    sides = []
    for target, part in zip(targets, group.parts, strict=True):
        worths = {durability_level(trial.durability) for run in part.runs for trial in run.valid}
        name = target if targets.count(target) == 1 else part.case.driver
        sides.append(Side(name, part.runs, worths.pop() if len(worths) == 1 else ""))
    return tuple(sides)


def at(case: Case) -> Layout:
    """Return a case's numbers of files and of processes, to find the same place on other sides."""
    return case.buckets, case.concurrency


def group_by_durability(sides: Sequence[Side]) -> list[tuple[Side, ...]]:
    """Return the sides in groups of equal durability. A side of unknown durability is alone in its group."""
    by_worth: dict[str, list[Side]] = {}
    for side in sides:
        by_worth.setdefault(side.worth or f"unknown of {side.name}", []).append(side)
    return [tuple(members) for members in by_worth.values()]


def leads(group: Group) -> list[Lead]:
    """Return the lead at each place that comparable sides have in common.

    At a fixed rate there is none: throughput shows only that a side kept up with the rate.
    """
    if group.case.rate:
        return []
    comparable = [sides for sides in group_by_durability(sides_of(group)) if len(sides) > 1]
    return [
        lead for sides in comparable for lead in _leads(group, sides, ERROR / group.groups / len(comparable))
    ]


def _leads(group: Group, sides: Sequence[Side], error: float) -> Iterator[Lead]:
    names = tuple(side.name for side in sides)
    runs = [{at(run.case): run for run in side.runs if group.is_believed(run)} for side in sides]
    common = [
        shared_place for shared_place in sorted(runs[0]) if all(shared_place in by_place for by_place in runs)
    ]
    common_runs = [by_place[shared_place] for shared_place in common for by_place in runs]
    tested = PairwiseTests(common_runs, [run.rates() for run in common_runs], error) if common_runs else None
    for shared_place in common:
        case, place_runs = runs[0][shared_place].case, [by_place[shared_place] for by_place in runs]
        if tested is None or tested.passes < MIN_PASSES:
            yield Lead(case, names, names, TOO_FEW_PASSES)
            continue
        leading = leaders(tested, place_runs)
        ahead = tuple(name for name, run in zip(names, place_runs, strict=True) if run in leading.runs)
        if len(ahead) == 1:
            next_best = tested.best(run for run in place_runs if run is not leading.best)
            yield Lead(case, names, ahead, TOLD_APART, tested.ratio(next_best, leading.best))
        elif leading.equal:
            yield Lead(case, names, ahead, NO_DIFFERENCE)
        else:
            yield Lead(case, names, ahead, UNTELLABLE, noise=noise(tested))


def leader_findings(group: Group) -> Iterator[Finding]:
    """Yield the leading targets with the places where they lead, and the targets that cannot be compared."""
    sides = sides_of(group)
    classes = group_by_durability(sides)
    if len(classes) > 1 and not any(side.worth for side in sides):
        yield Finding(sentences.not_comparable, unknown=tuple(side.name for side in sides))
    elif len(classes) > 1:
        yield Finding(
            sentences.not_comparable,
            worths=tuple(
                CommitWorth(tuple(side.name for side in members), members[0].worth) for members in classes
            ),
            # If the user's program opens the connections, there is no such option.
            can_be_set=experiment_of(group.case).applies_settings,
        )
    by_names: dict[tuple[str, ...], list[Lead]] = {}
    for lead in leads(group):
        by_names.setdefault(lead.names, []).append(lead)
    for names, name_leads in by_names.items():
        if all(lead.verdict == TOO_FEW_PASSES for lead in name_leads):
            yield Finding(sentences.leads, sides=names, advice=more_trials(name_leads[0].case))
            continue
        by_outcome: dict[tuple[str, tuple[str, ...]], list[Lead]] = {}
        for lead in name_leads:
            by_outcome.setdefault((lead.verdict, lead.ahead), []).append(lead)
        yield Finding(
            sentences.leads,
            sides=names,
            # Compared sides have equal durability, so that of the first side is that of all.
            worth=next(side.worth for side in sides if side.name == names[0]),
            places=tuple(map(_sides_ahead, by_outcome.values())),
            noise=next((lead.noise for lead in name_leads if lead.noise), None),
        )


def _sides_ahead(place_leads: Sequence[Lead]) -> SidesAhead:
    """Return the sides that lead at some places, with the bounds of all intervals."""
    first = place_leads[0]
    ratios = [lead.ratio for lead in place_leads if lead.ratio]
    return SidesAhead(
        ahead=first.ahead,
        behind=tuple(name for name in first.names if name not in first.ahead),
        where=places(lead.case for lead in place_leads),
        unclear=first.verdict not in (TOLD_APART, NO_DIFFERENCE),
        low=min((ratio.low for ratio in ratios), default=None),
        high=max((ratio.high for ratio in ratios), default=None),
    )


# Answers: the comparison of the values of the option in which the parts of a group differ.
#
# Each value is compared with the first value, pass by pass. If there are several places (processes, files),
# the figure of a pass is the geometric mean over the places, so that each place has the same weight.


Rates = Mapping[int, float]
"""Transactions per second, by pass."""


@closed_loop_only
def answer(group: Group) -> Iterator[Finding]:
    """Yield the comparison of the values in a group with parts, and places where the ratio differs.

    Half of the error probability is for the overall comparison, and half for the places.
    """
    if sides_of(group):
        return  # targets are compared place by place, and only if their commits have equal durability
    rates = {group.value(part.case): _by_place(part) for part in group.parts}
    rates = {value: by_place for value, by_place in rates.items() if by_place}
    common = [
        place
        for place in next(iter(rates.values()), {})
        if all(place in by_place for by_place in rates.values())
    ]
    rates = {value: {place: by_place[place] for place in common} for value, by_place in rates.items()}
    if len(rates) < 2 or not common or not all(map(_common_passes, rates.values())):
        return
    base, *others = rates
    first_part = next(part for part in group.parts if group.value(part.case) == base)
    cases = {at(run.case): run.case for run in first_part.runs}
    error = ERROR / group.groups / 2
    passes = Passes({value: _mean(by_place) for value, by_place in rates.items()}, error, len(others))
    ratios = {value: passes.ratio(base, value) for value in others}
    is_clear = None in ratios.values() or all(map(is_conclusive, ratios.values()))
    yield Finding(
        sentences.answer,
        setting=group.setting,
        values=tuple(
            _value_ratio(value, ratio, passes.middle(value) / passes.middle(base), base)
            for value, ratio in ratios.items()
        ),
        unit=group.unit,
        places=places(cases[place] for place in common) if len(common) > 1 else None,
        advice=more_trials(group.case) if None in ratios.values() else None,
        noise=None if is_clear else too_noisy(passes.count, passes.passes_needed(NEAR)),
    )
    ranges = []
    for value in others:
        share = error / len(common) / len(others)
        by_case = [(_ratio(rates[base][place], rates[value][place], share), cases[place]) for place in common]
        if value_range := _value_range(value, [(ratio, case) for ratio, case in by_case if ratio]):
            ranges.append(value_range)
    if ranges:
        yield Finding(sentences.answer_by_place, values=tuple(ranges))


def _by_place(part: Group) -> dict[Layout, Rates]:
    """Return the comparable figures of a part, by place and pass."""
    by_place = {at(run.case): run.rates() for run in part.runs if part.is_believed(run) and rate_of(run)}
    return {place: rates for place, rates in by_place.items() if rates}


def _common_passes(by_place: Mapping[Layout, Rates]) -> set[int]:
    """Return the numbers of the passes that all places have."""
    return set.intersection(*(set(rates) for rates in by_place.values()))


def _mean(by_place: Mapping[Layout, Rates]) -> Rates:
    """Return the geometric mean over the places, for each pass that all places have."""
    return {
        number: math.exp(fmean(math.log(rates[number]) for rates in by_place.values()))
        for number in _common_passes(by_place)
    }


def _ratio(base: Rates, other: Rates, error: float) -> Ratio | None:
    return Passes({"base": base, "other": other}, error).ratio("base", "other")


def _value_ratio(value: str, ratio: Ratio | None, estimate: float, base: str) -> ValueRatio:
    """Return the comparison of a value with the first value. `estimate` is used if `ratio` is None."""
    times = ratio.estimate if ratio else estimate
    return ValueRatio(value, base, times, ratio, verdict(ratio, NEAR))


def _value_range(value: str, ratios: Sequence[tuple[Ratio, Case]]) -> ValueRange | None:
    """Return the places where a value does best and worst; None if they do not differ significantly."""
    if len(ratios) < 2:
        return None
    (least, elsewhere), (most, where) = (end(ratios, key=lambda pair: pair[0].estimate) for end in (min, max))
    if most.low <= least.high:
        return None
    return ValueRange(
        value=value,
        most=most.estimate,
        where=place(where),
        least=least.estimate,
        elsewhere=place(elsewhere),
    )
