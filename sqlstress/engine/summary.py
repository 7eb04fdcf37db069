"""Conversion of the workers' results to a Trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.engine.pool import WorkerExit, clause
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
    case: Case, index: int, window: Window, ended: Sequence[WorkerExit], whole_s: float, start_s: float
) -> Trial:
    """Return the trial's results, without a verdict on its data.

    `start_s` is the time until all processes were connected, `whole_s` the time until all had ended, in
    seconds. Both count from the start of the processes in experiments where each process begins its load
    at once, and otherwise from `Pool.call`.
    """
    done = [worker.done for worker in ended if worker.done]
    seconds = _seconds(case, window, done, whole_s)
    workers = tuple(_worker_result(case, worker, window, seconds) for worker in ended)
    names = ("transactions", "rows", "busy", "busy_snapshot", "failed")
    sums: dict[str, Any] = {name: sum(getattr(worker, name) for worker in workers) for name in names}
    rates = [worker.tps for worker in workers]
    findings = [result.findings for result in done]
    settings = _settings_read_back(findings)
    return Trial(
        index=index,
        seconds=seconds,
        **sums,
        tps=sums["transactions"] / seconds,
        rows_per_s=sums["rows"] / seconds,
        fairness=statistics.jain(rates),
        min_max_share=statistics.min_max_share(rates),
        longest_wait_ns=max((worker.longest_wait_ns for worker in workers), default=0),
        latency=_latency_by_kind_and_part(done),
        failures=_failures(done),
        workers=workers,
        effective=settings,
        durability=target_of(case.driver).durability(case, settings),
        verdict=Verdict(),
        half_ratio=_half_ratio(window, workers),
        start_s=start_s,
        error=_failure_line(workers),
        outcome=max((finding.outcome for finding in findings), key=OUTCOMES.index, default=DONE),
        note=next((finding.note for finding in findings if finding.note), ""),
        series=recorded_series(ended),
        arrived=_merged_arrivals(done, seconds),
        sightings=_add_up_sightings(findings),
        modules={name: file for finding in findings for name, file in finding.modules.items()},
    )


def _seconds(case: Case, window: Window, done: Sequence[Done], whole_s: float) -> float:
    """Return the length of the measurement, in seconds: the length of the window, if there is one.

    Without a window, return the time from the first operation's begin to the last operation's end. If the
    processes have no common start of the load, return `whole_s`.
    """
    if not experiment_of(case).common_start:
        return whole_s
    if window.closes_ns != FOREVER_NS:
        return case.duration_s
    totals = [result.totals for result in done if result.totals.last_ns]
    first = min((total.first_ns for total in totals), default=0)
    return max(max((total.last_ns for total in totals), default=0) - first, 1) / NS_PER_S


def _worker_result(case: Case, ended: WorkerExit, window: Window, seconds: float) -> WorkerResult:
    if ended.done is None:
        return WorkerResult(ended.worker, 0, 0, seconds, error=ended.reason)
    totals = ended.done.totals
    experiment = experiment_of(case)
    per_operation = experiment.transactions_each(case)
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
        failed=totals.failed * per_operation,
        longest_wait_ns=totals.longest_wait_ns,
        p99_ns={
            kind: p99
            for kind, buckets in totals.buckets.items()
            if (p99 := histogram.percentile(buckets, 0.99)) is not None
        },
        bins=tuple(count * per_operation for count in totals.bins),
        harness_share=totals.harness_ns / NS_PER_S / seconds,
        proof_share=totals.proof_ns / NS_PER_S / seconds,
        peak_memory_bytes=totals.peak_memory_bytes,
    )


def _half_ratio(window: Window, workers: Sequence[WorkerResult]) -> float | None:
    """Return the throughput in the second half of the window divided by that in the first half.

    None without a window, or if the window is too short.
    """
    if window.closes_ns == FOREVER_NS:
        return None
    bins = [sum(values) for values in zip_longest(*(worker.bins for worker in workers), fillvalue=0)]
    full_bins = (window.closes_ns - window.opens_ns) // window.bin_ns
    return statistics.half_ratio(bins[:full_bins] + [0] * (full_bins - len(bins)))


def _latency_by_kind_and_part(done: Sequence[Done]) -> dict[str, Latency]:
    by_kind: dict[str, list[tuple[dict[int, int], int]]] = {}
    for result in done:
        for kind, buckets in result.totals.buckets.items():
            by_kind.setdefault(kind, []).append((buckets, result.totals.largest_ns.get(kind, 0)))
    for result in done:
        for kind, timed in result.findings.latency.items():
            by_kind.setdefault(kind, []).append(timed)
    return {kind: _merged(parts) for kind, parts in by_kind.items()}


def _failures(done: Sequence[Done]) -> tuple[Failures, ...]:
    """Return all failed operations by kind and error, the most frequent first.

    The kind and the error are empty if they were not recorded.
    """
    by_error: dict[tuple[str, str], list[tuple[dict[int, int], int]]] = {}
    for failure in done:
        by_kind = failure.findings.failures
        totals = failure.totals
        if not by_kind and totals.failed_buckets:
            by_kind = [("", "", totals.failed_buckets, totals.largest_failed_ns)]
        for kind, error, buckets, largest_ns in by_kind:
            by_error.setdefault((kind, error), []).append((buckets, largest_ns))
    merged = [Failures(*key, _merged(parts)) for key, parts in by_error.items()]
    return tuple(sorted(merged, key=lambda failure: -failure.latency.count))


def _merged(parts: Sequence[tuple[dict[int, int], int]]) -> Latency:
    buckets = histogram.merge(buckets for buckets, _ in parts)
    return Latency.from_buckets(buckets, max(largest for _, largest in parts))


def _merged_arrivals(done: Sequence[Done], seconds: float) -> Arrived | None:
    arrived = [result.totals.arrived for result in done if result.totals.arrived]
    if not arrived:
        return None
    kinds = dict.fromkeys(kind for totals in arrived for kind in totals.buckets)
    lateness = _merged([(totals.late, totals.latest_ns) for totals in arrived])
    return Arrived(
        due=sum(totals.due for totals in arrived),
        skipped=sum(totals.skipped for totals in arrived),
        queued=sum(totals.queued for totals in arrived),
        latency={
            kind: _merged(
                [(totals.buckets.get(kind, {}), totals.largest_ns.get(kind, 0)) for totals in arrived]
            )
            for kind in kinds
        },
        lateness=lateness if lateness.count else None,
        polled_share=sum(totals.polled_ns for totals in arrived) / NS_PER_S / seconds / len(arrived),
    )


def _settings_read_back(findings: Sequence[Findings]) -> dict[str, str]:
    answers = [finding.effective for finding in findings]
    names = dict.fromkeys(name for answer in answers for name in answer)
    read = {name: dict.fromkeys(filter(None, (answer.get(name) for answer in answers))) for name in names}
    return {name: " / ".join(values) for name, values in read.items()}


def recorded_series(ended: Sequence[WorkerExit]) -> tuple[Series, ...]:
    """Return the values over time that the workers recorded."""
    return tuple(
        Series(name, unit, tuple(values), worker=worker.worker)
        for worker in ended
        if worker.done
        for name, unit, values in worker.done.findings.series
    )


def _add_up_sightings(findings: Sequence[Findings]) -> tuple[Sighting, ...]:
    by_key: dict[Any, Sighting] = {}
    for finding in findings:
        for topic, kind, count, example, traits in finding.sightings:
            key = (topic, kind, *traits.items())
            before = by_key.get(key, Sighting(topic, kind, 0, example, traits))
            by_key[key] = replace(before, count=before.count + count)
    topics = list(dict.fromkeys(sighting.topic for sighting in by_key.values()))
    ranked = sorted(by_key.values(), key=lambda sighting: (topics.index(sighting.topic), -sighting.count))
    return tuple(ranked[:MOST_SIGHTINGS])


def _failure_line(workers: Sequence[WorkerResult]) -> str | None:
    failed = [worker for worker in workers if worker.error]
    if not failed:
        return None
    more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    note = "; the others' figures are kept" if len(failed) < len(workers) else ""
    return f"worker {failed[0].worker} {clause(failed[0].error)}{more}{note}"


def outcomes(ended: Sequence[WorkerExit]) -> list[Outcome]:
    """Return the information on each worker that the verification needs."""
    return [
        Outcome(
            worker.worker, worker.done is None, worker.done.findings if worker.done else None, worker.over_ns
        )
        for worker in ended
    ]
