"""Comparison of runs (all trials of a case): which target, such as SQLite, or option value is best.

A pass is one trial of each case, so drift (heat, other programs) affects all cases of a pass equally. The
size of a case is its numbers of files and processes. A group is the runs in one table of the report.
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
"""Number of best runs with which each run is compared. To compare all pairs would take too long."""


@dataclass(frozen=True)
class LeadingRuns:
    """Best run (all trials of a case), and the runs that are not significantly worse."""

    best: Run
    runs: tuple[Run, ...]
    """All leading runs, including `best`."""
    equal: bool
    """Whether several runs lead, and their differences are significantly below 10% (NEAR)."""

    @property
    def unclear(self) -> bool:
        """Whether several runs lead, and noise hides which run is best."""
        return len(self.runs) > 1 and not self.equal


def leaders(tested: PairwiseTests, runs: Sequence[Run], divide_error_by: int = 1) -> LeadingRuns:
    """Return the best run, and all runs that are not significantly worse.

    `tested` compares `runs`, and perhaps other runs, in pairs. If several calls share the error probability
    of `tested`, `divide_error_by` is the number of these calls.
    """
    heads = sorted(runs, key=tested.middle)[-MAX_COMPARED_RUNS:]
    near = tuple(
        run
        for run in runs
        if not any(tested.is_behind(run, head, divide_error_by) for head in heads if head is not run)
    )
    equal = all(
        tested.is_near(run, head, divide_error_by) for run in near for head in heads if head is not run
    )
    return LeadingRuns(heads[-1], near, len(near) > 1 and equal)


def is_conclusive(ratio: Ratio | None) -> bool:
    """Return whether a ratio significantly differs from 1, or is significantly within 10% (NEAR) of 1."""
    return verdict(ratio, NEAR) in (DIFFERENT, ABOUT_EQUAL)


def more_trials(case: Case) -> str:
    """Return advice after too few trials: "use --repeat 3 or more" or "let all 5 passes finish"."""
    if case.repeat >= MIN_PASSES:
        return f"let all {plural(case.repeat, 'pass')} finish"
    return f"use --repeat {MIN_PASSES} or more"


def inconclusive_findings(
    tested: PairwiseTests | None, found: Sequence[Finding], case: Case
) -> Iterator[Finding]:
    """Yield advice on the number of trials if noise hides the answer of any finding in `found`.

    `tested` has the tests behind `found`; None if there were too few trials for a test.
    """
    if found and tested is None:
        yield Finding(sentences.cannot_tell, advice=more_trials(case))
    elif tested and any(map(is_unclear, found)):
        yield Finding(sentences.cannot_tell, noise=noise(tested))


# Comparison of targets, such as SQLite and PostgreSQL: the fastest target for each size of case. A side is a
# target with its runs. The durability of a commit is what it waits for, such as a sync of the disk.
#
# Only targets with equally durable commits are compared, because a commit that waits for no sync does less
# work.


Size = tuple[int, int]
"""Number of files and number of processes of a case."""

ONE_LEADS, LEADERS_EQUAL, LEADER_UNCLEAR, TOO_FEW_PASSES = "leads", "equal", "cannot tell", "too few passes"
"""Verdicts of a comparison of targets, such as SQLite and PostgreSQL, as tables show them."""


@dataclass(frozen=True, slots=True)
class Side:
    """Target (such as SQLite) to compare with other targets, and its runs."""

    name: str
    """Name of the target, such as SQLite; name of the driver if drivers of one target are compared."""
    runs: tuple[Run, ...]
    durability: str
    """Durability of a commit as text; empty if unknown or different between trials."""

    @property
    def bare_call_ns(self) -> float | None:
        """Median time of the driver's cheapest call, in ns; None if not measured."""
        costs = [cost for run in self.runs for trial in run.valid if (cost := trial.bare_call_ns) is not None]
        return median(costs) if costs else None

    @property
    def driver(self) -> str:
        """Name of the driver (Python module) with which the target is used."""
        return self.runs[0].case.driver


@dataclass(frozen=True, slots=True)
class Lead:
    """Comparison of targets (such as SQLite) at one size of case: numbers of files and processes."""

    case: Case
    """Case of the first compared target."""
    names: tuple[str, ...]
    ahead: tuple[str, ...]
    """Names of the targets that lead, or are not significantly worse than the leader."""
    verdict: str
    """ONE_LEADS, LEADERS_EQUAL (all targets in `ahead`), LEADER_UNCLEAR or TOO_FEW_PASSES."""
    ratio: Ratio | None = None
    """Throughput of the leader divided by that of the second target; None unless ONE_LEADS."""
    noise: Noise | None = None
    """Reason and remedy for the verdict LEADER_UNCLEAR; else None."""


def sides_of(group: Group) -> tuple[Side, ...]:
    """Return the targets (such as SQLite) compared in a group, which is one table; () for fewer than 2."""
    targets = [target_name(part.case.driver) for part in group.parts] if group.setting == "driver" else []
    if len(set(targets)) < 2:
        return ()
    sides = []
    for target, part in zip(targets, group.parts, strict=True):
        worths = {durability_level(trial.durability) for run in part.runs for trial in run.valid}
        name = target if targets.count(target) == 1 else part.case.driver
        sides.append(Side(name, part.runs, worths.pop() if len(worths) == 1 else ""))
    return tuple(sides)


def size_of(case: Case) -> Size:
    """Return the numbers of files and processes of a case."""
    return case.buckets, case.concurrency


def group_by_durability(sides: Sequence[Side]) -> list[tuple[Side, ...]]:
    """Return targets in groups of equal durability. A target of unknown durability is a group by itself."""
    by_worth: dict[str, list[Side]] = {}
    for side in sides:
        by_worth.setdefault(side.durability or f"unknown of {side.name}", []).append(side)
    return [tuple(members) for members in by_worth.values()]


def leads(group: Group) -> list[Lead]:
    """Return comparisons of equally durable targets by (files, processes); [] at a fixed rate."""
    if group.case.rate:
        return []
    comparable = [sides for sides in group_by_durability(sides_of(group)) if len(sides) > 1]
    return [
        lead for sides in comparable for lead in _leads(group, sides, ERROR / group.groups / len(comparable))
    ]


def _leads(group: Group, sides: Sequence[Side], error: float) -> Iterator[Lead]:
    """Yield a comparison of the targets in `sides` for each number of files and processes that all have.

    `error` is the maximum probability that any of the comparisons is wrong.
    """
    names = tuple(side.name for side in sides)
    runs = [{size_of(run.case): run for run in side.runs if group.is_comparable(run)} for side in sides]
    common = [size for size in sorted(runs[0]) if all(size in by_size for by_size in runs)]
    common_runs = [by_size[size] for size in common for by_size in runs]
    tested = PairwiseTests(common_runs, [run.rates() for run in common_runs], error) if common_runs else None
    for size in common:
        case, size_runs = runs[0][size].case, [by_size[size] for by_size in runs]
        if tested is None or tested.passes < MIN_PASSES:
            yield Lead(case, names, names, TOO_FEW_PASSES)
            continue
        leading = leaders(tested, size_runs)
        ahead = tuple(name for name, run in zip(names, size_runs, strict=True) if run in leading.runs)
        if len(ahead) == 1:
            next_best = tested.best(run for run in size_runs if run is not leading.best)
            yield Lead(case, names, ahead, ONE_LEADS, tested.ratio(next_best, leading.best))
        elif leading.equal:
            yield Lead(case, names, ahead, LEADERS_EQUAL)
        else:
            yield Lead(case, names, ahead, LEADER_UNCLEAR, noise=noise(tested))


def leader_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on the fastest targets (such as SQLite), and on differences in durability."""
    sides = sides_of(group)
    classes = group_by_durability(sides)
    if len(classes) > 1 and not any(side.durability for side in sides):
        yield Finding(sentences.not_comparable, unknown=tuple(side.name for side in sides))
    elif len(classes) > 1:
        yield Finding(
            sentences.not_comparable,
            worths=tuple(
                CommitWorth(tuple(side.name for side in members), members[0].durability)
                for members in classes
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
            # Compared targets have equal durability, so that of the first target is shown.
            worth=next(side.durability for side in sides if side.name == names[0]),
            places=tuple(map(_sides_ahead, by_outcome.values())),
            noise=next((lead.noise for lead in name_leads if lead.noise), None),
        )


def _sides_ahead(size_leads: Sequence[Lead]) -> SidesAhead:
    """Return the facts of "SQLite leads with 4 and 8 processes" from the comparisons at these sizes."""
    first = size_leads[0]
    ratios = [lead.ratio for lead in size_leads if lead.ratio]
    return SidesAhead(
        ahead=first.ahead,
        behind=tuple(name for name in first.names if name not in first.ahead),
        where=places(lead.case for lead in size_leads),
        unclear=first.verdict not in (ONE_LEADS, LEADERS_EQUAL),
        low=min((ratio.low for ratio in ratios), default=None),
        high=max((ratio.high for ratio in ratios), default=None),
    )


# Comparison of the values of an option. Each part of a group has the runs with one value.
#
# Each value is compared with the first value, pass by pass. In a pass, the rate with a value is the geometric
# mean of the rates at all sizes (numbers of files and processes), so that each size has an equal weight.


Rates = Mapping[int, float]
"""Transactions per second, by number of the pass (one trial of each case)."""


def answer(group: Group) -> Iterator[Finding]:
    """Yield findings that compare an option's values with its first value: on average, and by case.

    Yield nothing for a single value, or at a fixed rate. Targets are not compared here, but by `leads`. Runs
    that only serve as a reference, such as runs of an empty command, are left out.
    """
    if group.case.rate or sides_of(group):
        return  # `leads` compares targets, but only targets with equally durable commits
    compared = [part for part in group.parts if not experiment_of(part.case).is_reference(part.case)]
    rates = {group.value(part.case): _rates_by_size(part) for part in compared}
    rates = {value: by_size for value, by_size in rates.items() if by_size}
    common = [
        size for size in next(iter(rates.values()), {}) if all(size in by_size for by_size in rates.values())
    ]
    rates = {value: {size: by_size[size] for size in common} for value, by_size in rates.items()}
    if len(rates) < 2 or not common or not all(map(_common_passes, rates.values())):
        return
    base, *others = rates
    first_part = next(part for part in group.parts if group.value(part.case) == base)
    cases = {size_of(run.case): run.case for run in first_part.runs}
    error = ERROR / group.groups / 2
    passes = Passes({value: _mean_rates(by_size) for value, by_size in rates.items()}, error, len(others))
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
        places=places(cases[size] for size in common) if len(common) > 1 else None,
        advice=more_trials(group.case) if None in ratios.values() else None,
        noise=None if is_clear else too_noisy(passes.count, passes.passes_needed(NEAR)),
    )
    ranges = []
    for value in others:
        share = error / len(common) / len(others)
        by_case = [(_ratio(rates[base][size], rates[value][size], share), cases[size]) for size in common]
        if value_range := _value_range(value, [(ratio, case) for ratio, case in by_case if ratio]):
            ranges.append(value_range)
    if ranges:
        yield Finding(sentences.answer_by_place, values=tuple(ranges))


def _rates_by_size(part: Group) -> dict[Size, Rates]:
    """Return TPS by size (files, processes) and number of the pass; invalid runs are left out."""
    by_size = {
        size_of(run.case): run.rates() for run in part.runs if part.is_comparable(run) and rate_of(run)
    }
    return {size: rates for size, rates in by_size.items() if rates}


def _common_passes(by_size: Mapping[Size, Rates]) -> set[int]:
    return set.intersection(*(set(rates) for rates in by_size.values()))


def _mean_rates(by_size: Mapping[Size, Rates]) -> Rates:
    """Return TPS by number of the pass: the geometric mean over all sizes (files, processes)."""
    return {
        number: math.exp(fmean(math.log(rates[number]) for rates in by_size.values()))
        for number in _common_passes(by_size)
    }


def _ratio(base: Rates, other: Rates, error: float) -> Ratio | None:
    return Passes({"base": base, "other": other}, error).ratio("base", "other")


def _value_ratio(value: str, ratio: Ratio | None, estimate: float, base: str) -> ValueRatio:
    """Return the comparison of an option's `value` with the option's first value, `base`.

    `ratio` has an interval. For too few trials, `ratio` is None, and `estimate` is the ratio of the means.
    """
    times = ratio.estimate if ratio else estimate
    return ValueRatio(value, base, times, ratio, verdict(ratio, NEAR))


def _value_range(value: str, ratios: Sequence[tuple[Ratio, Case]]) -> ValueRange | None:
    """Return the cases in which an option's value helps most and least; None if noise hides a difference.

    `ratios` has pairs (throughput with the value / throughput with the option's first value, case).
    """
    if len(ratios) < 2:
        return None
    (least, elsewhere), (most, where) = (end(ratios, key=lambda pair: pair[0].estimate) for end in (min, max))
    if most.low <= least.high:
        return None
    return ValueRange(
        value=value, most=most.estimate, where=place(where), least=least.estimate, elsewhere=place(elsewhere)
    )
