"""Small real measurements with `--where`, which reports the use of their time."""

import sys
from itertools import product
from pathlib import Path

import pytest

from sqlstress.experiments.kv.load_findings import shares
from sqlstress.experiments.kv.spec import LOOPS
from sqlstress.machine.host import usable_cores
from sqlstress.report import Run
from sqlstress.report.results import BINDING, CHECKPOINT, FREE, HELD, PROCESSOR, SYNC, Where
from sqlstress.statistics.histogram import bin_floor
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.native import extension
from sqlstress.targets.sqlite.connections import native_unavailable
from tests.cli.conftest import Cli, saved
from tests.rows import mostly_long, mostly_thorough

BRIEF = ("kv", "--where", "--repeat", "1", "--key-space", "2000", "-o", "report.json")
SHORT = (*BRIEF, "--duration", "400ms", "--warmup", "100ms")
ATTEMPTS = 8
"""Attempts. On a busy machine a process may begin late, or report its end late, which falsifies the times."""

built = pytest.mark.skipif(
    native_unavailable("sqlite3") is not None, reason=f"{native_unavailable('sqlite3')}"
)


def measured(cli: Cli, *options: str, how: tuple[str, ...] = SHORT) -> Run:
    """Return the only run of a short measurement."""
    said = cli(*how, *options)
    (run,) = saved().runs
    assert (said.code, said.err, run.verdict.status) == (0, "", "ok")
    return run


@built
@pytest.mark.thorough
def test_sleep_after_a_newer_snapshot_counts_as_waiting(cli: Cli) -> None:
    # Without that, a quarter of the time was reported as the binding's, which a native loop does not have.
    writing = ("-c", "4", "--read-ratio", "0", "--synchronous", "off")
    found = (shares(measured(cli, *writing))[BINDING] for _ in range(ATTEMPTS))
    assert any(share < 0.12 for share in found)


def time_use(run: Run) -> Where:
    (trial,) = run.trials
    assert trial.where
    return trial.where


OPTIONS = (
    "--synchronous off",
    "--journal-mode delete --synchronous off",
    "--buckets 4 --synchronous off",
    "--batch 8 --update-ratio 20% --synchronous off",
    "--read-ratio 1 --ops 80000",
)
ALL = [*product(OPTIONS, ("sqlite3", "apsw"), LOOPS)]
TRIED = [ALL[number] for number in (0, 1, 2, 3, 4, 10, 13, 16)]
"""Each of the options with at least one driver and one loop."""


@built
@pytest.mark.parametrize(
    ("options", "driver", "loop"),
    [*mostly_thorough(TRIED, ALL[:1]), *mostly_long([share for share in ALL if share not in TRIED], ())],
)
def test_parts_add_up_to_the_measured_time(cli: Cli, options: str, driver: str, loop: str) -> None:
    # Long enough that losses at its begin and end are small.
    case = ("-c", "2", "--ops", "20000", "--driver", driver, "--loop", loop, *options.split())
    ratios = (ratio(measured(cli, *case, how=BRIEF)) for _ in range(ATTEMPTS))
    # A larger excess over 1 is no accident.
    assert next(share for share in ratios if share > 0.97) < 1.03


def ratio(run: Run) -> float:
    """Return the loop's own time, which does not come from the shim, divided by the sum of the parts."""
    where, (trial,) = time_use(run), run.trials
    assert sum(where.parts.values()) == where.time_ns
    operations = sum(
        count * (bin_floor(index) + bin_floor(index + 1)) / 2
        for latency in trial.latency.values()
        for index, count in latency.buckets
    )
    harness = sum(worker.harness_share * worker.seconds * NS_PER_S for worker in trial.workers)
    return (operations + harness) / where.time_ns


@built
@pytest.mark.thorough
def test_checkpointer_and_settings_reduce_checkpoints_and_syncs_of_workers(cli: Cli) -> None:
    own = ("-c", "1", "--read-ratio", "0", "--synchronous", "normal")
    usual = time_use(measured(cli, *own, "--wal-autocheckpoint", "50"))
    normal = measured(cli, *own, "--checkpointer", "passive")
    relieved = time_use(normal)
    assert usual.parts[CHECKPOINT] > 0 == relieved.parts[CHECKPOINT]
    full = measured(cli, "-c", "1", "--read-ratio", "0", "--synchronous", "full")
    batches = measured(cli, "-c", "1", "--read-ratio", "0", "--synchronous", "full", "--batch", "20")
    # Usually 20 times, but a disk that others use may be ten times as slow in one of the two runs.
    assert syncing_a_row(full) > 1.5 * syncing_a_row(normal)
    assert syncing_a_row(full) > 1.5 * syncing_a_row(batches)


def syncing_a_row(run: Run) -> float:
    """Return the time of syncs for each row, in ns."""
    return time_use(run).parts[SYNC] / run.trials[0].rows


@built
# On a machine that others use too, waits depend on chance.
@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone says who waits for a processor")
@pytest.mark.parametrize(
    "options",
    [
        ("--read-ratio", "1", "--ops", "40000"),
        ("--read-ratio", "95%", "--synchronous", "off", "--buckets", "50", "--ops", "20000"),
    ],
)
def test_processes_that_wait_for_a_cpu_are_as_fast_in_smaller_number(
    cli: Cli, options: tuple[str, ...]
) -> None:
    cores = usable_cores()
    few: list[Run] = []
    many: list[Run] = []
    for side, processes in ((few, cores), (many, 4 * cores), (many, 4 * cores), (few, cores)):
        side.append(measured(cli, "-c", str(processes), *options, how=BRIEF))
    assert all(max(parts := time_use(run).parts, key=lambda part: parts[part]) == PROCESSOR for run in many)
    assert took(few) < 0.75 * took(many)
    # If other programs use the processors too, more processes get a larger share: they do no more work with
    # it.
    assert took(few, given=True) < 1.1 * took(many, given=True)


def took(runs: list[Run], *, given: bool = False) -> float:
    """Return the time of a transaction in ns, or only its part on a processor or asleep (`given`)."""
    waited = sum(time_use(run).parts[PROCESSOR] for run in runs) if given else 0
    return (sum(time_use(run).time_ns for run in runs) - waited) / sum(
        run.trials[0].transactions for run in runs
    )


@pytest.mark.thorough
@built
@pytest.mark.parametrize("loop", LOOPS)
def test_single_process_has_no_lock_waits(cli: Cli, loop: str) -> None:
    where = time_use(measured(cli, "-c", "1", "--synchronous", "off", "--loop", loop))
    assert (where.parts[HELD], where.parts[FREE], where.pending_ns) == (0, 0, 0)
    assert (PROCESSOR in where.parts) is (sys.platform == "linux")


@built
def test_terminal_shows_the_table_of_where(cli: Cli) -> None:
    said = cli(*SHORT, "-c", "2", "--synchronous", "off", "--details")
    assert "Where the time of an operation goes, in percent" in said.out
    assert "lock held: waiting for a lock held by another process" in said.text


@pytest.mark.thorough
def test_report_without_where_option_has_no_where(cli: Cli) -> None:
    brief = [word for word in SHORT if word != "--where"]
    run = measured(cli, "-c", "1", "--synchronous", "off", how=(*brief,))
    assert (run.case.spec.where, run.trials[0].where) == (False, None)


def test_option_where_without_the_extension_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sqlstress.targets.native._native", None)
    for known in (extension, native_unavailable):
        known.cache_clear()
    try:
        said = cli(*SHORT, "-c", "1")
    finally:
        for known in (extension, native_unavailable):
            known.cache_clear()
    assert said.code == 2
    assert said.err.startswith("Error: --where is not available: the C extension was not built (")
    assert not list(tmp_path.iterdir())
