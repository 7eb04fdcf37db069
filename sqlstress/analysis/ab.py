"""What the pairs of an A/B test say."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from sqlstress.analysis.durability import build_of, own_options, versions
from sqlstress.analysis.wording import finite, noun, percent, place, plural, rounded, times, what_is_possible
from sqlstress.report import AbTest, Arm, Latency, Look, Report, Run, SqliteBuild, Trial, jsonable
from sqlstress.report.case import Case
from sqlstress.report.study_results import A, B
from sqlstress.statistics.compare import hodges_lehmann, signed_rank_bounds, signed_rank_interval
from sqlstress.statistics.histogram import merge, percentile
from sqlstress.statistics.sequential import (
    ALPHA,
    FAIL,
    FEWEST,
    INCONCLUSIVE,
    MOST,
    PASS,
    UNDECIDED,
    clears,
    conclude,
    fail_share,
    falls,
    geometric_means,
    tolerance,
)
from sqlstress.statistics.sequential import Look as Planned
from sqlstress.statistics.units import format_duration


def figure(trial: Trial, metric: str) -> float | None:
    """Return a trial's TPS, or the 99th percentile of all its operations in nanoseconds; None without one.

    At a rate an operation is timed from when it was due, or a stall would count once, not for all it delayed.
    """
    if metric == "p99":
        found = percentile(merge([dict(one.buckets) for one in _timed(trial)]), 0.99)
    else:
        found = finite(trial.tps)
    # A file may say anything: there is no logarithm of what is not above 0.
    return found if found and found > 0 else None


def _timed(trial: Trial) -> Collection[Latency]:
    """Return the latencies of whole operations: those of a script's statements stand beside its own."""
    if trial.arrived:
        return trial.arrived.latency.values()
    whole = {kind for worker in trial.workers for kind in worker.operations} & trial.latency.keys()
    return [one for kind, one in trial.latency.items() if kind in whole or not whole]


def cells(report: Report) -> list[tuple[Run, Run]]:
    """Return the runs of A and of B for each cell that both have."""
    arms = {name: [run for run in report.runs if run.arm == name] for name in (A, B)}
    return list(zip(arms[A], arms[B], strict=False))


def differences(report: Report, test: AbTest) -> list[list[float]]:
    """Return the differences of each cell, pair by pair: logarithms, below zero where B is worse.

    Only pairs count that every cell has.
    """
    sign = -1 if test.metric == "p99" else 1
    found = [_logarithms(a, b, test.metric) for a, b in cells(report)]
    common = set.intersection(*map(set, found)) if found else set()
    return [[sign * cell[pair] for pair in sorted(common)] for cell in found]


def _logarithms(a: Run, b: Run, metric: str) -> dict[int, float]:
    """Return {pair: the logarithm of B's figure over A's}."""
    own, other = (_figures(run, metric) for run in (a, b))
    return {pair: math.log(other[pair] / own[pair]) for pair in own.keys() & other.keys()}


def _figures(run: Run, metric: str) -> Mapping[int, float]:
    found = {trial.index: figure(trial, metric) for trial in run.valid}
    return {pair: value for pair, value in found.items() if value}


def look(report: Report, test: AbTest, planned: Planned) -> Look:
    """Return what the pairs say at a look: its verdict is fail, pass or undecided."""
    found = differences(report, test)
    verdict = conclude(found, tolerance(test.metric, test.max_drop), planned.alpha)
    return estimate(geometric_means(found), test.metric, planned.alpha, verdict)


def estimate(found: Sequence[float], metric: str, alpha: float, verdict: str = UNDECIDED) -> Look:
    """Return what one or more differences say of the ratio of B's figure to A's."""
    judged, ends = signed_rank_bounds(found, alpha), signed_rank_interval(found)

    def ratio(difference: float) -> float:
        return math.exp(-difference if metric == "p99" else difference)

    low, high = sorted(map(ratio, ends)) if ends else (None, None)
    return Look(
        pairs=len(found),
        alpha=alpha,
        ratio=ratio(hodges_lehmann(found)),
        low=low,
        high=high,
        bound=ratio(judged[1]) if judged else None,
        verdict=verdict,
        worst=ratio(judged[0]) if judged else None,
    )


NAMES = {"tps": "TPS", "p99": "p99"}


def signed(ratio: float) -> str:
    """Write a ratio as a change: "+3.1%", "-24%", "6.3 times"."""
    if ratio >= 2:
        return times(ratio)
    share = rounded(abs(ratio - 1) * 100, 2) if abs(ratio - 1) >= 0.0005 else "0"
    return f"{'' if share == '0' else '+' if ratio > 1 else '-'}{share}%"


# The arms of an A/B test: in what they differ, in words.


def arm_differences(report: Report, test: AbTest, case: Case, other: Case) -> Iterator[str]:
    """Yield in what two arms differ, each with one of its cases: "synchronous: full and normal".

    What only follows from the rest is left out, but for the library: two drivers have one each.
    """
    own, others = _flat(jsonable.to_plain(case)), _flat(jsonable.to_plain(other))
    a, b = test.arms
    builds = _build(report, a, case), _build(report, b, other)
    told = {name: (own.get(name), others.get(name)) for name in dict.fromkeys((*own, *others))} | {
        "Python": (a.version, b.version),
        "sqlstress": (a.tool_version, b.tool_version),
        "SQLite": tuple(versions(builds)),
        "SQLite's options": tuple(own_options(builds)) if all(builds) else (None, None),
    }
    for name, (of, against) in told.items():
        # What a file says is told by its name.
        if not name.endswith("digest") and _value(of) != _value(against):
            yield f"{name}: {_value(of)} and {_value(against)}"


def _build(report: Report, arm: Arm, case: Case) -> SqliteBuild | None:
    """Return the library that an arm was measured with."""
    return build_of(case.driver, arm.builds if arm.python else report.environment.builds)


def _flat(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a case, those of its parts too, without the parts' names."""
    found: dict[str, Any] = {}
    for name, value in plain.items():
        found |= _flat(value) if isinstance(value, dict) else {name: value}
    return found


def _value(value: Any) -> str:
    if value in (None, "", []):
        return "not set"
    return "; ".join(map(_item, value)) if isinstance(value, list) else str(value)


def _item(value: Any) -> str:
    """Return a part of a list; of one that has a name and a weight these."""
    if not isinstance(value, dict) or "name" not in value:
        return str(value)
    weight = value.get("weight", 1)
    return str(value["name"]) if weight == 1 else f"{value['name']}@{weight}"


# What would decide an A/B test that ended inconclusive: more pairs, longer slices, or another question.


NEAR = 1 / 3
"""Of the distance from no change to what is allowed: nearer to it, more pairs show little."""
_SPARE = 1.1
"""How much more time than the pairs took so far."""


def what_would_help(differences: Sequence[float], report: Report, test: AbTest) -> str:
    """Return what would decide it, by the scatter of its own pairs, as one or two sentences."""
    alpha = test.looks[-1].alpha if test.looks and 0 < test.looks[-1].alpha < 0.5 else ALPHA
    ends, allowed = signed_rank_bounds(differences, alpha), tolerance(test.metric, test.max_drop)
    if ends is None:
        return f"Nothing is shown by fewer than {FEWEST} pairs: give it more time (--max-time)."
    half, gap = (ends[1] - ends[0]) / 2, abs(hodges_lehmann(differences) - allowed)
    if_equal = _needed(len(differences), half, abs(allowed))
    if if_equal is None or if_equal > (test.max_pairs or MOST):
        return _too_noisy(differences, if_equal, report, test)
    needed = _needed(len(differences), half, gap)
    if needed is None or gap < abs(allowed) * NEAR:
        return "It is near what is allowed, where no number of pairs decides: ask for another --max-drop."
    if needed > MOST:
        return f"About {plural(needed, 'pair')} would decide it, if it stays so: {_longer(report, needed)}."
    return f"About {plural(needed, 'pair')} would decide it, if it stays so{_options(needed, test)}."


def _needed(pairs: int, half: float, gap: float) -> int | None:
    """Return after how many pairs bounds that are `half` wide on each side are as wide as the gap.

    They narrow with the root of the number. None where no number is enough, or it is none to be written.
    """
    wanted = finite(pairs * (half / gap) ** 2) if gap and 0 < half / gap < 1000 else None
    return None if wanted is None else _round_up(max(wanted, pairs + 1))


def _round_up(number: float) -> int:
    """Return a whole number of two significant digits, as large or larger."""
    step: int = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return math.ceil(number / step) * step


def _too_noisy(differences: Sequence[float], needed: int | None, report: Report, test: AbTest) -> str:
    centre = hodges_lehmann(differences)
    scatter = finite(math.expm1(min(median(abs(one - centre) for one in differences), 700.0)))
    noise = f"half of the pairs lie {percent(scatter or 0.0)} or more from the estimate"
    said = f"The machine is too noisy for this question: {noise}"
    if needed is None:
        return f"{said}. Measure {_longer(report, 10 * len(differences))}."
    enough = f"if B is like A, about {plural(needed, 'pair')} would show it"
    if needed <= MOST:
        return f"{said}; {enough}{_options(needed, test)}, or fewer with {_longer(report, needed)}."
    return f"{said}; {enough}. Measure {_longer(report, needed)}."


def _options(pairs: int, test: AbTest) -> str:
    """Return the options that allow for so many pairs, in brackets; "" where those given do."""
    wanted = [f"--max-pairs {pairs}"] if pairs > (test.max_pairs or 0) else []
    last = test.looks[-1] if test.looks else None
    if last and last.seconds and last.pairs:
        seconds = _SPARE * pairs * last.seconds / last.pairs
        if seconds > (test.max_time_s or 0.0):
            wanted.append(f"--max-time {math.ceil(seconds / 60)}m")
    return f" ({' '.join(wanted)})" if wanted else ""


def _longer(report: Report, needed: int) -> str:
    """Return which slices would need fewer pairs, and where."""
    case = report.runs[0].case
    quiet = "where less else is running"
    if case.ops is not None or not case.duration_s:
        return f"longer slices, or {quiet}"
    times = min(10, max(2, math.ceil(needed / MOST)))
    return f"longer slices (--duration {format_duration(case.duration_s * times)}), or {quiet}"


# The verdict of an A/B test in words: what was found, what is left possible, and what to do next.


Part = tuple[str, list[float]]
"""What is judged: a cell, by the clause that names it, or the mean of all of them; and its differences."""


def conclusion(report: Report, test: AbTest) -> str:
    """Return the verdict, what was found, and what to do next."""
    if test.reason:
        return f"FAIL: {test.reason}. No figure counts before that is explained."
    means = _means(report, test)
    if not means:
        return "Undecided: not one pair was measured."
    found, allowed = found_change(report, test), percent(test.max_drop)
    if test.verdict == FAIL:
        return f"FAIL: {found}. At most {allowed} is allowed: find out why before you take B."
    if test.verdict == PASS:
        return f"PASS{_passed(means, report, test)}. {found}."
    if test.verdict == INCONCLUSIVE:
        change = _change(judged := _judged(means, test), test, _both(judged))
        return (
            f"INCONCLUSIVE: {found}, {allowed} is allowed. {change}. {what_would_help(means, report, test)}"
        )
    return f"Undecided: so far {found}. That is too little to conclude anything from."


def error_rate(test: AbTest) -> float:
    """Return the error rate of the last look, by which the verdict was found."""
    alpha = test.looks[-1].alpha if test.looks else ALPHA
    return alpha if 0 < alpha < 0.5 else ALPHA


def found_change(report: Report, test: AbTest) -> str:
    """Return what was found, as a clause of its own; "" when not one pair was measured."""
    means = _means(report, test)
    if not means:
        return ""
    if test.verdict == FAIL and not test.reason:
        return "; ".join(_changes(report, test))
    found = _judged(means, test)
    if test.verdict == INCONCLUSIVE:
        return what_is_possible(found.worst, found.bound, test.metric)
    if test.verdict == PASS and _is_clear(means, test) and found.worst is not None:
        return _change(found, test, f"at worst {signed(found.worst)}")
    if test.verdict == PASS:
        return _change(found, test, _both(found))
    ends = ""
    if found.low is not None and found.high is not None:
        ends = f"95% interval {signed(found.low)} to {signed(found.high)}"
    return _change(found, test, ends)


def _means(report: Report, test: AbTest) -> list[float]:
    """Return the differences of the mean of all cells; none where not one pair was measured."""
    found = differences(report, test)
    return geometric_means(found) if found else []


def _judged(means: list[float], test: AbTest) -> Look:
    return estimate(means, test.metric, error_rate(test))


def _is_clear(means: list[float], test: AbTest) -> bool:
    return clears(signed_rank_bounds(means, error_rate(test)), tolerance(test.metric, test.max_drop))


def _passed(means: list[float], report: Report, test: AbTest) -> str:
    """Return what a pass rules out. Reports passed by their estimate alone, once: then what they don't."""
    several = len(cells(report))
    mean = f" in the mean of {several} cells" if several > 1 else ""
    if _is_clear(means, test):
        return f": no {noun(test.metric)} of more than {percent(test.max_drop)}{mean}"
    found = _judged(means, test)
    return f", but only by its estimate: {what_is_possible(found.worst, found.bound, test.metric)}{mean}"


def _changes(report: Report, test: AbTest) -> Iterator[str]:
    """Yield what fails: the mean of all cells, or the single cells that do."""
    mean, *single = _parts(report, test)
    failing, share = _failing([mean, *single], test)
    for name, found in [mean] if mean in failing else failing or [mean]:
        change = estimate(found, test.metric, share)
        best = "" if change.bound is None else f"at best {signed(change.bound)}"
        yield f"{name}{_change(change, test, best)}"


def _failing(parts: list[Part], test: AbTest) -> tuple[list[Part], float]:
    """Return what fails of the mean and the cells, and at which error rate."""
    alpha, allowed = error_rate(test), tolerance(test.metric, test.max_drop)
    share = fail_share(max(1, len(parts) - 1), alpha)
    if found := [part for part in parts if falls(signed_rank_bounds(part[1], share), allowed)]:
        return found, share
    # Once, an estimate that was not allowed failed where B was worse at all beyond doubt.
    worse = [part for part in parts if falls(signed_rank_bounds(part[1], alpha), 0.0)]
    return [part for part in worse if hodges_lehmann(part[1]) < allowed], alpha


def _parts(report: Report, test: AbTest) -> list[Part]:
    """Return the mean of all cells, then each of several cells."""
    found = differences(report, test)
    mean: Part = ("", geometric_means(found))
    if len(found) == 1:
        return [mean]
    named = zip(cells(report), found, strict=True)
    return [mean, *((f"at {place(a.case)} ", cell) for (a, _), cell in named)]


def _both(found: Look) -> str:
    if found.worst is None or found.bound is None:
        return ""
    low, high = sorted((found.worst, found.bound))
    return f"{signed(low)} to {signed(high)}"


def _change(found: Look, test: AbTest, ends: str) -> str:
    """Return how B differs from A, with what is possible and the number of pairs."""
    beside = ", ".join(filter(None, (ends, plural(found.pairs, "pair"))))
    return f"B's {NAMES[test.metric]} is {_relation(found.ratio)} ({beside})"


def _relation(ratio: float) -> str:
    if ratio >= 2:
        return f"{times(ratio)} A's"
    if signed(ratio) == "0%":
        return "the same as A's"
    return f"{percent(abs(ratio - 1))} {'higher' if ratio > 1 else 'lower'} than A's"
