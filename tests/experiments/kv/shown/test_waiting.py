"""Tests of what is said of waiting: starvation, operations given up, transactions begun again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.experiments.kv.experiment import Load
from sqlstress.report import Check, Run, Verdict
from sqlstress.report.case import Case, Settings
from tests.analysis.hand_made import findings, run, trial

UNFAIR = trial(fairness=0.2)
SLOW = trial(longest_wait_ns=2_232_000_000)


def test_calm_runs_say_nothing_of_waiting() -> None:
    edge = trial(fairness=0.9, longest_wait_ns=1_000_000_000)
    assert not findings(run(1, 1, edge), run(1, 8, edge)).keys() & {
        "starvation",
        "stall",
        "given-up",
        "busy-snapshot",
    }


def test_uneven_shares_are_starvation_and_say_where_and_what_to_do() -> None:
    told = findings(run(1, 1), run(1, 4, UNFAIR), run(1, 8, trial(fairness=0.35)))
    assert told["starvation"] == (
        "Starvation at 4 and 8 processes on 1 file: the shares were uneven (Jain's index down to 0.20; "
        "1 is equal). Try --busy fair, more files (--buckets 20) or fewer processes."
    )


def test_a_long_wait_is_starvation_although_the_shares_are_even() -> None:
    told = findings(run(1, 2), run(1, 3, SLOW))
    assert told["starvation"].startswith(
        "Starvation at 3 processes on 1 file: an operation waited up to 2.2 s. "
    )


def test_the_longest_wait_of_any_case_is_told() -> None:
    told = findings(run(1, 2, SLOW), run(1, 4, trial(longest_wait_ns=3_400_000_000)), run(1, 8, SLOW))
    assert "at 2, 4 and 8 processes on 1 file: an operation waited up to 3.4 s. " in told["starvation"]


def test_the_longest_wait_of_any_trial_counts() -> None:
    assert "up to 2.2 s" in findings(run(1, 3, trial(3), SLOW, trial(1)))["starvation"]


def test_a_trial_that_failed_does_not_count() -> None:
    told = findings(run(1, 3, trial(), replace(SLOW, fairness=0.1, error="worker 1 died")))
    assert "starvation" not in told


def test_a_process_alone_does_not_starve_but_stalls() -> None:
    told = findings(run(1, 1, replace(SLOW, fairness=0.1)))
    assert "starvation" not in told
    assert told["stall"].startswith(
        "With nobody else to wait for, an operation of 1 process on 1 file took up to 2.2 s"
    )


@pytest.mark.parametrize(
    ("case", "files", "remedy"),
    [
        (Case(settings=Settings(busy="fair")), 1, "Try more files (--buckets 20) or fewer processes."),
        (Case(), 16, "Try --busy fair, more files (--buckets 32) or fewer processes."),
        (Case(settings=Settings(busy="fair")), 499, "Try more files (--buckets 998) or fewer processes."),
        (Case(settings=Settings(busy="fair")), 500, "Try fewer processes."),
        (
            Case(workload="classic"),
            1,
            "Try --busy fair without the preset, more files (--buckets 20) or fewer processes.",
        ),
        (Case(spec=Load(read_ratio=1.0)), 1, "Nothing here waits for the write lock"),
        (Case(driver="dry"), 1, "Nothing here waits for the write lock"),
    ],
)
def test_the_remedy_fits_the_case(case: Case, files: int, remedy: str) -> None:
    assert remedy in findings(run(files, 8, UNFAIR, case=case))["starvation"]


def test_the_worst_of_several_stalls_is_told() -> None:
    told = findings(run(1, 1, SLOW), run(20, 1, trial(longest_wait_ns=3_400_000_000)), run(5, 1, SLOW))
    assert "of 1 process on 1, 5 and 20 files took up to 3.4 s" in told["stall"]


def test_more_files_are_advised_than_the_most_that_helped_a_little() -> None:
    little = [trial(fairness=jain, failed=1) for jain in (0.2, 0.3, 0.4)]
    told = findings(run(1, 8, little[0]), run(16, 8, little[2]), run(2, 8, little[1]))
    assert all("more files (--buckets 32)" in told[code] for code in ("starvation", "given-up"))


FAIR = trial(fairness=0.99)
WAITING = trial(longest_wait_ns=3_000_000_000, fairness=0.95)


@pytest.mark.parametrize(
    "runs",
    {
        "slower, though fairer": [run(1, 8, UNFAIR), run(20, 8, trial(940, fairness=1.0))],
        "no fairer, though faster": [run(1, 8, UNFAIR), run(20, 8, trial(5000, fairness=0.2))],
        "as long a wait": [run(1, 8, WAITING), run(20, 8, trial(longest_wait_ns=3_000_000_000))],
        "slower with as many as would be advised, though fewer help": [
            run(1, 8, UNFAIR),
            run(2, 8, FAIR),
            run(20, 8, trial(500)),
        ],
        "starving where one file does not": [run(1, 8, FAIR), run(20, 8, UNFAIR)],
        "slower with the most processes that starved": [
            run(1, 2, UNFAIR),
            run(20, 2, trial(2000)),
            run(1, 8, UNFAIR),
            run(20, 8, trial(500)),
        ],
        "slower in the median": [run(1, 8, UNFAIR), run(20, 8, trial(500), trial(900), trial(4000))],
    }.items(),
    ids=lambda named: named[0],
)
def test_more_files_are_not_advised_where_the_report_speaks_against_them(runs: tuple[str, list[Run]]) -> None:
    told = findings(*runs[1])
    assert told["starvation"].endswith("Try --busy fair or fewer processes.")


@pytest.mark.parametrize(
    "runs",
    {
        "fairer and about as fast": [run(1, 8, UNFAIR), run(20, 8, trial(960))],
        "still unfair, and fairer": [run(1, 8, UNFAIR), run(2, 8, trial(fairness=0.3))],
        "a shorter wait, though shared less evenly": [run(1, 8, WAITING), run(20, 8, trial(fairness=0.94))],
        "slower with far more": [run(1, 8, UNFAIR), run(20, 8, FAIR), run(900, 8, trial(500))],
        "slower where nobody starves": [
            run(1, 4),
            run(20, 4, trial(500)),
            run(1, 8, UNFAIR),
            run(20, 8, FAIR),
        ],
        "not measured where somebody starves": [run(1, 4), run(20, 4, trial(500)), run(1, 8, UNFAIR)],
        "of figures that can't be believed": [
            run(1, 8, UNFAIR),
            run(20, 8, trial(500, verdict=Verdict((Check("last write", "failed"),)))),
        ],
    }.items(),
    ids=lambda named: named[0],
)
def test_more_files_are_advised_where_nothing_speaks_against_them(runs: tuple[str, list[Run]]) -> None:
    assert "more files (--buckets 20)" in findings(*runs[1])["starvation"]


def test_files_that_did_not_help_are_not_advised_to_those_who_gave_up() -> None:
    told = findings(run(1, 8, trial(failed=3)), run(20, 8, trial(500)))
    assert told["given-up"].endswith("try a longer --busy-timeout, --busy fair or fewer processes.")


def test_operations_given_up_are_counted_over_all_trials_with_the_time_out() -> None:
    case = Case(settings=Settings(busy_timeout_ms=500, busy="fair"))
    told = findings(run(1, 4, trial(failed=1200), trial(failed=34), case=case), run(1, 8, case=case))
    assert told["given-up"] == (
        "Operations given up after the busy time-out of 500ms: 1,234, at 4 processes on 1 file; up to 2.6% "
        'of all (at 4 processes on 1 file). An application sees them as "database is locked", and they count '
        "in no figure: try a longer --busy-timeout, more files (--buckets 20) or fewer processes."
    )


def test_busy_snapshot_under_deferred_advises_begin_immediate() -> None:
    deferred = Case(spec=Load(begin="deferred", update_ratio=0.5))
    told = findings(run(1, 2, trial(busy_snapshot=7), case=deferred))
    assert told["busy-snapshot"].startswith(
        "Transactions begun again after BUSY_SNAPSHOT: 7, at 2 processes on 1 file."
    )
    assert "BEGIN IMMEDIATE (--begin immediate)" in told["busy-snapshot"]


def test_a_deferred_transaction_that_was_refused_with_a_plain_busy_is_counted_too() -> None:
    case = Case(spec=Load(begin="deferred", update_ratio=0.5))
    told = findings(run(1, 2, trial(busy_snapshot=7, busy=4158), case=case), run(1, 1, case=case))
    assert told["busy-snapshot"].startswith(
        "Transactions begun again after BUSY_SNAPSHOT: 7, and after a BUSY that came at once: 4,158, "
        "at 2 processes on 1 file."
    )
    assert "busy-snapshot" in findings(run(1, 2, trial(busy=3), case=case))


def test_a_look_at_the_lock_by_fair_waits_is_no_refusal() -> None:
    case = Case(spec=Load(begin="deferred"), settings=Settings(busy="fair"))
    assert "busy-snapshot" not in findings(run(1, 2, trial(busy=4158), case=case))


def test_deferred_transactions_that_were_never_refused_are_left_alone() -> None:
    assert "busy-snapshot" not in findings(run(1, 2, case=Case(spec=Load(begin="deferred"))))


def test_busy_snapshot_under_immediate_has_no_such_advice() -> None:
    assert "busy-snapshot" not in findings(run(1, 2, trial(busy_snapshot=7)))
