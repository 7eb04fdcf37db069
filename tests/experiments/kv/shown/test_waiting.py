"""Findings on waiting: starvation, operations given up, retried transactions; and on the usual busy
time-out, where a longer time-out hides failures.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from sqlstress.experiments.kv.load_findings import worst_p99_ns
from sqlstress.experiments.kv.spec import Load
from sqlstress.report import Check, Failures, Latency, Run, Throttling, Trial, Verdict
from sqlstress.report.case import Arrivals, Case, Settings
from sqlstress.report.results import Where
from sqlstress.statistics.histogram import bin_of
from tests.analysis.hand_made import findings, findings_with_codes, run, trial
from tests.example_report import assert_golden_texts

UNFAIR = trial(fairness=0.2)
SLOW = trial(longest_wait_ns=2_232_000_000)


SAID = ("starvation", "stall", "given-up", "busy-snapshot")


def reads(**fields: Any) -> Case:
    return Case(**{"spec": Load(read_ratio=1.0), **fields})


EDGE = trial(fairness=0.9, longest_wait_ns=1_000_000_000)
LONGEST = trial(longest_wait_ns=3_400_000_000)
LESS = Case(settings=Settings(busy_timeout_ms=500))
DEFERRED = Case(spec=Load(begin="deferred", update_ratio=0.5))
WAITED: dict[str, list[Run]] = {
    "calm": [run(1, 1, EDGE), run(1, 8, EDGE)],
    "uneven shares": [run(1, 1), run(1, 4, UNFAIR), run(1, 8, trial(fairness=0.35))],
    "a long wait of any trial, although the shares are even": [
        *(run(1, 1), run(1, 2, SLOW), run(1, 4, trial(3), LONGEST, trial(1)), run(1, 8, SLOW))
    ],
    "a trial that failed": [run(1, 3, trial(), replace(SLOW, fairness=0.1, error="worker 1 died"))],
    "a process alone": [run(1, 1, replace(SLOW, fairness=0.1)), run(20, 1, LONGEST), run(5, 1, SLOW)],
    "16 buckets": [run(16, 8, UNFAIR)],
    "499 buckets": [run(499, 8, UNFAIR)],
    "500 buckets": [run(500, 8, UNFAIR)],
    "no writer": [run(1, 8, UNFAIR, case=reads())],
    "no store": [run(1, 8, UNFAIR, case=Case(driver="dry"))],
    "given up": [run(1, 4, trial(failed=1200), trial(failed=34), case=LESS), run(1, 8, case=LESS)],
    "given up where more buckets did not help": [run(1, 8, trial(failed=3)), run(20, 8, trial(500))],
    "refused": [run(1, 2, trial(busy_snapshot=7), case=DEFERRED)],
    "refused, and busy": [
        *(run(1, 2, trial(busy_snapshot=7, busy=4158), case=DEFERRED), run(1, 1, case=DEFERRED))
    ],
    "busy": [run(1, 2, trial(busy=3), case=DEFERRED)],
    "not refused": [run(1, 2, case=DEFERRED)],
    "refused, though it begins immediate": [run(1, 2, trial(busy_snapshot=7))],
}


def test_findings_on_waiting_equal_the_golden_file() -> None:
    assert_golden_texts(
        "waiting.txt", {name: findings_with_codes(runs, *SAID) for name, runs in WAITED.items()}
    )


def failures(*seconds: float) -> tuple[Failures, ...]:
    """Return failed operations that took these times."""
    buckets = Counter(bin_of(round(each * 1e9)) for each in seconds)
    return (Failures("", "", Latency.from_buckets(buckets, round(max(seconds) * 1e9))),)


def test_given_up_at_once_advises_no_longer_timeout() -> None:
    told = findings(run(1, 4, trial(failed=3, failures=failures(1e-5, 1e-5, 2e-3))))["given-up"]
    assert "at once (median 10 µs, longest 2.0 ms; the timeout of 60s was not waited for)" in told
    assert "Try" not in told


def test_given_up_after_the_timeout_advises_a_longer_timeout() -> None:
    told = findings(run(1, 4, trial(failed=2, failures=failures(60.01, 60.02))))["given-up"]
    assert "after the whole timeout of 60s" in told
    assert "Try a longer --busy-timeout" in told


def test_given_up_both_ways_counts_both() -> None:
    told = findings(run(1, 4, trial(failed=4, failures=failures(1e-5, 1e-5, 1e-5, 60.0))))["given-up"]
    assert "1 of 4 after the whole timeout of 60s, the others earlier" in told


def test_starvation_with_a_long_wait_of_unknown_cause_has_no_remedy() -> None:
    told = findings(run(1, 8, trial(longest_wait_ns=3_000_000_000, fairness=0.95)))
    assert told["starvation"].endswith("the longest wait was 3.0 s.")


def test_waits_of_a_throttled_run_blame_the_quota() -> None:
    quota = Throttling(cores=0.5, periods=20, throttled=18, stopped_s=0.9)
    told = findings(
        run(1, 1, replace(LONGEST, quota=quota)),
        run(1, 8, replace(UNFAIR, quota=quota, failed=1, failures=failures(60.0))),
    )
    assert told["starvation"].endswith("Try a higher CPU quota or fewer processes.")
    assert told["given-up"].endswith("Try a longer --busy-timeout, a higher CPU quota or fewer processes.")
    assert "stall" not in told


def test_short_windows_have_no_fairness_verdict_but_the_longer_window_has() -> None:
    short = replace(UNFAIR, seconds=0.3)
    assert "starvation" not in findings(run(1, 8, short))
    longer = replace(run(1, 8, short), longer=replace(UNFAIR, seconds=2.0))
    assert "shares were uneven" in findings(longer)["starvation"]


def test_fixed_number_of_operations_has_no_fairness_verdict() -> None:
    told = findings(run(1, 8, trial(fairness=0.022), case=Case(ops=1)))
    assert "starvation" not in told


def test_more_buckets_are_advised_than_the_most_that_helped_a_little() -> None:
    little = [trial(fairness=jain, failed=1, failures=failures(60.0)) for jain in (0.2, 0.3, 0.4)]
    told = findings(run(1, 8, little[0]), run(16, 8, little[2]), run(2, 8, little[1]))
    assert all("more buckets (--buckets 32)" in told[code] for code in ("starvation", "given-up"))


FAIR = trial(fairness=0.99)
BEHIND_THE_LOCK = Where(10**9, {"held": 5 * 10**8})
WAITING = trial(longest_wait_ns=3_000_000_000, fairness=0.95, where=BEHIND_THE_LOCK)


NOT_MORE_FILES = {
    "slower, though fairer": [run(1, 8, UNFAIR), run(20, 8, trial(940, fairness=1.0))],
    "no fairer, though faster": [run(1, 8, UNFAIR), run(20, 8, trial(5000, fairness=0.2))],
    "as long a wait": [run(1, 8, WAITING), run(20, 8, trial(longest_wait_ns=3_000_000_000))],
    "slower with as many as would be advised, though fewer help": [
        *(run(1, 8, UNFAIR), run(2, 8, FAIR), run(20, 8, trial(500)))
    ],
    "starving where one file does not": [run(1, 8, FAIR), run(20, 8, UNFAIR)],
    "slower with the most processes that starved": [
        *(run(1, 2, UNFAIR), run(20, 2, trial(2000)), run(1, 8, UNFAIR), run(20, 8, trial(500)))
    ],
    "slower in the median": [run(1, 8, UNFAIR), run(20, 8, trial(500), trial(900), trial(4000))],
}
WRONG = trial(500, verdict=Verdict((Check("last write", "failed"),)))
MORE_FILES = {
    "fairer and about as fast": [run(1, 8, UNFAIR), run(20, 8, trial(960))],
    "still unfair, and fairer": [run(1, 8, UNFAIR), run(2, 8, trial(fairness=0.3))],
    "a shorter wait, though shared less evenly": [run(1, 8, WAITING), run(20, 8, trial(fairness=0.94))],
    "slower with far more": [run(1, 8, UNFAIR), run(20, 8, FAIR), run(900, 8, trial(500))],
    "slower where nobody starves": [
        *(run(1, 4), run(20, 4, trial(500)), run(1, 8, UNFAIR), run(20, 8, FAIR))
    ],
    "not measured where somebody starves": [run(1, 4), run(20, 4, trial(500)), run(1, 8, UNFAIR)],
    "of figures that can't be believed": [run(1, 8, UNFAIR), run(20, 8, WRONG)],
}


@pytest.mark.parametrize("runs", NOT_MORE_FILES.values(), ids=NOT_MORE_FILES)
def test_more_files_are_not_advised_where_the_report_speaks_against_them(runs: list[Run]) -> None:
    assert findings(*runs)["starvation"].endswith("Try fewer processes.")


@pytest.mark.parametrize("runs", MORE_FILES.values(), ids=MORE_FILES)
def test_more_buckets_are_advised_where_nothing_speaks_against_them(runs: list[Run]) -> None:
    assert "more buckets (--buckets 20)" in findings(*runs)["starvation"]


S = 1_000_000_000
LONG = Case(duration_s=20.0)


def waited(*seconds: float, kind: str = "replace", failed: int = 0) -> Trial:
    """Return a trial in which operations of a kind took these times."""
    buckets: dict[int, int] = {}
    for each in seconds:
        index = bin_of(round(each * S))
        buckets[index] = buckets.get(index, 0) + 1
    longest = round(max(seconds) * S)
    latency = {kind: Latency.from_buckets(buckets, longest)}
    return replace(trial(longest_wait_ns=longest), latency=latency, failed=failed)


def with_longer(*waits_s: float, **passes: int) -> Run:
    """Return a run with a longer window, with these longest waits of its processes."""
    workers = tuple(
        replace(trial().workers[0], worker=number, longest_wait_ns=int(wait_s * 1e9))
        for number, wait_s in enumerate(waits_s, 1)
    )
    longer = trial(seconds=2.0, longest_wait_ns=int(max(waits_s) * 1e9), workers=workers)
    return replace(run(1, len(waits_s), trial(**passes)), longer=longer)


LONG_DEFERRED = replace(DEFERRED, duration_s=20.0)
ROLLBACK = replace(LONG, settings=Settings(journal_mode="delete"))
FAILED = with_longer(2.1, 2.1)
HIDDEN: dict[str, list[Run]] = {
    "over all trials": [
        *(run(1, 4, waited(0.1, 4.9, 5.1), case=LONG), run(1, 8, waited(6), waited(7, 40), case=LONG))
    ],
    "given up too": [run(1, 4, waited(6, failed=3), case=LONG)],
    "still waiting at the end": [run(1, 4, replace(waited(0.1), longest_wait_ns=9 * S), case=LONG)],
    "begun again, in parts": [run(1, 4, waited(6, kind="update"), case=LONG_DEFERRED)],
    "readers of a rollback journal": [run(1, 4, waited(9, kind="get"), case=ROLLBACK)],
    "no longer": [run(1, 4, waited(4.9), case=LONG)],
    "nobody to wait for": [run(1, 1, waited(9), case=LONG)],
    "its own time-out": [run(1, 4, waited(9), case=replace(LONG, settings=Settings(busy_timeout_ms=5000)))],
    "no writer": [run(1, 4, waited(9), case=reads(duration_s=20.0))],
    "readers of a WAL": [run(1, 4, replace(waited(9, kind="get"), longest_wait_ns=S), case=LONG)],
    "invalid": [run(1, 4, replace(waited(9), error="worker 1 died"), case=LONG)],
    "a window that is too short to show it": [
        *(run(1, 2, waited(1.9)), run(1, 4, waited(2.1)), run(1, 8, waited(2.4)))
    ],
    "a fixed amount": [run(1, 4, waited(4.0), case=Case(ops=100))],
    "uneven shares say it": [run(1, 4, waited(0.5), case=Case(duration_s=0.3))],
    "a longer window: likely": [with_longer(2.1, 0.1, 2.0, 1.9)],
    "a longer window: no sign": [with_longer(0.11, 0.05)],
    "a longer window: unclear": [with_longer(0.5, 0.05)],
    "a longer window: unclear by what a pass has shown": [with_longer(0.1, 0.1, longest_wait_ns=700_000_000)],
    "a pass has shown it": [with_longer(2.1, longest_wait_ns=6_000_000_000)],
    "a longer window that failed": [replace(FAILED, longer=replace(FAILED.longer, error="worker 1 died"))],  # type: ignore[type-var]
    "no longer window": [run(1, 2)],
}


def test_waits_beyond_the_usual_busy_timeout_are_counted_or_searched() -> None:
    assert_golden_texts(
        "usual-timeout.txt",
        {name: findings_with_codes(runs, "usual-", "longer-window") for name, runs in HIDDEN.items()},
    )


def shared(fairness: float, *each: tuple[float | None, float]) -> Trial:
    """Return a trial of processes with their p99 of replaces (None: completed nothing) and longest waits."""
    workers = tuple(
        replace(
            trial().workers[0],
            p99_ns={} if p99_ms is None else {"replace": p99_ms * 1e6, "get": 2e5},
            longest_wait_ns=int(wait_ms * 1e6),
        )
        for p99_ms, wait_ms in each
    )
    pooled = Latency.from_buckets({bin_of(700_000): 1000}, 700_000)
    return trial(fairness=fairness, workers=workers, latency={"replace": pooled, "get": pooled})


PASSES = (
    shared(0.3, (0.7, 20.0), (90.0, 300.0)),
    shared(0.3, (0.7, 20.0), (None, 280.0)),
    shared(0.3, (0.7, 20.0), (100.0, 290.0)),
)


def test_p99_of_uneven_shares_is_that_of_the_worst_process() -> None:
    uneven = run(1, 2, *PASSES)
    assert [worst_p99_ns(uneven, kind) for kind in ("replace", "get")] == [280e6, 2e5]
    # A process that completed no operation waited to write.
    waited = run(1, 2, PASSES[1])
    assert [worst_p99_ns(waited, kind) for kind in ("replace", "get")] == [280e6, 2e5]
    assert "in the slowest process, p99 was 280 ms" in findings(uneven)["p99-uneven"]


def test_worst_p99_is_never_below_p99_of_all_operations() -> None:
    """Two passes differ: the p99 of all is that of the slow pass, so the worst process is in it too."""
    fast, slow = shared(0.3, (0.7, 20.0), (9.0, 30.0)), shared(0.3, (0.7, 20.0), (10_000.0, 10_000.0))
    at_most_ns = 10_000 * 1e6
    assert worst_p99_ns(run(1, 2, fast, fast, slow), "replace") == at_most_ns


@pytest.mark.parametrize(
    "even",
    [
        run(1, 2, *[replace(base, fairness=0.9) for base in PASSES]),
        run(1, 2, *[replace(base, workers=trial().workers) for base in PASSES]),
        run(1, 2, *PASSES, case=Case(arrivals=Arrivals(rate=100))),
    ],
    ids=["even", "an old report", "at a rate"],
)
def test_p99_of_even_shares_is_that_of_all_operations(even: Run) -> None:
    assert worst_p99_ns(even, "replace") is None
    assert "p99-uneven" not in findings(even)
