"""Failed operations: rows with too many of them, and the time until they failed."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.failed import failure_time_of, shares_by_kind
from sqlstress.analysis.group import rate_of
from sqlstress.analysis.wording import failure_time
from sqlstress.report import Failures, Latency, Run
from sqlstress.statistics.histogram import bin_of
from tests.analysis.hand_made import findings, group, passes, run, trial

MS = 1_000_000


def latency(*times_ms: float) -> Latency:
    """Return the latency of operations that took these times."""
    buckets: dict[int, int] = {}
    for time_ms in times_ms:
        buckets[bin_of(round(time_ms * MS))] = buckets.get(bin_of(round(time_ms * MS)), 0) + 1
    return Latency.from_buckets(buckets, round(max(times_ms) * MS))


def with_failed(row: Run, failed: int) -> Run:
    """Return a run in whose trials a number of operations failed at once."""
    times = Failures("", "", Latency.from_buckets({bin_of(MS): failed}, MS))
    trials = tuple(replace(old_trial, failed=failed, failures=(times,)) for old_trial in row.trials)
    return replace(row, trials=trials)


def test_too_many_failed_row_is_never_best_nor_base() -> None:
    wrong = with_failed(passes(1, 2, 9000.0), 10**9)
    results = findings(wrong, passes(1, 4, 500.0), passes(1, 8, 1000.0))
    assert "8 processes" in results["best"]
    assert "2 processes" not in " ".join(results[code] for code in results if code not in TELLING)
    assert rate_of(wrong) is None


TELLING = ("too-many-failed", "given-up")


def test_too_many_failed_comes_before_best() -> None:
    codes = [
        finding.code
        for finding in advise_group(
            group(with_failed(passes(1, 2, 9.0), 10**9), passes(1, 4, 1.0), passes(1, 8, 2.0))
        )
    ]
    assert codes[:2] == list(TELLING)
    assert "best" in codes


def test_failed_share_within_the_limit_is_compared() -> None:
    assert rate_of(with_failed(run(1, 2, trial()), 1)) == 1000.0


def test_failure_time_separates_at_once_from_the_whole_timeout() -> None:
    texts = {
        name: failure_time(time).partition(" (")[0]
        for name, times, timeout_ms in (
            ("at once", (0.01, 0.01, 3.0), 5000),
            ("waited", (4995.0, 5003.0, 5020.0), 5000),
            ("earlier", (2000.0, 3000.0), 5000),
            ("both", (0.01, 0.01, 5000.0), 5000),
            ("none set", (0.01,), 0),
            ("unknown", (0.01,), None),
        )
        if (time := failure_time_of([Failures("", "", latency(*times))], timeout_ms))
    }
    assert texts == {
        "at once": "at once",
        "waited": "after the whole timeout of 5s",
        "earlier": "before the timeout of 5s ended",
        "both": "1 of 3 after the whole timeout of 5s, the others earlier",
        "none set": "at once, without a busy timeout",
        "unknown": "after 10 µs",
    }


def test_shares_by_kind_are_of_each_transaction() -> None:
    workers = (replace(trial().workers[0], operations={"pay": 98, "read": 10}),)
    failures = (Failures("pay", "SQLITE_BUSY", latency(1.0, 2.0)),)
    assert shares_by_kind([run(1, 1, trial(workers=workers, failures=failures))]) == {"pay": 0.02}


def test_percentile_of_fewer_events_is_not_shown() -> None:
    few, some, many = (latency(*range(1, count + 1)).without_single_events() for count in (9, 99, 100))
    assert (few.p90_ns, few.p99_ns) == (None, None)
    assert some.p90_ns is not None
    assert some.p99_ns is None
    assert many.p99_ns is not None
