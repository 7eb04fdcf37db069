"""What is said of waiting: starvation, operations given up, transactions begun again; and of the usual busy
time-out, where a longer one hides what would have failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.experiments.kv.experiment import Load
from sqlstress.experiments.kv.load_findings import worst_p99_ns
from sqlstress.report import Check, Latency, Run, Trial, Verdict
from sqlstress.report.case import Arrivals, Case, Settings
from sqlstress.statistics.histogram import bucket_of
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
        "Starvation at 4 and 8 processes on 1 file: shares were uneven (fairness down to 0.20; "
        "1 is equal). Try --busy fair, more files (--buckets 20) or fewer processes."
    )


def test_a_long_wait_of_any_trial_is_starvation_although_the_shares_are_even() -> None:
    longest = trial(longest_wait_ns=3_400_000_000)
    told = findings(run(1, 1), run(1, 2, SLOW), run(1, 4, trial(3), longest, trial(1)), run(1, 8, SLOW))
    assert told["starvation"].startswith(
        "Starvation at 2, 4 and 8 processes on 1 file: the longest wait was 3.4 s. "
    )


def test_a_trial_that_failed_does_not_count() -> None:
    told = findings(run(1, 3, trial(), replace(SLOW, fairness=0.1, error="worker 1 died")))
    assert "starvation" not in told


def test_a_process_alone_does_not_starve_but_stalls_and_the_worst_is_told() -> None:
    worst = trial(longest_wait_ns=3_400_000_000)
    told = findings(run(1, 1, replace(SLOW, fairness=0.1)), run(20, 1, worst), run(5, 1, SLOW))
    assert "starvation" not in told
    assert "of 1 process on 1, 5 and 20 files took up to 3.4 s" in told["stall"]


@pytest.mark.parametrize(
    ("case", "files", "remedy"),
    [
        (Case(settings=Settings(busy="fair")), 1, "Try more files (--buckets 20) or fewer processes."),
        (Case(), 16, "Try --busy fair, more files (--buckets 32) or fewer processes."),
        (Case(settings=Settings(busy="fair")), 499, "Try more files (--buckets 998) or fewer processes."),
        (Case(settings=Settings(busy="fair")), 500, "Try fewer processes."),
        (Case(workload="classic"), 1, "Try --busy fair without the preset, more files (--buckets 20) or"),
        (Case(spec=Load(read_ratio=1.0)), 1, "Nothing here waits for the write lock"),
        (Case(driver="dry"), 1, "Nothing here waits for the write lock"),
    ],
)
def test_the_remedy_fits_the_case(case: Case, files: int, remedy: str) -> None:
    assert remedy in findings(run(files, 8, UNFAIR, case=case))["starvation"]


def test_more_files_are_advised_than_the_most_that_helped_a_little() -> None:
    little = [trial(fairness=jain, failed=1) for jain in (0.2, 0.3, 0.4)]
    told = findings(run(1, 8, little[0]), run(16, 8, little[2]), run(2, 8, little[1]))
    assert all("more files (--buckets 32)" in told[code] for code in ("starvation", "given-up"))


FAIR = trial(fairness=0.99)
WAITING = trial(longest_wait_ns=3_000_000_000, fairness=0.95)


NOT_MORE_FILES = {
    "slower, though fairer": [run(1, 8, UNFAIR), run(20, 8, trial(940, fairness=1.0))],
    "no fairer, though faster": [run(1, 8, UNFAIR), run(20, 8, trial(5000, fairness=0.2))],
    "as long a wait": [run(1, 8, WAITING), run(20, 8, trial(longest_wait_ns=3_000_000_000))],
    "slower with as many as would be advised, though fewer help": [
        *(run(1, 8, UNFAIR), run(2, 8, FAIR), run(20, 8, trial(500))),
    ],
    "starving where one file does not": [run(1, 8, FAIR), run(20, 8, UNFAIR)],
    "slower with the most processes that starved": [
        *(run(1, 2, UNFAIR), run(20, 2, trial(2000)), run(1, 8, UNFAIR), run(20, 8, trial(500))),
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
        *(run(1, 4), run(20, 4, trial(500)), run(1, 8, UNFAIR), run(20, 8, FAIR)),
    ],
    "not measured where somebody starves": [run(1, 4), run(20, 4, trial(500)), run(1, 8, UNFAIR)],
    "of figures that can't be believed": [run(1, 8, UNFAIR), run(20, 8, WRONG)],
}


@pytest.mark.parametrize("runs", NOT_MORE_FILES.values(), ids=NOT_MORE_FILES)
def test_more_files_are_not_advised_where_the_report_speaks_against_them(runs: list[Run]) -> None:
    assert findings(*runs)["starvation"].endswith("Try --busy fair or fewer processes.")


@pytest.mark.parametrize("runs", MORE_FILES.values(), ids=MORE_FILES)
def test_more_files_are_advised_where_nothing_speaks_against_them(runs: list[Run]) -> None:
    assert "more files (--buckets 20)" in findings(*runs)["starvation"]


def test_files_that_did_not_help_are_not_advised_to_those_who_gave_up() -> None:
    told = findings(run(1, 8, trial(failed=3)), run(20, 8, trial(500)))
    assert told["given-up"].endswith("Try a longer --busy-timeout, --busy fair or fewer processes.")


def test_operations_given_up_are_counted_over_all_trials_with_the_time_out() -> None:
    case = Case(settings=Settings(busy_timeout_ms=500, busy="fair"))
    told = findings(run(1, 4, trial(failed=1200), trial(failed=34), case=case), run(1, 8, case=case))
    assert told["given-up"].startswith(
        "At 4 processes on 1 file, 1,234 operations gave up after the busy timeout of 500ms. That is "
        "2.6% of all. An"
    )


def test_deferred_transactions_that_were_refused_are_advised_to_begin_immediate() -> None:
    case = Case(spec=Load(begin="deferred", update_ratio=0.5))
    told = findings(run(1, 2, trial(busy_snapshot=7), case=case))
    assert "at 2 processes on 1 file: 7 after BUSY_SNAPSHOT." in told["busy-snapshot"]
    told = findings(run(1, 2, trial(busy_snapshot=7, busy=4158), case=case), run(1, 1, case=case))
    assert "7 after BUSY_SNAPSHOT, 4,158 after an immediate BUSY." in told["busy-snapshot"]
    assert "busy-snapshot" in findings(run(1, 2, trial(busy=3), case=case))
    # A look at the lock by fair waits is no refusal.
    fair = replace(case, settings=Settings(busy="fair"))
    assert "busy-snapshot" not in findings(run(1, 2, trial(busy=4158), case=fair))
    assert "busy-snapshot" not in findings(run(1, 2, case=case))
    assert "busy-snapshot" not in findings(run(1, 2, trial(busy_snapshot=7)))


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


def said_of_5_s(*runs: Run) -> str | None:
    found = findings(*runs)
    return found.get("usual-timeout", found.get("usual-timeout-hidden"))


def test_operations_that_waited_longer_are_counted_over_all_trials() -> None:
    runs = run(1, 4, waited(0.1, 4.9, 5.1), case=LONG), run(1, 8, waited(6), waited(7, 40), case=LONG)
    assert said_of_5_s(*runs) == (
        "4 operations at 4 and 8 processes on 1 file waited longer than 5 s. With the usual busy timeout of "
        '5 s an application would have seen "database is locked": try --busy-timeout 5s.'
    )


DEFERRED = replace(LONG, spec=Load(begin="deferred", update_ratio=0.5))
ROLLBACK = replace(LONG, settings=Settings(journal_mode="delete"))


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (
            run(1, 4, waited(6, failed=3), case=LONG),
            "4 operations at 4 processes on 1 file waited longer than 5 s",
        ),
        (
            run(1, 4, replace(waited(0.1), longest_wait_ns=9 * S), case=LONG),
            "1 operation at 4 processes on 1 file waited longer than 5 s",
        ),
        (run(1, 4, waited(6, kind="update"), case=DEFERRED), "could have seen"),
        (
            run(1, 4, waited(9, kind="get"), case=ROLLBACK),
            "1 operation at 4 processes on 1 file waited longer than 5 s",
        ),
    ],
    ids=[
        "given up too",
        "still waiting at the end",
        "begun again, in parts",
        "readers of a rollback journal",
    ],
)
def test_what_waited_longer_is_counted(one: Run, words: str) -> None:
    assert words in (said_of_5_s(one) or "")


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
    assert said_of_5_s(one) is None


def test_a_window_that_is_too_short_to_show_it_is_said_of_5_s() -> None:
    assert said_of_5_s(run(1, 2, waited(1.9)), run(1, 4, waited(2.1)), run(1, 8, waited(2.4))) == (
        "An operation at 4 and 8 processes on 1 file waited for the whole window, up to 2.4 s. Use "
        "--duration 20s to see whether it would wait longer than the usual busy timeout of 5 s."
    )
    assert said_of_5_s(run(1, 4, waited(4.0), case=Case(ops=100))) is None
    assert said_of_5_s(run(1, 4, waited(0.5), case=Case(duration_s=0.3))) is None, "uneven shares say it"


def with_longer(*waits_s: float, **passes: int) -> Run:
    """Return a run with a longer window, in which each process waited so long at most."""
    workers = tuple(
        replace(trial().workers[0], worker=number, longest_wait_ns=int(wait_s * 1e9))
        for number, wait_s in enumerate(waits_s, 1)
    )
    longer = trial(seconds=2.0, longest_wait_ns=int(max(waits_s) * 1e9), workers=workers)
    return replace(run(1, len(waits_s), trial(**passes)), longer=longer)


@pytest.mark.parametrize(
    ("measured", "code", "text"),
    [
        (
            with_longer(2.1, 0.1, 2.0, 1.9),
            "usual-timeout-likely",
            'An operation may wait longer than 5 s, the usual busy timeout, and fail with "database is '
            'locked": in one window of 2s at 4 processes on 1 file, 2 processes waited for all of it. '
            "Use --duration 20s to count them.",
        ),
        (
            with_longer(0.11, 0.05),
            "usual-timeout-no-sign",
            "No sign of waits over 5 s, the usual busy timeout: at most 110 ms in one window of 2s at 2 "
            "processes on 1 file.",
        ),
        (
            with_longer(0.5, 0.05),
            "usual-timeout-unclear",
            "Cannot tell whether an operation would wait longer than 5 s, the usual busy timeout: up to 500 "
            "ms in one window of 2s at 2 processes on 1 file. Use --duration 20s.",
        ),
        # What a pass has shown counts as well.
        (with_longer(0.1, 0.1, longest_wait_ns=700_000_000), "usual-timeout-unclear", "Cannot tell"),
    ],
)
def test_a_longer_window_tells_whether_one_would_wait_longer_than_usual(
    measured: Run, code: str, text: str
) -> None:
    told = findings(measured)
    assert [name for name in told if name.startswith("usual-timeout")] == [code]
    assert told[code].startswith(text)


def test_a_longer_window_says_nothing_where_a_pass_has_shown_it_or_it_failed() -> None:
    shown = with_longer(2.1, longest_wait_ns=6_000_000_000)
    failed = with_longer(2.1, 2.1)
    assert failed.longer
    failed = replace(failed, longer=replace(failed.longer, error="worker 1 died"))
    for measured in (shown, failed, run(1, 2)):
        assert not {name for name in findings(measured) if name.startswith("usual-timeout-")}


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
    pooled = Latency.from_buckets({bucket_of(700_000): 1000}, 700_000)
    return trial(fairness=fairness, workers=workers, latency={"replace": pooled, "get": pooled})


PASSES = (
    shared(0.3, (0.7, 20.0), (90.0, 300.0)),
    shared(0.3, (0.7, 20.0), (None, 280.0)),
    shared(0.3, (0.7, 20.0), (100.0, 290.0)),
)


def test_where_shares_are_uneven_p99_is_that_of_the_process_that_was_worst() -> None:
    uneven = run(1, 2, *PASSES)
    assert [worst_p99_ns(uneven, kind) for kind in ("replace", "get")] == [100e6, 2e5]
    # Who completed nothing waited to write.
    waited = run(1, 2, PASSES[1])
    assert [worst_p99_ns(waited, kind) for kind in ("replace", "get")] == [280e6, 2e5]
    assert findings(uneven)["p99-uneven"] == (
        "At 2 processes on 1 file, 99% of all replaces took at most 698 µs, mostly in the processes that got "
        "the lock. In the process that had it worst, p99 was 100 ms (* in the table)."
    )


@pytest.mark.parametrize(
    "even",
    [
        run(1, 2, *[replace(one, fairness=0.9) for one in PASSES]),
        run(1, 2, *[replace(one, workers=trial().workers) for one in PASSES]),
        run(1, 2, *PASSES, case=Case(arrivals=Arrivals(rate=100))),
    ],
    ids=["even", "an old report", "at a rate"],
)
def test_elsewhere_p99_is_that_of_all_operations(even: Run) -> None:
    assert worst_p99_ns(even, "replace") is None
    assert "p99-uneven" not in findings(even)
