"""Conclusions from an A/B test of two variants (arms A and B): verdict, change and advice.

A pair is a trial of A and a trial of B, measured one after the other. A run is all trials of a case and arm.
A cell is a case that both arms measure. The test compares one metric, "tps" or "p99" (the 99th percentile of
latency). The difference of a pair is ln(B / A) for TPS, and -ln(B / A) for p99, so a negative difference
means that B is worse. A look is an interim test.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from sqlstress.analysis import sentences
from sqlstress.analysis.durability import build_of, distinct_options, versions
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import reader_of
from sqlstress.analysis.sentences import FailedArm
from sqlstress.analysis.wording import Change, listing, loss, noun, percent, place, possible_change
from sqlstress.report import AbTest, Latency, Look, Report, Run, Trial, jsonable
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
    cell_alpha,
    conclude,
    direction,
    direction_alpha,
    geometric_means,
    shows_drop,
    tolerance,
)
from sqlstress.statistics.sequential import InterimLook as Planned
from sqlstress.statistics.units import finite, format_duration, plural


def figure(trial: Trial, metric: str) -> float | None:
    """Return a trial's TPS, or its p99 latency in ns; None if unknown or not above 0.

    At a fixed rate, a latency begins when the operation is due, so it includes the time in the queue.
    """
    if metric == "p99":
        value = percentile(merge([dict(latency.buckets) for latency in _operation_latencies(trial)]), 0.99)
    else:
        value = finite(trial.tps)
    # A report file can contain any value, but only values above 0 have a logarithm.
    return value if value and value > 0 else None


def _operation_latencies(trial: Trial) -> Collection[Latency]:
    """Return the latency of each kind of operation; single statements of a script are left out."""
    if trial.arrived:
        return trial.arrived.latency.values()
    whole = {kind for worker in trial.workers for kind in worker.operations} & trial.latency.keys()
    return [latency for kind, latency in trial.latency.items() if kind in whole or not whole]


def cells(report: Report) -> list[tuple[Run, Run]]:
    """Return (all trials of A, all trials of B), as two runs, for each case that both measured."""
    arms = ([run for run in report.runs if run.arm == name] for name in (A, B))
    return list(zip(*arms, strict=False))


def too_many_failed(report: Report) -> tuple[Run, ...]:
    """Return the runs in which more operations failed than --max-failed allows."""
    return tuple(run for run in report.runs if run.failed_too_many)


def differences(report: Report, test: AbTest) -> list[list[float]]:
    """Return ln(B / A) of the metric for each pair of trials, as a list for each case.

    The sign is reversed for p99, so a negative number always means that B is worse. A pair without a figure
    in one case is left out of all cases. All lists are empty if too many operations of a run failed.
    """
    if too_many_failed(report):
        return [[] for _ in cells(report)]
    sign, by_cell = -1 if test.metric == "p99" else 1, []
    for runs in cells(report):
        a, b = ({trial.index: figure(trial, test.metric) for trial in run.valid} for run in runs)
        by_cell.append(
            {pair: math.log(after / before) for pair in a if (before := a[pair]) and (after := b.get(pair))}
        )
    common = set.intersection(*map(set, by_cell)) if by_cell else set()
    return [[sign * cell[pair] for pair in sorted(common)] for cell in by_cell]


def look(report: Report, test: AbTest, planned: Planned) -> Look:
    """Return the result of an interim test of all pairs so far: the verdict, and the ratio of B to A.

    The schedule of interim tests allows this test the probability `planned.alpha` of a wrong verdict.
    """
    by_cell = differences(report, test)
    verdict = conclude(by_cell, tolerance(test.metric, test.max_drop), planned.alpha)
    return estimate(geometric_means(by_cell), test.metric, planned.alpha, verdict)


def estimate(found: Sequence[float], metric: str, alpha: float, verdict: str = UNDECIDED) -> Look:
    """Return B's figure (TPS or p99) divided by A's, with bounds. `verdict` is copied to the result.

    `found` has a number for each pair of trials, from `differences`. In the result, `worst` is the bound on
    the side where B is worse, and `bound` is the opposite bound; None for too few pairs. The true ratio is
    beyond `worst` with probability `alpha`, and beyond `bound` with probability `alpha`.
    """
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


def possible_ratios(found: Look) -> tuple[float, float] | None:
    """Return the bounds of the ratio B / A in ascending order; None for too few pairs of trials."""
    if found.worst is None or found.bound is None:
        return None
    return min(found.worst, found.bound), max(found.worst, found.bound)


NAMES = {"tps": "TPS", "p99": "p99"}
"""Names of the metrics as sentences show them."""


def arm_differences(report: Report, test: AbTest, run_a: Run, run_b: Run) -> Iterator[str]:
    """Yield each difference between A and B in options and versions: "synchronous: full and normal"."""
    case, other = run_a.case, run_b.case
    plain_case, other_plain = _flat(jsonable.to_plain(case)), _flat(jsonable.to_plain(other))
    a, b = test.arms
    builds = tuple(
        build_of(arm_case.driver, arm.builds if arm.python else report.environment.builds)
        for arm, arm_case in ((a, case), (b, other))
    )
    values = {
        name: (plain_case.get(name), other_plain.get(name))
        for name in dict.fromkeys((*plain_case, *other_plain))
    } | {
        "Python": (a.version, b.version),
        "sqlstress": (a.tool_version, b.tool_version),
        "SQLite": tuple(versions(builds)),
        "SQLite's options": tuple(distinct_options(builds)) if all(builds) else (None, None),
    }
    for name, (value, other_value) in values.items():
        # The digest of a file's content is left out, because the name of the file is shown.
        if not name.endswith("digest") and _field_text(value) != _field_text(other_value):
            yield f"{name}: {_field_text(value)} and {_field_text(other_value)}"
    if names := _differing_modules(run_a, run_b):
        yield f"files of imported modules: {listing(names)}"


def _differing_modules(run: Run, other: Run) -> list[str]:
    modules, other_modules = (
        next((trial.modules for trial in side.trials[-1:]), {}) for side in (run, other)
    )
    return sorted(name for name in modules | other_modules if modules.get(name) != other_modules.get(name))


def _flat(plain: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in plain.items():
        flat |= _flat(value) if isinstance(value, dict) else {name: value}
    return flat


def _field_text(value: Any) -> str:
    if value in (None, "", []):
        return "not set"
    return "; ".join(map(_item_text, value)) if isinstance(value, list) else str(value)


def _item_text(value: Any) -> str:
    if not isinstance(value, dict) or "name" not in value:
        return str(value)
    weight = value.get("weight", 1)
    return str(value["name"]) if weight == 1 else f"{value['name']}@{weight}"


class Pairs:
    """Estimates of B's figure relative to A's from all pairs of trials, for the finding of an A/B test."""

    def __init__(self, report: Report, test: AbTest) -> None:
        self.report, self.test = report, test
        self.cells = differences(report, test)
        self.means = geometric_means(self.cells) if self.cells else []
        """Difference of each pair, averaged over all cases; negative if B is worse."""
        alpha = test.looks[-1].alpha if test.looks else ALPHA
        self.alpha = alpha if 0 < alpha < 0.5 else ALPHA
        self.direction_alpha = direction_alpha(len(test.looks), self.alpha) if test.looks else self.alpha
        """Probability that a statement "B is faster" or "B is slower" is wrong."""
        self.case_alpha = cell_alpha(max(1, len(self.cells)), self.alpha)
        """Probability that a single case, or the average of all cases, wrongly fails the test."""
        self.allowed = tolerance(test.metric, test.max_drop)
        """Smallest average difference that --max-drop allows: a negative number."""

    def together(self) -> Look:
        """Return the estimated ratio of B's figure to A's, averaged over all cases."""
        return estimate(self.means, self.test.metric, self.direction_alpha)

    def by_cell(self) -> list[Look]:
        """Return the estimated ratio of B's figure to A's for each case."""
        if len(self.cells) == 1:
            return [self.together()]
        return [estimate(cell, self.test.metric, self.case_alpha) for cell in self.cells]

    def possible(self) -> str:
        """Return the possible change for the worse as text: "no drop shown, up to 69% possible"."""
        result = estimate(self.means, self.test.metric, self.alpha)
        return possible_change(result.worst, result.bound, self.test.metric)

    def change(self) -> Change:
        """Return the change from A to B, averaged over all cases."""
        return self._change(self.together())

    def failing(self) -> tuple[Change, ...]:
        """Return the changes that explain a failed test: the average over all cases, or single cases.

        If the average is significantly worse than --max-drop, return only the average; if not, return the
        cases that are significantly worse. If there is no such case, return the average.
        """
        parts = [("", self.means)]
        if len(self.cells) > 1:
            labelled = zip(cells(self.report), self.cells, strict=True)
            parts += [(f"at {place(a.case)}", cell) for (a, _), cell in labelled]
        alpha = self.case_alpha
        failing = [part for part in parts if shows_drop(signed_rank_bounds(part[1], alpha), self.allowed)]
        if parts[0] in failing or not failing:
            return (self.change(),)
        return tuple(
            self._change(estimate(differences, self.test.metric, alpha), where)
            for where, differences in failing
        )

    def pairs_needed(self) -> int | None:
        """Return the number of pairs that would probably decide the test; None if it cannot be predicted.

        A prediction needs enough pairs, and an estimate that is not too close to --max-drop (see NEAR).
        """
        ends = signed_rank_bounds(self.means, self.alpha)
        if ends is None:
            return None
        gap = abs(hodges_lehmann(self.means) - self.allowed)
        if gap < abs(self.allowed) * NEAR:
            return None
        return _pairs_needed(len(self.means), (ends[1] - ends[0]) / 2, gap)

    def _change(self, result: Look, where: str = "") -> Change:
        low, high = possible_ratios(result) or (None, None)
        ends = None
        if result.worst is not None and result.bound is not None:
            ends = (-loss(result.worst, self.test.metric), -loss(result.bound, self.test.metric))
        return Change(
            direction(ends),
            where=where,
            metric=NAMES[self.test.metric],
            ratio=result.ratio,
            low=low,
            high=high,
            pairs=result.pairs,
        )


def conclusion(report: Report, test: AbTest) -> Finding:
    """Return the finding on the verdict of an A/B test, with the change and advice."""
    if test.reason:
        return Finding(sentences.ab_wrong, reason=test.reason)
    if failed := too_many_failed(report):
        return Finding(sentences.ab_not_comparable, arms=tuple(map(failed_arm, failed)))
    pairs = Pairs(report, test)
    if not pairs.means:
        return Finding(sentences.ab_undecided)
    if test.verdict == FAIL:
        return Finding(sentences.ab_fail, changes=pairs.failing(), allowed=test.max_drop)
    many = len(pairs.cells) if len(pairs.cells) > 1 else None
    if test.verdict == PASS:
        return Finding(
            sentences.ab_pass,
            noun=noun(test.metric),
            allowed=test.max_drop,
            cells=many,
            change=pairs.change(),
        )
    if test.verdict == INCONCLUSIVE:
        return Finding(
            sentences.ab_inconclusive,
            possible=pairs.possible(),
            few=signed_rank_bounds(pairs.means, pairs.alpha) is None,
            allowed=test.max_drop,
            change=pairs.change(),
            advice=_advice(pairs),
        )
    # The user stopped the test before a verdict. A verdict now would have an unknown error rate, because the
    # figures may have been the reason to stop.
    return Finding(sentences.ab_undecided, change=pairs.change())


def failed_arm(run: Run) -> FailedArm:
    """Return the share of a run's operations that failed, the allowed share, and the reason."""
    return FailedArm(
        arm=run.arm or "",
        where=place(run.case),
        share=run.failed_share(),
        why=reader_of(run.case).failure_reason(run),
        most=run.case.max_failed,
    )


def changes_of(report: Report, test: AbTest) -> tuple[Change, ...]:
    """Return the changes that explain the verdict: the failing changes for FAIL, else the average."""
    pairs = Pairs(report, test)
    if not pairs.means:
        return ()
    return pairs.failing() if test.verdict == FAIL and not test.reason else (pairs.change(),)


NEAR = 1 / 3
"""Share of --max-drop. More pairs decide nothing if the change is closer than this to --max-drop."""
TIME_MARGIN = 1.1
"""Factor by which the advised --max-time exceeds the estimated time."""


def _advice(pairs: Pairs) -> str:
    ends, count, test = signed_rank_bounds(pairs.means, pairs.alpha), len(pairs.means), pairs.test
    if ends is None:
        return f"Too few pairs for a verdict: use a longer --max-time, for {plural(FEWEST, 'pair')} or more."
    if_equal = _pairs_needed(count, (ends[1] - ends[0]) / 2, abs(pairs.allowed))
    if if_equal is None or if_equal > (test.max_pairs or MOST):
        centre = hodges_lehmann(pairs.means)
        scatter = finite(math.expm1(min(median(abs(mean - centre) for mean in pairs.means), 700.0)))
        enough = ""
        if if_equal:
            options = _options(if_equal, test) if if_equal <= MOST else ""
            enough = f" If B equals A, about {plural(if_equal, 'pair')} would show it{options}."
        return (
            f"The pairs vary too much: half of them are {percent(scatter or 0.0)} or more from the estimate."
            f"{enough} Use longer slices{_longer_windows(pairs.report, if_equal or 10 * count)}."
        )
    needed = pairs.pairs_needed()
    if needed is None:
        return "The change is near the limit, where no number of pairs can decide: use another --max-drop."
    decided = f"About {plural(needed, 'pair')} would decide it if this result persists"
    if needed > MOST:
        return f"{decided}: use longer slices{_longer_windows(pairs.report, needed)}."
    return f"{decided}{_options(needed, test)}."


def _pairs_needed(pairs: int, half: float, gap: float) -> int | None:
    """Return the number of pairs of trials that a verdict needs; None if `gap` is too small.

    A verdict needs an interval of the estimate that excludes the limit, --max-drop. `gap` is the distance of
    the estimate from the limit. `half` is half the width of the interval after `pairs` pairs. The width
    shrinks with the square root of the number of pairs. The result is rounded up to two digits.
    """
    enough = finite(pairs * (half / gap) ** 2) if gap and 0 < half / gap < 1000 else None
    if enough is None:
        return None
    number = max(enough, pairs + 1)
    step: int = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return math.ceil(number / step) * step


def _options(pairs: int, test: AbTest) -> str:
    """Return the options for `pairs` pairs: " (--max-pairs 90)"; "" if the present options suffice."""
    options = [f"--max-pairs {pairs}"] if pairs > (test.max_pairs or 0) else []
    last = test.looks[-1] if test.looks else None
    if last and last.seconds and last.pairs:
        seconds = TIME_MARGIN * pairs * last.seconds / last.pairs
        if seconds > (test.max_time_s or 0.0):
            options.append(f"--max-time {math.ceil(seconds / 60)}m")
    return f" ({' '.join(options)})" if options else ""


def _longer_windows(report: Report, pairs_needed: int) -> str:
    """Return an option for longer trials, so that fewer pairs decide the test: " (--duration 4s)".

    `pairs_needed` is the number of pairs with trials of the present duration. The new duration is 2 to 10
    times as long. "" if trials have a fixed number of operations instead of a duration.
    """
    case = report.runs[0].case
    if case.ops is not None or not case.duration_s:
        return ""
    seconds = case.duration_s * min(10, max(2, math.ceil(pairs_needed / MOST)))
    return f" (--duration {format_duration(seconds)})"
