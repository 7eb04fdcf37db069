"""What the pairs of an A/B test say."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from sqlstress.analysis.durability import build_of, own_options, versions
from sqlstress.analysis.wording import finite, noun, percent, place, plural, rounded, times, what_is_possible
from sqlstress.report import AbTest, Latency, Look, Report, Run, Trial, jsonable
from sqlstress.report.case import Case
from sqlstress.report.study_results import A, B
from sqlstress.statistics.compare import hodges_lehmann, signed_rank_bounds
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
        found = percentile(merge([dict(latency.buckets) for latency in _timed(trial)]), 0.99)
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
    arms = ([run for run in report.runs if run.arm == name] for name in (A, B))
    return list(zip(*arms, strict=False))


def differences(report: Report, test: AbTest) -> list[list[float]]:
    """Return the differences of each cell, pair by pair: logarithms, below zero where B is worse.

    Only pairs count that every cell has.
    """
    sign, found = -1 if test.metric == "p99" else 1, []
    for runs in cells(report):
        a, b = ({trial.index: figure(trial, test.metric) for trial in run.valid} for run in runs)
        found.append(
            {pair: math.log(after / before) for pair in a if (before := a[pair]) and (after := b.get(pair))}
        )
    common = set.intersection(*map(set, found)) if found else set()
    return [[sign * cell[pair] for pair in sorted(common)] for cell in found]


def look(report: Report, test: AbTest, planned: Planned) -> Look:
    """Return what the pairs say at a look: its verdict is fail, pass or undecided."""
    found = differences(report, test)
    verdict = conclude(found, tolerance(test.metric, test.max_drop), planned.alpha)
    return estimate(geometric_means(found), test.metric, planned.alpha, verdict)


def estimate(found: Sequence[float], metric: str, alpha: float, verdict: str = UNDECIDED) -> Look:
    """Return what one or more differences say of the ratio of B's figure to A's."""
    judged, ends = signed_rank_bounds(found, alpha), signed_rank_bounds(found, 0.025)

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
    # The library that each arm was measured with.
    builds = tuple(
        build_of(each.driver, arm.builds if arm.python else report.environment.builds)
        for arm, each in ((a, case), (b, other))
    )
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


# The verdict of an A/B test in words: what was found, what is left possible, and what to do next.


class Pairs:
    """What the pairs of a test say, by the error rate of its last look, by which the verdict was found."""

    def __init__(self, report: Report, test: AbTest) -> None:
        self.report, self.test = report, test
        self.cells = differences(report, test)
        self.means = geometric_means(self.cells) if self.cells else []
        """The differences of the mean of all cells; none where not one pair was measured."""
        alpha = test.looks[-1].alpha if test.looks else ALPHA
        self.alpha = alpha if 0 < alpha < 0.5 else ALPHA
        self.allowed = tolerance(test.metric, test.max_drop)

    def judged(self) -> Look:
        """Return what they say together."""
        return estimate(self.means, self.test.metric, self.alpha)

    def possible(self) -> str:
        """Return what they leave possible."""
        found = self.judged()
        return what_is_possible(found.worst, found.bound, self.test.metric)

    def is_clear(self) -> bool:
        """Say whether they rule out what is not allowed. Reports passed by their estimate alone, once."""
        return clears(signed_rank_bounds(self.means, self.alpha), self.allowed)

    def failing(self) -> Iterator[str]:
        """Yield what fails: the mean of all cells, or the single cells that do."""
        parts = [("", self.means)]
        if len(self.cells) > 1:
            named = zip(cells(self.report), self.cells, strict=True)
            parts += [(f"at {place(a.case)} ", cell) for (a, _), cell in named]
        share = fail_share(max(1, len(parts) - 1), self.alpha)
        found = [part for part in parts if falls(signed_rank_bounds(part[1], share), self.allowed)]
        if not found:
            # Once, an estimate that was not allowed failed where B was worse at all beyond doubt.
            share = self.alpha
            worse = [part for part in parts if falls(signed_rank_bounds(part[1], share), 0.0)]
            found = [part for part in worse if hodges_lehmann(part[1]) < self.allowed]
        for name, own in [parts[0]] if parts[0] in found else found or [parts[0]]:
            change = estimate(own, self.test.metric, share)
            best = "" if change.bound is None else f"at best {signed(change.bound)}"
            yield f"{name}{_change(change, self.test, best)}"


def conclusion(report: Report, test: AbTest) -> str:
    """Return the verdict, what was found, and what to do next."""
    if test.reason:
        return f"FAIL: {test.reason}. Find out why before you use any figure."
    pairs = Pairs(report, test)
    if not pairs.means:
        return "Undecided: no pair was measured."
    found, allowed = found_change(report, test), percent(test.max_drop)
    if test.verdict == FAIL:
        return f"FAIL: {found}. At most {allowed} is allowed: find out why before you use B."
    if test.verdict == PASS:
        mean = f" in the mean of {len(pairs.cells)} cells" if len(pairs.cells) > 1 else ""
        if pairs.is_clear():
            return f"PASS: no {noun(test.metric)} of more than {allowed}{mean}. {found}."
        return f"PASS, but only by its estimate: {pairs.possible()}{mean}. {found}."
    if test.verdict == INCONCLUSIVE:
        change = _change(judged := pairs.judged(), test, _ends(judged.worst, judged.bound))
        return f"INCONCLUSIVE: {found}, {allowed} is allowed. {change}. {_what_would_help(pairs)}"
    return f"Undecided: so far {found}. That is too little for a conclusion."


def found_change(report: Report, test: AbTest) -> str:
    """Return what was found, as a clause of its own; "" when not one pair was measured."""
    pairs = Pairs(report, test)
    if not pairs.means:
        return ""
    if test.verdict == FAIL and not test.reason:
        return "; ".join(pairs.failing())
    found = pairs.judged()
    if test.verdict == INCONCLUSIVE:
        return pairs.possible()
    if test.verdict == PASS and pairs.is_clear() and found.worst is not None:
        return _change(found, test, f"at worst {signed(found.worst)}")
    if test.verdict == PASS:
        return _change(found, test, _ends(found.worst, found.bound))
    interval = _ends(found.low, found.high)
    return _change(found, test, f"95% interval {interval}" if interval else "")


def _ends(one: float | None, other: float | None) -> str:
    return "" if one is None or other is None else " to ".join(map(signed, sorted((one, other))))


def _change(found: Look, test: AbTest, ends: str) -> str:
    """Return how B differs from A, with what is possible and the number of pairs."""
    if found.ratio >= 2:
        relation = f"{times(found.ratio)} A's"
    elif signed(found.ratio) == "0%":
        relation = "the same as A's"
    else:
        relation = f"{percent(abs(found.ratio - 1))} {'higher' if found.ratio > 1 else 'lower'} than A's"
    beside = ", ".join(filter(None, (ends, plural(found.pairs, "pair"))))
    return f"B's {NAMES[test.metric]} is {relation} ({beside})"


# What would decide an A/B test that ended inconclusive: more pairs, longer slices, or another question.


NEAR = 1 / 3
"""Of the distance from no change to what is allowed: nearer to it, more pairs show little."""
SPARE = 1.1
"""How much more time than the pairs took so far."""


def _what_would_help(pairs: Pairs) -> str:
    """Return what would decide it, by the scatter of its own pairs, as one or two sentences."""
    ends, allowed, count = signed_rank_bounds(pairs.means, pairs.alpha), pairs.allowed, len(pairs.means)
    if ends is None:
        return f"Fewer than {FEWEST} pairs show nothing: use a longer --max-time."
    centre, half = hodges_lehmann(pairs.means), (ends[1] - ends[0]) / 2
    gap, if_equal = abs(centre - allowed), _needed(count, half, abs(allowed))
    if if_equal is None or if_equal > (pairs.test.max_pairs or MOST):
        scatter = finite(math.expm1(min(median(abs(mean - centre) for mean in pairs.means), 700.0)))
        noise = f"half of the pairs are {percent(scatter or 0.0)} or more from the estimate"
        noisy = f"The machine is too noisy: {noise}"
        if if_equal is None:
            return f"{noisy}. Use {_longer(pairs.report, 10 * count)}."
        enough = f"if B equals A, about {plural(if_equal, 'pair')} would show it"
        longer = _longer(pairs.report, if_equal)
        if if_equal > MOST:
            return f"{noisy}; {enough}. Use {longer}."
        return f"{noisy}; {enough}{_options(if_equal, pairs.test)}, or fewer with {longer}."
    needed = _needed(count, half, gap)
    if needed is None or gap < abs(allowed) * NEAR:
        return "The change is near the limit, where no number of pairs can decide: use another --max-drop."
    decides = f"About {plural(needed, 'pair')} would decide it if this result persists"
    return (
        f"{decides}: use {_longer(pairs.report, needed)}."
        if needed > MOST
        else f"{decides}{_options(needed, pairs.test)}."
    )


def _needed(pairs: int, half: float, gap: float) -> int | None:
    """Return after how many pairs bounds that are `half` wide on each side are as wide as the gap.

    They narrow with the root of the number, which is rounded up to two digits. None where no number is
    enough, or it is none to be written.
    """
    wanted = finite(pairs * (half / gap) ** 2) if gap and 0 < half / gap < 1000 else None
    if wanted is None:
        return None
    number = max(wanted, pairs + 1)
    step: int = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return math.ceil(number / step) * step


def _options(pairs: int, test: AbTest) -> str:
    """Return the options that allow for so many pairs, in brackets; "" where those given do."""
    wanted = [f"--max-pairs {pairs}"] if pairs > (test.max_pairs or 0) else []
    last = test.looks[-1] if test.looks else None
    if last and last.seconds and last.pairs:
        seconds = SPARE * pairs * last.seconds / last.pairs
        if seconds > (test.max_time_s or 0.0):
            wanted.append(f"--max-time {math.ceil(seconds / 60)}m")
    return f" ({' '.join(wanted)})" if wanted else ""


def _longer(report: Report, needed: int) -> str:
    """Return which slices would need fewer pairs, and where."""
    case = report.runs[0].case
    quiet = "a quieter machine"
    if case.ops is not None or not case.duration_s:
        return f"longer slices, or {quiet}"
    factor = min(10, max(2, math.ceil(needed / MOST)))
    return f"longer slices (--duration {format_duration(case.duration_s * factor)}), or {quiet}"
