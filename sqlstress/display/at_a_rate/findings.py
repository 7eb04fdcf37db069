"""What there is to say of cases at a rate: which kept up, where latency rises, and what the harness added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlstress.analysis.comparing import UNTOLD as CANNOT
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, ERROR, Group, Tested, noise
from sqlstress.analysis.saturation import KEPT_UP, SATURATED, UNTOLD, achieved, saturation
from sqlstress.analysis.wording import between, duration, finite, percent, rounded, times, whole
from sqlstress.display.at_a_rate.table import from_due, lateness
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case

NOTED_LATE = 0.10
"""A harness whose own lateness is this share of the latency is mentioned."""
NOTED_POLLING = 0.02
"""Polling that takes this share of the processes' time is mentioned."""


def at_a_rate(group: Group) -> Iterator[Finding]:
    """Yield what the runs of a group say; nothing of a closed loop."""
    if group.case.arrivals is None:
        return
    yield from _kept_up(group)
    for curve in curves(group.runs).values():
        yield from _rising(group, curve)
    yield from harness(group)


def harness(group: Group) -> Iterator[Finding]:
    """Yield what the harness itself added to latencies, and took from the processors."""
    yield from _late(group)
    yield from _polling(group)


def curves(runs: Sequence[Run]) -> Mapping[tuple[int, int], list[Run]]:
    """Return the runs of each layout and number of processes, in ascending order of their rate."""
    found: dict[tuple[int, int], list[Run]] = {}
    for run in sorted((run for run in runs if run.case.arrivals), key=_rate):
        found.setdefault((run.case.buckets, run.case.concurrency), []).append(run)
    return found


def _rate(run: Run) -> int:
    return run.case.arrivals.rate if run.case.arrivals else 0


def _kept_up(group: Group) -> Iterator[Finding]:
    """Yield which cases were saturated, and of which it can't be told."""
    measured = [run for run in group.runs if run.valid]
    error = ERROR / group.groups / max(1, len(measured))
    found: dict[str, list[Run]] = {KEPT_UP: [], SATURATED: [], UNTOLD: []}
    for run in measured:
        found[saturation(run.valid, error)].append(run)
    if saturated := found[SATURATED]:
        shares = [share for run in saturated if (share := achieved(run.valid)) is not None]
        yield Finding(
            "saturated",
            f"Saturated at {group.places(run.case for run in saturated)}: {percent(min(shares))}"
            f"{' or more' * (len(shares) > 1)} of what was due was done. {_what_waits(saturated)}",
        )
    if untold := found[UNTOLD]:
        where = group.places(run.case for run in untold)
        yield Finding("cannot-tell", f"Whether it kept up at {where} {CANNOT}: measure longer (--duration).")


def _what_waits(saturated: Sequence[Run]) -> str:
    if all(run.case.arrivals and run.case.arrivals.latency_limit_s for run in saturated):
        return "What came too late was skipped (--latency-limit), and latencies are those of the others."
    return "The queue grows as long as one looks, and latencies say for how long that was."


def _p99(trial: Trial) -> float:
    whole_latency = trial.arrived.whole if trial.arrived else None
    return (finite(whole_latency.p99_ns) if whole_latency else None) or 0.0


def _rising(group: Group, curve: Sequence[Run]) -> Iterator[Finding]:
    """Yield from which rate on p99 is higher than at the lowest one, beyond doubt."""
    runs = [run for run in curve if run.valid and run.by_pass(_p99)]
    if len(runs) < 2:
        return
    tested = group.tested(runs, lambda run: run.by_pass(_p99))
    if tested is None:
        return
    first, *others = runs
    base = f"{duration(tested.middle(first))} at {whole(_rate(first))}/s"
    where = group.place(first.case).replace(f" at {whole(_rate(first))}/s", "")
    higher = [run for run in others if (ratio := tested.ratio(first, run)) and ratio.is_above]
    if not higher:
        yield Finding("p99-level", f"With {where} p99 was {base}; {_unrisen(tested, first, others)}.")
        return
    known = higher[0]
    ratio = tested.ratio(first, known)
    assert ratio
    yield Finding(
        "p99-rises",
        f"With {where} p99 was {base}, and at {whole(_rate(known))}/s {times(ratio.estimate)} that "
        f"({between(ratio)}).",
    )


def _unrisen(tested: Tested, first: Run, others: Sequence[Run]) -> str:
    """Say what is known of rates at which it was not higher beyond doubt."""
    equal = [run for run in others if tested.are_equal(run, first)]
    if len(equal) == len(others):
        return f"up to {whole(_rate(others[-1]))}/s it differed by less than {percent(EQUAL)}"
    return f"whether it was higher up to {whole(_rate(others[-1]))}/s {CANNOT}: {noise(tested)}"


def _late(group: Group) -> Iterator[Finding]:
    """Yield where the harness itself was late, by much of what is shown as latency."""
    found: list[tuple[Case, float, float]] = []
    for run in group.runs:
        late, all_of_it = lateness(run), from_due(run)
        if late and all_of_it and (late.p99_ns or 0) > NOTED_LATE * (all_of_it.p99_ns or 0) > 0:
            found.append((run.case, late.p99_ns or 0.0, all_of_it.p99_ns or 0.0))
    if found:
        case, late_ns, p99_ns = max(found, key=lambda one: one[1] / one[2])
        which = f" ({group.place(case)})" if len(found) > 1 else ""
        yield Finding(
            "harness-late",
            f"The harness itself began operations late at {group.places(case for case, _, _ in found)}: "
            f"1% of them by {duration(late_ns)} or more, where p99 is {duration(p99_ns)}{which}. "
            "That is part of the latency, and no doing of the database.",
        )


def _polling(group: Group) -> Iterator[Finding]:
    shares = [
        (trial.arrived.polled_share, run.case)
        for run, trial in group.measured()
        if trial.arrived and finite(trial.arrived.polled_share)
    ]
    share, case = max(shares, key=lambda one: one[0] * one[1].concurrency, default=(0.0, group.case))
    if share > NOTED_POLLING:
        yield Finding(
            "polling-cost",
            f"Each process polled the clock for up to {percent(share)} of its time, to be there when an "
            f"operation was due: {rounded(share * case.concurrency, 2)} of a processor "
            f"(at {group.place(case)}).",
        )
