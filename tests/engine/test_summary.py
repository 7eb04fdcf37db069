"""Conversion of the workers' results to a Trial."""

import pytest

from sqlstress.engine.loop import Window
from sqlstress.engine.pool import WorkerExit
from sqlstress.engine.summary import summarise
from sqlstress.report import Trial
from sqlstress.report.case import Case
from sqlstress.statistics.histogram import bin_of
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S
from tests.engine.hand_made import FIXED, OPENS_NS, WINDOW, dead, done

CASE = Case(concurrency=2, duration_s=2.0)


def trial_of(*ended: WorkerExit, case: Case = CASE, window: Window = WINDOW, whole_s: float = 9.0) -> Trial:
    return summarise(case, 0, window, ended, whole_s, start_s=0.4)


def test_tps_is_completed_transactions_per_second_of_the_window() -> None:
    trial = trial_of(done(1, gets=100, replaces=60), done(2, gets=200, replaces=40))
    assert (trial.seconds, trial.transactions, trial.tps) == (2.0, 400, 200.0)
    assert [result.transactions for result in trial.workers] == [160, 240]
    assert trial.tps_per_process == 100.0
    result = done(1, replaces=10)
    assert result.done is not None
    result.done.totals.rows = 1000
    assert (trial_of(result).rows, trial_of(result).rows_per_s) == (1000, 500.0)


def test_fixed_count_is_timed_from_first_begin_to_last_end() -> None:
    case = Case(concurrency=2, ops=100)
    trial = trial_of(
        done(1, gets=100, first_ns=OPENS_NS + NS_PER_S, last_ns=OPENS_NS + 4 * NS_PER_S),
        done(2, gets=100, first_ns=OPENS_NS, last_ns=OPENS_NS + 5 * NS_PER_S),
        case=case,
        window=FIXED,
    )
    assert (trial.seconds, trial.tps) == (5.0, 40.0)
    assert [worker.seconds for worker in trial.workers] == [3.0, 5.0]
    trial = trial_of(
        done(1, gets=100, first_ns=OPENS_NS, last_ns=OPENS_NS + 1 * NS_PER_S),
        done(2, gets=100, first_ns=OPENS_NS, last_ns=OPENS_NS + 4 * NS_PER_S),
        case=Case(concurrency=2, ops=100),
        window=FIXED,
    )
    assert trial.min_max_share == 0.25
    assert trial.fairness == pytest.approx(125**2 / (2 * (100**2 + 25**2)))


def test_published_script_counts_pairs_over_the_whole_time() -> None:
    case = Case(workload="classic", concurrency=2, ops=5000)
    trial = trial_of(
        done(1, gets=5000, replaces=5000), done(2, gets=5000, replaces=5000), case=case, window=FIXED
    )
    assert (trial.seconds, trial.transactions) == (9.0, 10_000)
    assert trial.tps == pytest.approx(10_000 / 9)
    assert [worker.transactions for worker in trial.workers] == [5000, 5000]


def test_fairness_compares_the_workers_shares() -> None:
    trial = trial_of(done(1, gets=100), done(2, gets=300))
    assert trial.fairness == pytest.approx(400**2 / (2 * (100**2 + 300**2)))
    assert trial.min_max_share == pytest.approx(1 / 3)
    trial = trial_of(done(1), done(2))
    assert (trial.tps, trial.fairness, trial.min_max_share, trial.latency) == (0.0, None, None, {})


def test_dead_worker_fails_the_trial_and_other_figures_are_kept() -> None:
    trial = trial_of(done(1, gets=50), dead(2))
    assert trial.error == "worker 2 was killed by SIGKILL; the others' figures are kept"
    assert [(worker.worker, worker.transactions, worker.error) for worker in trial.workers] == [
        (1, 50, None),
        (2, 0, "was killed by SIGKILL"),
    ]
    assert trial.tps == 25.0
    assert trial.latency["get"].count == 50
    reason = "SQLITE_IOERR: disk I/O error"
    trial = trial_of(done(1), dead(2, reason), dead(3, reason), dead(4, reason))
    assert trial.error == f"worker 2 failed: {reason}, and 2 more; the others' figures are kept"


def test_latencies_are_merged_by_kind_and_lines_come_last() -> None:
    first = done(1, gets=100)
    assert first.done
    first.done.totals.buckets["get"] = {bin_of(2_000): 98, bin_of(9_000): 2}
    trial = trial_of(first, done(2, gets=50, replaces=5))
    own = [{kind: bin_of(int(ns)) for kind, ns in worker.p99_ns.items()} for worker in trial.workers]
    assert own == [{"get": bin_of(9_000)}, {"get": bin_of(2_000), "replace": bin_of(50_000)}]
    latency = trial.latency
    assert latency["get"].buckets == ((bin_of(2_000), 148), (bin_of(9_000), 2))
    assert latency["replace"].buckets == ((bin_of(50_000), 5),)
    assert (latency["get"].max_ns, latency["replace"].max_ns) == (2_000, 50_000)
    one, other = done(1, gets=10), done(2, gets=10)
    for ended, longest in ((one, 5000), (other, 7000)):
        assert ended.done
        ended.done.findings.latency = {"line 3": ({bin_of(4000): 2, bin_of(longest): 1}, longest)}
    latency = trial_of(one, other).latency
    assert [*latency][-1] == "line 3" and (latency["line 3"].count, latency["line 3"].max_ns) == (6, 7000)
    assert trial_of(one, other).transactions == 20


def test_counts_and_settings_of_workers_are_combined() -> None:
    trial = trial_of(
        done(1, longest_wait_ns=7, busy=1, busy_snapshot=10, failed=100),
        done(2, longest_wait_ns=5, busy=2, busy_snapshot=20, failed=200),
    )
    assert trial.longest_wait_ns == 7
    assert (trial.busy, trial.busy_snapshot, trial.failed) == (3, 30, 300)
    trial = trial_of(
        done(1, effective={"synchronous": "full", "journal_mode": "wal"}),
        done(2, effective={"synchronous": "normal", "journal_mode": "wal"}),
    )
    assert trial.effective == {"synchronous": "full / normal", "journal_mode": "wal"}
    trial = trial_of(done(1, harness_ns=200 * NS_PER_MS, proof_ns=50 * NS_PER_MS))
    assert (trial.workers[0].harness_share, trial.workers[0].proof_share) == (0.1, 0.025)


def test_worker_without_settings_adds_none() -> None:
    trial = trial_of(done(1, effective={}), done(2, effective={"journal_mode": "wal"}))
    assert trial.effective == {"journal_mode": "wal"}


def test_half_ratio_compares_whole_bins_of_all_workers() -> None:
    trial = trial_of(done(1, bins=[5] * 10 + [20] * 10), done(2, bins=[5] * 20))
    assert trial.half_ratio == 2.5
    assert trial_of(done(1, bins=[10] * 10)).half_ratio == 0.0
    case, window = Case(duration_s=0.65), Window(0, 0, 650 * NS_PER_MS)
    trial = trial_of(done(1, bins=[4, 4, 4, 8, 8, 2, 1]), case=case, window=window)
    assert trial.half_ratio == 2.0
    assert trial_of(done(1, bins=[5] * 20), window=FIXED).half_ratio is None


def test_series_of_a_worker_has_its_number() -> None:
    reporting, silent = done(1), done(2)
    assert reporting.done is not None
    reporting.done.findings.series = [("statements", "ns", [5, 6])]
    assert trial_of(reporting, silent, dead(3)).series == (Series("statements", "ns", (5, 6), worker=1),)
