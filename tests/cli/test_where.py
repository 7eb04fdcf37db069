"""Small real measurements that tell where their time goes."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import pytest

from sqlstress.experiments.kv.load_findings import shares
from sqlstress.experiments.kv.spec import LOOPS
from sqlstress.machine.host import usable_cores
from sqlstress.report import Run
from sqlstress.report.results import BINDING, CHECKPOINT, FREE, HELD, PROCESSOR, SYNC, Where
from sqlstress.statistics.histogram import bucket_floor
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.native import extension
from sqlstress.targets.sqlite.connections import lacks
from tests.cli.conftest import Cli, saved
from tests.rows import mostly_long, mostly_thorough

BRIEF = ("kv", "--where", "--repeat", "1", "--key-space", "2000", "-o", "report.json")
SHORT = (*BRIEF, "--duration", "400ms", "--warmup", "100ms")
ATTEMPTS = 8
"""A busy machine may let a process begin late, or say late that it has ended: then it is another time."""

built = pytest.mark.skipif(lacks("sqlite3") is not None, reason=f"{lacks('sqlite3')}")


def measured(cli: Cli, *options: str, how: tuple[str, ...] = SHORT) -> Run:
    """Return the only run of a short measurement."""
    said = cli(*how, *options)
    (run,) = saved().runs
    assert (said.code, said.err, run.verdict.status) == (0, "", "ok")
    return run


@built
@pytest.mark.thorough
def test_what_is_slept_after_a_newer_snapshot_is_waiting(cli: Cli) -> None:
    # A quarter of the time and more was told as the binding's, which a native loop has not got.
    writing = ("-c", "4", "--read-ratio", "0", "--synchronous", "off")
    found = (shares(measured(cli, *writing))[BINDING] for _ in range(ATTEMPTS))
    assert any(share < 0.12 for share in found)


def told(run: Run) -> Where:
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
"""Each of the options with one driver and one loop at least."""


@built
@pytest.mark.parametrize(
    ("options", "driver", "loop"),
    [*mostly_thorough(TRIED, ALL[:1]), *mostly_long([one for one in ALL if one not in TRIED], ())],
)
def test_the_parts_add_up_to_the_time_that_was_measured(
    cli: Cli, options: str, driver: str, loop: str
) -> None:
    # Long enough for what is lost at its begin and its end to be little.
    case = ("-c", "2", "--ops", "20000", "--driver", driver, "--loop", loop, *options.split())
    ratios = (ratio(measured(cli, *case, how=BRIEF)) for _ in range(ATTEMPTS))
    assert any(nearly_all(one) for one in ratios)


def nearly_all(share: float) -> bool:
    """Return whether a share is within 3 % of all; more than all it is by no accident."""
    assert share < 1.03
    return share > 0.97


def ratio(run: Run) -> float:
    """Return the time that the loop measured, which knows nothing of the shim, over the sum of the parts."""
    where, (trial,) = told(run), run.trials
    assert sum(where.parts.values()) == where.time_ns
    operations = sum(
        count * (bucket_floor(index) + bucket_floor(index + 1)) / 2
        for latency in trial.latency.values()
        for index, count in latency.buckets
    )
    harness = sum(one.harness_share * one.seconds * NS_PER_S for one in trial.workers)
    return (operations + harness) / where.time_ns


@built
@pytest.mark.thorough
def test_a_checkpointer_takes_the_checkpoints_and_normal_and_batches_the_syncs_of_the_workers(
    cli: Cli,
) -> None:
    own = ("-c", "1", "--read-ratio", "0", "--synchronous", "normal")
    usual = told(measured(cli, *own, "--wal-autocheckpoint", "50"))
    normal = measured(cli, *own, "--checkpointer", "passive")
    relieved = told(normal)
    assert usual.parts[CHECKPOINT] > 0 == relieved.parts[CHECKPOINT]
    full = measured(cli, "-c", "1", "--read-ratio", "0", "--synchronous", "full")
    batches = measured(cli, "-c", "1", "--read-ratio", "0", "--synchronous", "full", "--batch", "20")
    # By some 20 times, but a disk that others use may be ten times as slow for one of them.
    assert syncing_a_row(full) > 1.5 * syncing_a_row(normal)
    assert syncing_a_row(full) > 1.5 * syncing_a_row(batches)


def syncing_a_row(run: Run) -> float:
    """Return the time that went into syncs for each row, in ns."""
    return told(run).parts[SYNC] / run.trials[0].rows


@built
# On a machine that others use too, who waits longer is a matter of chance.
@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone says who waits for a processor")
@pytest.mark.parametrize(
    "options",
    [
        ("--read-ratio", "1", "--ops", "40000"),
        ("--read-ratio", "95%", "--synchronous", "off", "--buckets", "50", "--ops", "20000"),
    ],
)
def test_with_fewer_processes_those_who_wait_for_a_processor_do_as_much_and_sooner(
    cli: Cli, options: tuple[str, ...]
) -> None:
    cores = usable_cores()
    few: list[Run] = []
    many: list[Run] = []
    for side, processes in ((few, cores), (many, 4 * cores), (many, 4 * cores), (few, cores)):
        side.append(measured(cli, "-c", str(processes), *options, how=BRIEF))
    assert all(max(parts := told(run).parts, key=lambda part: parts[part]) == PROCESSOR for run in many)
    assert took(few) < 0.75 * took(many)
    # Where others have processors too, more processes are given more of them: they do no more with that.
    assert took(few, given=True) < 1.1 * took(many, given=True)


def took(runs: list[Run], *, given: bool = False) -> float:
    """Return the time of a transaction in ns, or the part of it in which it had a processor, or slept."""
    waited = sum(told(run).parts[PROCESSOR] for run in runs) if given else 0
    return (sum(told(run).time_ns for run in runs) - waited) / sum(run.trials[0].transactions for run in runs)


@pytest.mark.thorough
@built
@pytest.mark.parametrize("loop", LOOPS)
def test_who_waits_alone_waits_for_nobody(cli: Cli, loop: str) -> None:
    where = told(measured(cli, "-c", "1", "--synchronous", "off", "--loop", loop))
    assert (where.parts[HELD], where.parts[FREE], where.pending_ns) == (0, 0, 0)
    assert (PROCESSOR in where.parts) is (sys.platform == "linux")


@built
def test_it_is_shown_on_the_terminal(cli: Cli) -> None:
    said = cli(*SHORT, "-c", "2", "--synchronous", "off", "--details")
    assert "Where the time of an operation goes, in percent" in said.out
    assert "lock held: waiting for a lock held by another process" in " ".join(said.out.split())


@pytest.mark.thorough
def test_without_being_asked_nothing_is_told(cli: Cli) -> None:
    brief = [word for word in SHORT if word != "--where"]
    run = measured(cli, "-c", "1", "--synchronous", "off", how=(*brief,))
    assert (run.case.spec.where, run.trials[0].where) == (False, None)


def test_without_the_extension_it_can_not_be_had(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sqlstress.targets.native._native", None)
    for known in (extension, lacks):
        known.cache_clear()
    try:
        said = cli(*SHORT, "-c", "1")
    finally:
        for known in (extension, lacks):
            known.cache_clear()
    assert said.code == 2
    assert said.err.startswith("Error: --where is not available: the C extension was not built (")
    assert not list(tmp_path.iterdir())
