"""From what the workers sent to a Trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from sqlstress.engine.failure import clause
from sqlstress.engine.loop import FOREVER_NS, Totals, Window
from sqlstress.engine.pool import Ended
from sqlstress.engine.protocols import DONE, OUTCOMES, Outcome
from sqlstress.experiment import face_of
from sqlstress.report import Arrived, Latency, Trial, Verdict, WorkerResult
from sqlstress.report.case import Case
from sqlstress.report.results import MOST as MOST_SIGHTINGS
from sqlstress.report.results import Sighting
from sqlstress.statistics import histogram
from sqlstress.statistics import series as statistics
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets import target_of


def window_seconds(case: Case, window: Window, ended: Sequence[Ended], whole_s: float) -> float:
    """Return the time in which a trial's transactions were counted.

    `whole_s` is the time from starting the processes to the last one's end, as the published script
    takes it.
    """
    if face_of(case).behaviour.whole_script:
        return whole_s
    if window.closes_ns != FOREVER_NS:
        return case.duration_s
    totals = [one.done.totals for one in ended if one.done and one.done.totals.last_ns]
    first = min((one.first_ns for one in totals), default=0)
    return max(max((one.last_ns for one in totals), default=0) - first, 1) / NS_PER_S


def worker_result(case: Case, one: Ended, window: Window, seconds: float) -> WorkerResult:
    """Return what one process did."""
    if one.done is None:
        return WorkerResult(one.worker, 0, 0, seconds, error=one.reason)
    totals = one.done.totals
    own = seconds
    if window.closes_ns == FOREVER_NS:
        own = max(totals.last_ns - totals.first_ns, 1) / NS_PER_S
    return WorkerResult(
        worker=one.worker,
        transactions=_units(case, totals),
        rows=totals.rows,
        seconds=own,
        operations=dict(totals.operations),
        busy=totals.busy,
        busy_snapshot=totals.busy_snapshot,
        failed=totals.failed,
        longest_wait_ns=totals.longest_wait_ns,
        bins=tuple(totals.bins),
        harness_share=totals.harness_ns / NS_PER_S / own,
        proof_share=totals.proof_ns / NS_PER_S / own,
        peak_memory_bytes=totals.peak_memory_bytes,
    )


def _units(case: Case, totals: Totals) -> int:
    done = sum(totals.operations.values())
    return done // face_of(case).behaviour.operations_each


def summarise(
    case: Case, index: int, window: Window, ended: Sequence[Ended], whole_s: float, start_s: float
) -> Trial:
    """Return the Trial, not yet verified."""
    seconds = window_seconds(case, window, ended, whole_s)
    workers = tuple(worker_result(case, one, window, seconds) for one in ended)
    transactions, rows = (sum(getattr(one, name) for one in workers) for name in ("transactions", "rows"))
    shares = [one.tps for one in workers]
    bins = total_bins(window, workers)
    findings = [one.done.findings for one in ended if one.done]
    settings = effective(ended)
    return Trial(
        index=index,
        seconds=seconds,
        transactions=transactions,
        rows=rows,
        tps=transactions / seconds,
        rows_per_s=rows / seconds,
        fairness=statistics.jain(shares),
        min_max_share=statistics.min_max_share(shares),
        longest_wait_ns=max((one.longest_wait_ns for one in workers), default=0),
        busy=sum(one.busy for one in workers),
        busy_snapshot=sum(one.busy_snapshot for one in workers),
        failed=sum(one.failed for one in workers),
        latency=merged_latency(ended),
        workers=workers,
        effective=settings,
        durability=target_of(case.driver).durability(case, settings),
        verdict=Verdict(),
        half_ratio=statistics.half_ratio(bins) if window.closes_ns != FOREVER_NS else None,
        start_s=start_s,
        error=trouble(workers),
        outcome=max(findings, key=lambda one: OUTCOMES.index(one.outcome)).outcome if findings else DONE,
        note=next((one.note for one in findings if one.note), ""),
        series=recorded_series(ended),
        arrived=arrived(ended, seconds),
        sightings=merged_sightings(ended),
    )


def total_bins(window: Window, workers: Sequence[WorkerResult]) -> list[int]:
    """Return the transactions of all workers in each bin of the window; empty bins at its end count."""
    bins = [sum(values) for values in zip_longest(*(one.bins for one in workers), fillvalue=0)]
    if window.closes_ns == FOREVER_NS:
        return bins
    whole = (window.closes_ns - window.opens_ns) // window.bin_ns
    return bins[:whole] + [0] * (whole - len(bins))


def merged_latency(ended: Sequence[Ended]) -> dict[str, Latency]:
    """Merge the workers' histograms by kind of operation, and behind them what they timed themselves."""
    told: dict[str, list[tuple[dict[int, int], int]]] = {}
    for one in (one.done for one in ended if one.done):
        for kind, buckets in one.totals.buckets.items():
            told.setdefault(kind, []).append((buckets, one.totals.largest_ns.get(kind, 0)))
    for one in (one.done for one in ended if one.done):
        for kind, own in one.findings.latency.items():
            told.setdefault(kind, []).append(own)
    return {
        kind: Latency.from_buckets(
            histogram.merge(buckets for buckets, _ in each), max(largest for _, largest in each)
        )
        for kind, each in told.items()
    }


def arrived(ended: Sequence[Ended], seconds: float) -> Arrived | None:
    """Return what became of the operations that were due, all workers together; None of a closed loop."""
    found = [one.done.totals.arrived for one in ended if one.done and one.done.totals.arrived]
    if not found:
        return None
    kinds = dict.fromkeys(kind for one in found for kind in one.buckets)
    late = histogram.merge(one.late for one in found)
    return Arrived(
        due=sum(one.due for one in found),
        skipped=sum(one.skipped for one in found),
        queued=sum(one.queued for one in found),
        latency={
            kind: Latency.from_buckets(
                histogram.merge(one.buckets.get(kind, {}) for one in found),
                max(one.largest_ns.get(kind, 0) for one in found),
            )
            for kind in kinds
        },
        lateness=Latency.from_buckets(late, max(one.latest_ns for one in found)) if late else None,
        polled_share=sum(one.polled_ns for one in found) / NS_PER_S / seconds / len(found),
    )


def effective(ended: Sequence[Ended]) -> dict[str, str]:
    """Return the settings read back; where workers differ, all answers."""
    answers = [one.done.findings.effective for one in ended if one.done]
    names = dict.fromkeys(name for answer in answers for name in answer)
    return {name: " / ".join(dict.fromkeys(answer.get(name, "") for answer in answers)) for name in names}


def recorded_series(ended: Sequence[Ended]) -> tuple[Series, ...]:
    """Return what the workers told of what went on."""
    return tuple(
        Series(name, unit, tuple(values), worker=one.worker)
        for one in ended
        if one.done
        for name, unit, values in one.done.findings.series
    )


def merged_sightings(ended: Sequence[Ended]) -> tuple[Sighting, ...]:
    """Return what all workers met, each kind once, the commonest of a topic first."""
    found: dict[Any, Sighting] = {}
    for one in ended:
        for topic, what, count, example, traits in one.done.findings.sightings if one.done else ():
            key = (topic, what, *traits.items())
            before = found.get(key, Sighting(topic, what, 0, example, traits))
            found[key] = replace(before, count=before.count + count)
    topics = list(dict.fromkeys(one.topic for one in found.values()))
    ranked = sorted(found.values(), key=lambda one: (topics.index(one.topic), -one.count))
    return tuple(ranked[:MOST_SIGHTINGS])


def trouble(workers: Sequence[WorkerResult]) -> str | None:
    """Say in a line which workers failed; None when none did."""
    failed = [one for one in workers if one.error]
    if not failed:
        return None
    others = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    kept = "; the others' figures are kept" if len(failed) < len(workers) else ""
    return f"worker {failed[0].worker} {clause(failed[0].error)}{others}{kept}"


def outcomes(ended: Sequence[Ended]) -> list[Outcome]:
    """Return what a verdict must know of each worker."""
    return [
        Outcome(one.worker, one.done is None, one.done.findings if one.done else None, one.over_ns)
        for one in ended
    ]
