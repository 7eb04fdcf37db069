"""The plan of the window, lateness, stalls, and repeated trials."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sqlstress.engine.loop import BIN_NS, FOREVER_NS, Window
from sqlstress.engine.omissions import RERUNS, VARIABLE
from sqlstress.engine.pool import WorkerExit
from sqlstress.engine.study import Observer
from sqlstress.engine.summary import outcomes
from sqlstress.engine.trial import (
    ATTEMPTS,
    LEAD_ANSWERS,
    MAX_RERUNS,
    MIN_LEAD_S,
    MIN_STALL_S,
    RetryReason,
    StallDetector,
    TrialRunner,
    empty_window_reason,
    lateness_s,
    made_progress,
    plan_window,
    retry_reason,
    seconds_asleep,
)
from sqlstress.engine.worker import Done
from sqlstress.experiment import unit_of
from sqlstress.machine.foreign_load import disk_of
from sqlstress.report import Check, Throttling, Trial, Verdict
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S
from sqlstress.system.interrupt import StopSignals
from tests.engine.benches import bench
from tests.engine.fakes import FakeClock
from tests.engine.hand_made import FIXED, OPENS_NS, WINDOW, dead, done
from tests.example_report import example_report
from tests.held_open import held_open

TRIAL = example_report().runs[0].trials[0]


def test_window_opens_after_lead_answers_and_warm_up() -> None:
    window = plan_window(Case(concurrency=8, warmup_s=0.5, duration_s=2.0), 1_000, 0.0)
    assert window.starts_ns == 1_000 + MIN_LEAD_S * NS_PER_S
    assert window.opens_ns == window.starts_ns + 500 * NS_PER_MS
    assert window.closes_ns == window.opens_ns + 2 * NS_PER_S
    begin, later = (plan_window(Case(), 0, answer_s).starts_ns for answer_s in (0.0, 0.3))
    assert later - begin == pytest.approx(LEAD_ANSWERS * 300 * NS_PER_MS)
    window = plan_window(Case(ops=10, warmup_s=0.0), 0, 0.0)
    assert (window.opens_ns, window.closes_ns) == (window.starts_ns, FOREVER_NS)


def test_late_trial_gets_a_longer_warm_up_and_the_same_window() -> None:
    case = Case(warmup_s=0.5, duration_s=2.0)
    window, longer = plan_window(case, 0, 0.1), plan_window(case, 0, 0.1, extra_s=1.5)
    assert longer.starts_ns == window.starts_ns
    assert longer.opens_ns == window.opens_ns + 1_500 * NS_PER_MS
    assert longer.closes_ns - longer.opens_ns == 2 * NS_PER_S
    late, window = (plan_window(Case(warmup_s=0.0), 0, 0.1, extra_s) for extra_s in (0.0, 1.5))
    assert window.opens_ns == window.starts_ns == late.starts_ns + 1_500 * NS_PER_MS


@pytest.mark.parametrize(
    ("first_ns", "late_s"),
    [
        (WINDOW.starts_ns, 0.0),
        (OPENS_NS, 0.0),
        (OPENS_NS + 1, 1e-9),
        (OPENS_NS + 250 * NS_PER_MS, 0.25),
        (0, 2.0),  # never began: all of the window
    ],
)
def test_worker_that_begins_after_the_opening_is_late(first_ns: int, late_s: float) -> None:
    ended = [done(1), done(2, first_ns=first_ns)]
    assert lateness_s(Case(warmup_s=1.0, duration_s=2.0), WINDOW, ended) == pytest.approx(late_s)


@pytest.mark.parametrize(
    ("duration_s", "after_ms", "late"),
    [(0.1, 20, False), (0.1, 21, True), (5.0, 100, False), (5.0, 101, True)],
)
def test_start_without_warm_up_may_be_slightly_late(duration_s: float, after_ms: int, late: bool) -> None:
    window = Window(OPENS_NS, OPENS_NS, OPENS_NS + round(duration_s * NS_PER_S))
    ended = [done(1, first_ns=OPENS_NS + after_ms * NS_PER_MS)]
    assert bool(lateness_s(Case(warmup_s=0.0, duration_s=duration_s), window, ended)) is late


def test_lateness_is_zero_for_fixed_counts_and_dead_workers() -> None:
    assert lateness_s(Case(ops=5), FIXED, [done(1, first_ns=OPENS_NS + NS_PER_S)]) == 0.0
    assert lateness_s(Case(), WINDOW, [done(1), dead(2)]) == 0.0
    assert lateness_s(Case(), WINDOW, [done(1, first_ns=OPENS_NS + NS_PER_S)]) > 0.0
    assert lateness_s(Case(), WINDOW, [done(1, first_ns=OPENS_NS + NS_PER_S), dead(2)]) == 0.0
    assert lateness_s(Case(), WINDOW, [dead(1)]) == 0.0


def test_outcomes_have_deaths_and_findings_of_workers() -> None:
    alive, killed = done(1), replace(dead(2), over_ns=70)
    results = outcomes([alive, killed])
    assert [outcome.over_ns for outcome in results] == [0, 70]
    assert [(outcome.worker, outcome.died) for outcome in results] == [(1, False), (2, True)]
    assert alive.done is not None
    assert results[0].findings is alive.done.findings
    assert results[1].findings is None


class Scripted(TrialRunner):
    """A runner whose attempts return listed trials, each with a reason to repeat it or None."""

    def __init__(self, *attempts: tuple[Trial, RetryReason | None]) -> None:
        super().__init__(Path(), False, StopSignals(), Observer(), 0)
        self.attempts, self.extras = iter(attempts), list[float]()

    def _attempt(
        self, case: Case, index: int, extra_s: float, *_: Any, **__: Any
    ) -> tuple[Trial, RetryReason | None]:
        self.extras.append(extra_s)
        return next(self.attempts)


def crowded(*trials: Trial) -> Scripted:
    return Scripted(*((trial, None) for trial in trials))


def run(*lateness: float) -> tuple[Trial, list[float]]:
    runner = Scripted(*((TRIAL, retry_reason(late_s, 0.0)) for late_s in lateness))
    return runner.run(Case(), 0), runner.extras


def frozen(case: Case, *seconds: float) -> Trial:
    return Scripted(*((TRIAL, retry_reason(0.0, stalled_s)) for stalled_s in seconds)).run(case, 0)


def test_late_trial_is_repeated_with_twice_the_missing_time() -> None:
    trial, extras = run(0.0)
    assert (trial.attempts, trial.error, extras) == (1, None, [0.0])
    trial, extras = run(0.25, 0.125, 0.0)
    assert (trial.attempts, trial.error, extras) == (3, None, [0.0, 0.5, 0.75])
    trial, extras = run(*[0.1] * 9)
    assert trial.attempts == ATTEMPTS == len(extras)
    assert trial.error == "a worker came late to the window 3 times: give a longer --warmup"
    runner = crowded(replace(TRIAL, error="worker 1 was killed"))
    assert runner.run(Case(), 0).error == "worker 1 was killed"


def test_stalled_trial_is_repeated_unless_it_is_the_published_script() -> None:
    runner = Scripted((TRIAL, retry_reason(0.0, 2.5)), (TRIAL, None))
    trial = runner.run(Case(), 0)
    assert (trial.attempts, trial.error, runner.extras) == (2, None, [0.0, 0.0])
    trial = frozen(Case(), *[2.5] * 9)
    assert trial.attempts == ATTEMPTS
    assert trial.error == (
        "the machine slept, or this program was stopped, while it measured 3 times (for 2.5 s): "
        "let it run undisturbed"
    )
    trial = frozen(Case(workload="classic", ops=10), 2.5)
    assert trial.attempts == 1
    assert trial.error is not None
    assert trial.error.startswith("the machine slept, or this program was stopped, while it measured (for")


@pytest.mark.parametrize(
    ("flaw", "beginning"),
    [
        (retry_reason(0.0, 2.5, workers=100_000), "nothing ran for up to 2.5 s: 100,000 processes on "),
        (retry_reason(0.0, 2.5, 4, Throttling(0.5, 9, 9, 3.0)), "the CPU quota of 0.5 cores stopped the"),
        (
            retry_reason(0.0, 2.5, 4, Throttling(0.5, 9, 0, 0.0)),
            "the machine slept, or this program was stopped",
        ),
    ],
)
def test_stall_names_its_probable_cause(flaw: RetryReason | None, beginning: str) -> None:
    assert flaw
    assert flaw.message(1).startswith(beginning)


def test_late_worker_among_many_names_the_number_of_processes() -> None:
    flaw = retry_reason(0.5, 0.0, 100_000)
    assert flaw and "came late to the window: 100,000 processes on" in flaw.message(1)
    assert "more processors" in flaw.message(1) and "--warmup" not in flaw.message(1)
    few = retry_reason(0.5, 0.0, 2)
    assert few and "--warmup" in few.message(1)


def test_late_look_is_no_stall_if_workers_continued() -> None:
    def stall_detector() -> StallDetector:
        times = iter([0.0, 2.5])
        return StallDetector(lambda: next(times), lambda: 0.0)

    for workers_went_on, expected in ((True, 0.0), (False, 2.5)):
        still = stall_detector()
        still.look()
        assert still.seconds(lambda begin_s, end_s, answer=workers_went_on: answer) == expected  # type: ignore[misc]
    slept = iter([0.0, 3.0])
    assert StallDetector(lambda: 0.0, lambda: next(slept)).seconds(lambda begin_s, end_s: True) == 3.0


@pytest.mark.parametrize(
    ("bins", "begin_s", "end_s", "expected"),
    [
        ((1, 0, 1, 1, 1, 1, 1, 1, 1, 1), 0.05, 2.0, True),
        # A window that closes during a stall has few bins for it.
        ((1, 1, 1, 0, 0), 0.25, 1.6, False),
        ((1, 1, 1, 1, 1, 1, 1, 1), 0.75, 2.5, False),
        ((1, 1, 1), 1.5, 2.9, False),
        ((), 0.1, 2.0, False),
    ],
)
def test_workers_went_on_if_most_bins_between_two_looks_have_operations(
    bins: tuple[int, ...], begin_s: float, end_s: float, expected: bool
) -> None:
    ended = [WorkerExit(1, cast(Done, SimpleNamespace(totals=SimpleNamespace(bins=list(bins)))))]
    assert made_progress(Window(0, 0, 10 * BIN_NS), ended, begin_s, end_s) is expected
    assert not made_progress(Window(0, 0, FOREVER_NS), ended, begin_s, end_s)


LOST = Verdict((Check("last write", "failed", 10, 1),))


def test_empty_trial_is_repeated_unless_its_data_is_wrong() -> None:
    """A disk that stalls for a whole window must not end a run."""
    case = Case(workload="exec", duration_s=0.3)
    empty = replace(TRIAL, transactions=0, failed=0, arrived=None)
    flaw = empty_window_reason(case, empty)
    assert flaw is not None
    assert [
        empty_window_reason(other_case, empty) for other_case in (Case(workload="exec", ops=9), Case())
    ] == [None, None]
    assert [
        empty_window_reason(case, replace(empty, **fields))
        for fields in ({"failed": 1}, {"error": "it died"})
    ] == [None, None]
    assert Scripted((empty, flaw), (TRIAL, None)).run(case, 0) == replace(TRIAL, attempts=2)
    trial = Scripted(*[(empty, flaw)] * 9).run(case, 0)
    assert (trial.attempts, trial.error) == (
        ATTEMPTS,
        f"no {unit_of(case)} ended within the window of 300ms, in 3 trials: give a longer "
        "--duration, or --ops",
    )
    once = Scripted((empty, flaw)).once(case, 0, None)
    assert once.error and once.error.startswith("no command ended within the window of 300ms: give")
    wrong = replace(empty, verdict=LOST)
    trial = Scripted((wrong, flaw), (TRIAL, None)).run(case, 0)
    assert (trial.attempts, trial.verdict) == (1, LOST)


def with_foreign_load(share: float, **fields: Any) -> Trial:
    return replace(TRIAL, foreign_share=share, **fields)


@pytest.mark.parametrize(
    ("first", "second", "chosen"),
    [
        (with_foreign_load(0.6), with_foreign_load(0.1), 1),
        (with_foreign_load(0.6), with_foreign_load(0.9), 0),
        (with_foreign_load(0.6), with_foreign_load(0.1, error="worker 1 died"), 0),
        (with_foreign_load(0.6), with_foreign_load(0.9, verdict=LOST), 1),
        (with_foreign_load(0.1, stolen_share=0.3), with_foreign_load(0.0), 1),
        (with_foreign_load(0.2, disk_share=0.6), with_foreign_load(0.2), 1),
        (with_foreign_load(0.6), with_foreign_load(0.2, disk_share=0.7), 0),
    ],
    ids=["quieter", "no quieter", "it failed", "wrong data", "a hypervisor", "the disk", "the disk then"],
)
def test_crowded_trial_is_repeated_and_the_quieter_one_counts(
    first: Trial, second: Trial, chosen: int
) -> None:
    chosen_trial = crowded(first, second).run(Case(), 0)
    assert chosen_trial == replace((first, second)[chosen], attempts=2)


@pytest.mark.parametrize(
    "trial",
    [
        with_foreign_load(0.2),
        TRIAL,
        with_foreign_load(0.9, error="worker 1 died"),
        with_foreign_load(0.9, verdict=LOST),
    ],
    ids=["not crowded", "not observed", "failed", "wrong"],
)
def test_quiet_failed_or_wrong_trial_is_not_repeated(trial: Trial) -> None:
    assert crowded(trial).run(Case(), 0) == trial


def test_repeats_are_limited_on_a_machine_that_is_always_busy() -> None:
    assert crowded(with_foreign_load(0.9)).run(Case(workload="classic", ops=5), 0) == with_foreign_load(0.9)
    runner = crowded(*[with_foreign_load(0.9)] * 20)
    assert [runner.run(Case(), index).attempts for index in range(6)] == [2] * MAX_RERUNS + [1] * (
        6 - MAX_RERUNS
    )


def test_repeats_can_be_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"{RERUNS} more")
    runner = crowded(*[with_foreign_load(0.9)] * 2)
    assert [runner.run(Case(), index).attempts for index in range(2)] == [1, 1]


@pytest.mark.thorough
def test_trial_has_the_disk_share_if_it_is_known(tmp_path: Path) -> None:
    trial = bench(tmp_path).runner.run(Case(ops=20, warmup_s=0.0), 0)
    assert (trial.disk_share is None) == (disk_of(tmp_path) is None)


@pytest.mark.thorough
def test_unremovable_database_moves_the_next_trial_to_another_folder(tmp_path: Path) -> None:
    case = Case(ops=20, warmup_s=0.0)
    runner = bench(tmp_path).runner
    runner._copies = None  # else the files stay where they are
    with held_open("kv.db"):
        trials = [runner.run(case, index) for index in range(3)]
    assert [(trial.error, trial.verdict.status) for trial in trials] == [(None, "ok")] * 3
    held_databases = {str(path.relative_to(tmp_path).as_posix()) for path in tmp_path.rglob("kv.db")}
    # There is one more for each repeated trial, which happens on a busy machine.
    assert held_databases >= {"kv.db", "further-1/kv.db", "further-2/kv.db"}


def noticed_s(*pauses: float, slept: float = 0.0) -> float:
    """Return the noticed stall after looks with these pauses, and after `slept` s on the sleep clock."""
    clock, asleep = FakeClock(), FakeClock()
    stall_detector = StallDetector(clock, asleep)
    for pause in pauses:
        clock.now += pause
        stall_detector.look()
    asleep.now += slept
    return stall_detector.seconds()


def test_late_look_or_sleep_clock_measures_a_stall() -> None:
    assert noticed_s(*[0.1] * 600) == 0.0
    assert noticed_s(0.1, MIN_STALL_S, 0.1) == 0.0
    assert noticed_s(0.1, 2.0, 0.1, 3.5, 0.1) == 3.5
    assert noticed_s(0.1, 0.1, slept=30.0) == 30.0
    before = seconds_asleep()
    assert abs(seconds_asleep() - before) < 0.1
