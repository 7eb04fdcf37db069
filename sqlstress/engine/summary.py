"""From what the workers sent to a Trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.engine.pool import Ended, clause
from sqlstress.engine.protocols import DONE, OUTCOMES, Findings, Outcome
from sqlstress.engine.worker import Done
from sqlstress.experiment import experiment_of
from sqlstress.report import Arrived, Failures, Latency, Trial, Verdict, WorkerResult
from sqlstress.report.case import Case
from sqlstress.report.results import MOST as MOST_SIGHTINGS
from sqlstress.report.results import Sighting
from sqlstress.statistics import histogram
from sqlstress.statistics import series as statistics
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets import target_of


def summarise(
    case: Case, index: int, window: Window, ended: Sequence[Ended], whole_s: float, start_s: float
) -> Trial:
    """Return the Trial, not yet verified.

    `whole_s` is the time from starting the processes to the last one's end, as the published script takes it.
    """
    done = [one.done for one in ended if one.done]
    seconds = _seconds(case, window, done, whole_s)
    workers = tuple(_worker_result(case, one, window, seconds) for one in ended)
    transactions, rows, busy, busy_snapshot, failed = (
        sum(getattr(one, name) for one in workers)
        for name in ("transactions", "rows", "busy", "busy_snapshot", "failed")
    )
    shares = [one.tps for one in workers]
    findings = [one.findings for one in done]
    settings = _effective(findings)
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
        busy=busy,
        busy_snapshot=busy_snapshot,
        failed=failed,
        latency=_latency(done),
        failures=_failures(done),
        workers=workers,
        effective=settings,
        durability=target_of(case.driver).durability(case, settings),
        verdict=Verdict(),
        half_ratio=_half_ratio(window, workers),
        start_s=start_s,
        error=_trouble(workers),
        outcome=max((one.outcome for one in findings), key=OUTCOMES.index, default=DONE),
        note=next((one.note for one in findings if one.note), ""),
        series=recorded_series(ended),
        arrived=_arrived(done, seconds),
        sightings=_sightings(findings),
        modules={name: file for found in findings for name, file in found.modules.items()},
    )


def _seconds(case: Case, window: Window, done: Sequence[Done], whole_s: float) -> float:
    """Return the time in which a trial's transactions were counted."""
    if not experiment_of(case).common_start:
        return whole_s
    if window.closes_ns != FOREVER_NS:
        return case.duration_s
    totals = [one.totals for one in done if one.totals.last_ns]
    first = min((one.first_ns for one in totals), default=0)
    return max(max((one.last_ns for one in totals), default=0) - first, 1) / NS_PER_S


def _worker_result(case: Case, ended: Ended, window: Window, seconds: float) -> WorkerResult:
    if ended.done is None:
        return WorkerResult(ended.worker, 0, 0, seconds, error=ended.reason)
    totals = ended.done.totals
    experiment = experiment_of(case)
    each = experiment.transactions_each(case)
    if window.closes_ns == FOREVER_NS:
        seconds = max(totals.last_ns - totals.first_ns, 1) / NS_PER_S
    return WorkerResult(
        worker=ended.worker,
        transactions=experiment.count_transactions(case, sum(totals.operations.values())),
        rows=totals.rows,
        seconds=seconds,
        operations=dict(totals.operations),
        busy=totals.busy,
        busy_snapshot=totals.busy_snapshot,
        failed=totals.failed * each,
        longest_wait_ns=totals.longest_wait_ns,
        p99_ns={
            kind: p99
            for kind, buckets in totals.buckets.items()
            if (p99 := histogram.percentile(buckets, 0.99)) is not None
        },
        bins=tuple(count * each for count in totals.bins),
        harness_share=totals.harness_ns / NS_PER_S / seconds,
        proof_share=totals.proof_ns / NS_PER_S / seconds,
        peak_memory_bytes=totals.peak_memory_bytes,
    )


def _half_ratio(window: Window, workers: Sequence[WorkerResult]) -> float | None:
    """Compare the halves of a window by all workers' transactions; empty bins at its end count."""
    if window.closes_ns == FOREVER_NS:
        return None
    bins = [sum(values) for values in zip_longest(*(one.bins for one in workers), fillvalue=0)]
    whole = (window.closes_ns - window.opens_ns) // window.bin_ns
    return statistics.half_ratio(bins[:whole] + [0] * (whole - len(bins)))


def _latency(done: Sequence[Done]) -> dict[str, Latency]:
    """Merge the workers' histograms by kind of operation, and behind them what they timed themselves."""
    of_kind: dict[str, list[tuple[dict[int, int], int]]] = {}
    for one in done:
        for kind, buckets in one.totals.buckets.items():
            of_kind.setdefault(kind, []).append((buckets, one.totals.largest_ns.get(kind, 0)))
    for one in done:
        for kind, timed in one.findings.latency.items():
            of_kind.setdefault(kind, []).append(timed)
    return {kind: _merged(parts) for kind, parts in of_kind.items()}


def _failures(done: Sequence[Done]) -> tuple[Failures, ...]:
    """Return the failed operations of all workers by kind and error; in total if kinds are unknown."""
    of_kind: dict[tuple[str, str], list[tuple[dict[int, int], int]]] = {}
    for each in done:
        by_kind = each.findings.failures
        totals = each.totals
        if not by_kind and totals.failed_buckets:
            by_kind = [("", "", totals.failed_buckets, totals.largest_failed_ns)]
        for kind, error, buckets, largest_ns in by_kind:
            of_kind.setdefault((kind, error), []).append((buckets, largest_ns))
    merged = [Failures(*key, _merged(parts)) for key, parts in of_kind.items()]
    return tuple(sorted(merged, key=lambda each: -each.latency.count))


def _merged(parts: Sequence[tuple[dict[int, int], int]]) -> Latency:
    """Merge histograms, each with its largest value."""
    buckets = histogram.merge(buckets for buckets, _ in parts)
    return Latency.from_buckets(buckets, max(largest for _, largest in parts))


def _arrived(done: Sequence[Done], seconds: float) -> Arrived | None:
    """Return what became of the operations that were due, all workers together; None of a closed loop."""
    arrived = [one.totals.arrived for one in done if one.totals.arrived]
    if not arrived:
        return None
    kinds = dict.fromkeys(kind for one in arrived for kind in one.buckets)
    lateness = _merged([(one.late, one.latest_ns) for one in arrived])
    return Arrived(
        due=sum(one.due for one in arrived),
        skipped=sum(one.skipped for one in arrived),
        queued=sum(one.queued for one in arrived),
        latency={
            kind: _merged([(one.buckets.get(kind, {}), one.largest_ns.get(kind, 0)) for one in arrived])
            for kind in kinds
        },
        lateness=lateness if lateness.count else None,
        polled_share=sum(one.polled_ns for one in arrived) / NS_PER_S / seconds / len(arrived),
    )


def _effective(findings: Sequence[Findings]) -> dict[str, str]:
    """Return the settings read back; where workers differ, all answers.

    A worker that could not read a setting has no answer.
    """
    answers = [one.effective for one in findings]
    names = dict.fromkeys(name for answer in answers for name in answer)
    read = {name: dict.fromkeys(filter(None, (answer.get(name) for answer in answers))) for name in names}
    return {name: " / ".join(values) for name, values in read.items()}


def recorded_series(ended: Sequence[Ended]) -> tuple[Series, ...]:
    """Return what the workers told of what went on."""
    return tuple(
        Series(name, unit, tuple(values), worker=one.worker)
        for one in ended
        if one.done
        for name, unit, values in one.done.findings.series
    )


def _sightings(findings: Sequence[Findings]) -> tuple[Sighting, ...]:
    """Return what all workers met, each kind once, the commonest of a topic first."""
    met: dict[Any, Sighting] = {}
    for one in findings:
        for topic, what, count, example, traits in one.sightings:
            key = (topic, what, *traits.items())
            before = met.get(key, Sighting(topic, what, 0, example, traits))
            met[key] = replace(before, count=before.count + count)
    topics = list(dict.fromkeys(one.topic for one in met.values()))
    ranked = sorted(met.values(), key=lambda one: (topics.index(one.topic), -one.count))
    return tuple(ranked[:MOST_SIGHTINGS])


def _trouble(workers: Sequence[WorkerResult]) -> str | None:
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
