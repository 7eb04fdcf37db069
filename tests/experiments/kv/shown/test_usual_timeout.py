"""Tests of what is said of the usual busy time-out, where a longer one hides what would have failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.experiments.kv.experiment import Load
from sqlstress.report import Latency, Run, Trial
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.histogram import bucket_of
from tests.analysis.hand_made import findings, run, trial

S = 1_000_000_000
LONG = Case(duration_s=20.0)


def waited(*seconds: float, kind: str = "replace", failed: int = 0) -> Trial:
    """Return a trial in which operations of a kind took so long."""
    buckets: dict[int, int] = {}
    for each in seconds:
        index = bucket_of(round(each * S))
        buckets[index] = buckets.get(index, 0) + 1
    longest = round(max(seconds) * S)
    latency = {kind: Latency.from_buckets(buckets, longest)}
    return replace(trial(longest_wait_ns=longest), latency=latency, failed=failed)


def told(*runs: Run) -> str | None:
    found = findings(*runs)
    return found.get("usual-timeout", found.get("usual-timeout-hidden"))


def test_operations_that_waited_longer_are_counted_over_all_trials() -> None:
    runs = run(1, 4, waited(0.1, 4.9, 5.1), case=LONG), run(1, 8, waited(6), waited(7, 40), case=LONG)
    assert told(*runs) == (
        "4 operations waited longer than 5 s, at 4 and 8 processes on 1 file. An application with the usual "
        'busy time-out of 5 s would have seen "database is locked": try --busy-timeout 5s.'
    )


def test_operations_that_were_given_up_waited_longer_too() -> None:
    found = told(run(1, 4, waited(6, failed=3), case=LONG))
    assert found and found.startswith("4 operations waited longer than 5 s, at 4 processes")


def test_one_that_still_waited_at_the_end_counts() -> None:
    pending = replace(waited(0.1), longest_wait_ns=9 * S)
    found = told(run(1, 4, pending, case=LONG))
    assert found and found.startswith("1 operation waited longer than 5 s, at 4 processes")


def test_transactions_that_are_begun_again_wait_in_parts() -> None:
    case = replace(LONG, spec=Load(begin="deferred", update_ratio=0.5))
    found = told(run(1, 4, waited(6, kind="update"), case=case))
    assert found and "could have seen" in found


@pytest.mark.parametrize(
    "one",
    [
        run(1, 4, waited(4.9), case=LONG),
        run(1, 1, waited(9), case=LONG),
        run(1, 4, waited(9), case=replace(LONG, settings=Settings(busy_timeout_ms=5000))),
        run(1, 4, waited(9), case=replace(LONG, spec=Load(read_ratio=1.0))),
        run(1, 4, replace(waited(9, kind="get"), longest_wait_ns=S), case=LONG),
        run(1, 4, replace(waited(9), error="worker 1 died"), case=LONG),
    ],
    ids=["no longer", "nobody to wait for", "its own time-out", "no writer", "readers of a WAL", "invalid"],
)
def test_nothing_is_said_where_nothing_is_hidden(one: Run) -> None:
    assert told(one) is None


def test_readers_of_a_rollback_journal_wait_too() -> None:
    case = replace(LONG, settings=Settings(journal_mode="delete"))
    assert told(run(1, 4, waited(9, kind="get"), case=case))


def test_a_window_that_is_too_short_to_show_it_is_told() -> None:
    assert told(run(1, 2, waited(1.9)), run(1, 4, waited(2.1)), run(1, 8, waited(2.4))) == (
        "An operation at 4 and 8 processes on 1 file waited for the whole window, up to 2.4 s. Whether it "
        "would have waited longer than the usual busy time-out of 5 s, --duration 20s shows."
    )
    assert told(run(1, 4, waited(4.0), case=Case(ops=100))) is None
    assert told(run(1, 4, waited(0.5), case=Case(duration_s=0.3))) is None, "uneven shares say it"
