"""Comparison of several cases: the best case, the best target, and the best value of an option.

A run is all trials of a case. A pass is one trial of each case in turn, so drift (heat, other programs)
affects all cases of a pass equally. A group is the runs of a table; it may be split into parts, each with the
runs of one value of an option. A place is a number of files and a number of processes. NEAR is a small share:
runs are about equal if they differ by significantly less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding, is_unclear
from sqlstress.analysis.group import ERROR, Group, PairwiseTests, noise, rate_of, too_noisy
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
"""Number of the best runs with which each run is compared. All pairs of many runs take too long."""


@dataclass(frozen=True)
class ExtremeRuns:
    """Run with the highest figure, and the runs that are not significantly worse."""

    best: Run
    runs: tuple[Run, ...]
    """Leading runs, with `best`."""
    equal: bool
    """Whether there are several leading runs that all differ by significantly less than the share NEAR."""

    @property
    def unclear(self) -> bool:
        """Whether there are several leading runs, and some of them may differ by the share NEAR or more."""
        return len(self.runs) > 1 and not self.equal


def leaders(tested: PairwiseTests, runs: Sequence[Run], families: int = 1) -> ExtremeRuns:
    """Return the run with the highest figure and all runs that are not significantly worse.

    The error probability is divided among `families`, the number of calls for different sets of runs.
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
    """Return whether the verdict on a ratio is clear: different from 1, or about equal to 1."""
    return verdict(ratio, NEAR) in (DIFFERENT, ABOUT_EQUAL)


def more_trials(case: Case) -> str:
    """Return the advice for a case with too few trials: use a larger --repeat, or let all passes finish."""
    if case.repeat >= MIN_PASSES:
        return f"let all {plural(case.repeat, 'pass')} finish"
    return f"use --repeat {MIN_PASSES} or more"


def inconclusive_findings(
    tested: PairwiseTests | None, found: Sequence[Finding], case: Case
) -> Iterator[Finding]:
    """Yield the reason and the remedy if any finding of `found` is unclear.

    `tested` is None if there were too few passes for a test.
    """
    if found and tested is None:
        yield Finding(sentences.cannot_tell, advice=more_trials(case))
    elif tested and any(map(is_unclear, found)):
        yield Finding(sentences.cannot_tell, noise=noise(tested))


# Sides: the targets (SQLite, PostgreSQL) of a group whose cases differ in the driver only. A place is a
# number of files and a number of processes. At each place, the side with the highest throughput is sought.
#
# Only sides whose commits have the same durability are compared. A target whose commits wait for no sync does
# less work than a target whose commits wait for a sync. So a higher rate does not make it the faster target.


Layout = tuple[int, int]
"""Place of a case: its number of files and its number of processes."""

TOLD_APART, NO_DIFFERENCE, UNTELLABLE, TOO_FEW_PASSES = "leads", "equal", "cannot tell", "too few passes"
"""Verdicts on the sides at a place, as tables show them: one side leads; the leading sides are about equal;
noise hides the leader; there are too few passes."""


@dataclass(frozen=True, slots=True)
class Side:
    """Target that is compared with other targets, and its runs."""

    name: str
    """Name of the target, or of the side's driver if several sides have the same target."""
    runs: tuple[Run, ...]
    worth: str
    """Durability of a commit, on a scale for all targets; empty if unknown or different between trials."""

    @property
    def bare_call_ns(self) -> float | None:
        """Median time of the cheapest call through the side's driver, in ns; None if not measured."""
        costs = [cost for run in self.runs for trial in run.valid if (cost := trial.bare_call_ns) is not None]
        return median(costs) if costs else None

    @property
    def driver(self) -> str:
        """Name of the driver through which the processes use the target."""
        return self.runs[0].case.driver


@dataclass(frozen=True, slots=True)
class Lead:
    """Comparison of the sides at a place."""

    case: Case
    """Case of the first side at the place."""
    names: tuple[str, ...]
    """Names of the compared sides."""
    ahead: tuple[str, ...]
    """Names of the sides that lead or are not significantly worse than the leader."""
    verdict: str
    """TOLD_APART, NO_DIFFERENCE (the sides `ahead` are about equal), UNTELLABLE or TOO_FEW_PASSES."""
    ratio: Ratio | None = None
    """Throughput of a single leader divided by that of the second-best side; else None."""
    noise: Noise | None = None
    """Reason and remedy if the verdict is UNTELLABLE; else None."""


def sides_of(group: Group) -> tuple[Side, ...]:
    """Return the targets of a group, each with its runs; empty if the group has fewer than two targets."""
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
    """Return the place of a case: its number of files and its number of processes."""
    return case.buckets, case.concurrency


def group_by_durability(sides: Sequence[Side]) -> list[tuple[Side, ...]]:
    """Return the sides in tuples of equal durability. A side of unknown durability is alone."""
    by_worth: dict[str, list[Side]] = {}
    for side in sides:
        by_worth.setdefault(side.worth or f"unknown of {side.name}", []).append(side)
    return [tuple(members) for members in by_worth.values()]


def leads(group: Group) -> list[Lead]:
    """Return the comparisons of sides with equal durability, one for each place; empty at a fixed rate."""
    if group.case.rate:
        return []
    comparable = [sides for sides in group_by_durability(sides_of(group)) if len(sides) > 1]
    return [
        lead for sides in comparable for lead in _leads(group, sides, ERROR / group.groups / len(comparable))
    ]


def _leads(group: Group, sides: Sequence[Side], error: float) -> Iterator[Lead]:
    """Yield the comparison of the sides at each place that they share. All share the probability `error`."""
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
    """Yield the findings on targets that lead, and on targets whose durability bars a comparison."""
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
            # If the user's program opens the connections, no option sets the durability.
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
            # Compared sides have equal durability, so the durability of the first side is that of all.
            worth=next(side.worth for side in sides if side.name == names[0]),
            places=tuple(map(_sides_ahead, by_outcome.values())),
            noise=next((lead.noise for lead in name_leads if lead.noise), None),
        )


def _sides_ahead(place_leads: Sequence[Lead]) -> SidesAhead:
    """Return a fact on the leading sides of `place_leads`, which have equal verdicts at several places."""
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


# Answers: the comparison of the values of an option. The parts of a group differ in this option only.
#
# Each value is compared with the first value, pass by pass. A place is a number of files and a number of
# processes. The figure of a pass is the geometric mean of the rates at all places. So each place has the same
# weight.


Rates = Mapping[int, float]
"""Transactions per second of one case or value, by the number of the pass."""


def answer(group: Group) -> Iterator[Finding]:
    """Yield the comparison of an option's values, then the places where each value does best and worst.

    Nothing for a group without parts, at a fixed rate, or if the parts are targets (see `leads`). The two
    findings share the error probability.
    """
    if group.case.rate or sides_of(group):
        return  # `leads` compares targets place by place, and only if their commits have equal durability
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
    """Return the TPS of the comparable runs of `part` (one value of an option), by place and pass."""
    by_place = {at(run.case): run.rates() for run in part.runs if part.is_believed(run) and rate_of(run)}
    return {place: rates for place, rates in by_place.items() if rates}


def _common_passes(by_place: Mapping[Layout, Rates]) -> set[int]:
    """Return the numbers of the passes that all places share."""
    return set.intersection(*(set(rates) for rates in by_place.values()))


def _mean(by_place: Mapping[Layout, Rates]) -> Rates:
    """Return the geometric mean of the rates at all places, for each pass that they share."""
    return {
        number: math.exp(fmean(math.log(rates[number]) for rates in by_place.values()))
        for number in _common_passes(by_place)
    }


def _ratio(base: Rates, other: Rates, error: float) -> Ratio | None:
    """Return the ratio of `other` to `base` with an interval; None if they share too few passes."""
    return Passes({"base": base, "other": other}, error).ratio("base", "other")


def _value_ratio(value: str, ratio: Ratio | None, estimate: float, base: str) -> ValueRatio:
    """Return the comparison of a value of an option with its first value, `base`.

    `estimate` is the ratio that is used if `ratio` is None.
    """
    times = ratio.estimate if ratio else estimate
    return ValueRatio(value, base, times, ratio, verdict(ratio, NEAR))


def _value_range(value: str, ratios: Sequence[tuple[Ratio, Case]]) -> ValueRange | None:
    """Return the places where an option's value does best and worst; None if they do not differ clearly.

    `ratios` has, for each place, the ratio of the value to the option's first value, and a case.
    """
    if len(ratios) < 2:
        return None
    (least, elsewhere), (most, where) = (end(ratios, key=lambda pair: pair[0].estimate) for end in (min, max))
    if most.low <= least.high:
        return None
    return ValueRange(
        value=value, most=most.estimate, where=place(where), least=least.estimate, elsewhere=place(elsewhere)
    )
