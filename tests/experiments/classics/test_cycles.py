"""The worker of cycles: its chunks, times and time-out, whole trials, and states of the WAL."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.protocols import DONE, TIMEOUT, Stamps
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.experiments.classics.spec import Cycling
from sqlstress.experiments.classics.worker import (
    BEGIN,
    CHECKPOINT,
    COMMIT,
    DELETE,
    INSERT,
    CyclesSource,
    Step,
    WalStates,
    committed,
    wal_series,
)
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.dry import DryPlace
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import load_driver
from sqlstress.targets.sqlite.place import SqlitePlace
from sqlstress.targets.sqlite.walindex import WalIndex
from sqlstress.targets.views import Operation
from tests.experiments.classics.cases import cycles_case, values
from tests.experiments.measured import SALT, Measured, measure
from tests.halves import open_work
from tests.pulses import nothing

NOWHERE = Path()


def dry(**cycling: Any) -> CyclesSource:
    case = cycles_case(driver="dry", **cycling)
    shared = open_work(case, NOWHERE, SALT, {}).shared
    return CyclesSource(case, DryPlace(case, NOWHERE), 1, SALT, shared)


def work_off(source: CyclesSource, sizes: list[int]) -> list[str]:
    """Do all steps, 10 ns each, in chunks of at most these sizes in turn; return the kinds of each chunk."""
    chunks: list[str] = []
    now = 0
    while chunk := source.next_chunk(sizes[len(chunks) % len(sizes)]):
        for call, params in zip(chunk.calls, chunk.params, strict=True):
            call(params)
        begins = [now + 1000 * index for index in range(len(chunk.kinds))]
        stamps = Stamps(begins, [begin + 10 for begin in begins])
        now = begins[-1] + 5000
        source.settle(chunk, len(chunk.kinds), [], stamps)
        chunks.append("".join(source.kinds[kind][0] for kind in chunk.kinds))
    return chunks


@pytest.mark.parametrize(
    ("transaction", "chunks"),
    [
        ("none", ["iidii", "iidii", "iidii"]),
        ("run", ["biidii", "iidii", "iidiic"]),
    ],
)
def test_chunks_end_with_their_cycle_and_transactions_as_configured(
    transaction: str, chunks: list[str]
) -> None:
    assert work_off(dry(cycles=3, rows=2, transaction=transaction), [100]) == chunks


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.sampled_from(("none", "run")))
def test_times_do_not_depend_on_chunk_sizes(sizes: list[int], transaction: str) -> None:
    source = dry(cycles=3, rows=2, transaction=transaction)
    chunks = work_off(source, sizes)
    findings = source.findings()
    bounds = {"none": [], "run": [[10, 0, 10]]}[transaction]
    assert [values for _, _, values in findings.series] == [[50, 50, 50], *bounds]
    assert max(map(len, chunks)) <= max(sizes)
    assert (findings.outcome, findings.note) == (DONE, "")


def test_rows_of_each_step_are_counted() -> None:
    source = dry(cycles=2, rows=3)
    first, second = source.next_chunk(100), source.next_chunk(100)
    assert first
    assert second
    assert first.sizes == (1, 1, 1, 3, 1, 1, 1)
    assert second.sizes == (1, 1, 1, 6, 1, 1, 1)


def test_run_stops_at_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5 * NS_PER_S]

    def clock() -> int:
        now[0] += NS_PER_S
        return now[0]

    # The source reads the clock once per cycle. It finds the limit before it counts the third cycle.
    source = dry(cycles=10, rows=1, timeout_s=3.0)
    monkeypatch.setattr(time, "perf_counter_ns", clock)
    assert len(work_off(source, [100])) == 3
    findings = source.findings()
    assert (findings.outcome, findings.note) == (TIMEOUT, "2 of 10 cycles were done")


SETTINGS = {
    "delete": Settings(journal_mode="delete", synchronous="off"),
    "wal": Settings(synchronous="off"),
    "wal-off": Settings(synchronous="off", wal_autocheckpoint=0),
}


def valid_trial(case: Case, folder: Path) -> Measured:
    """Run a trial in which nothing goes wrong."""
    done = measure(case, folder)
    assert all(exit_.reason is None for exit_ in done.ended)
    assert done.problem is None
    verdict = done.verdict()
    assert verdict.status == "ok", verdict
    return done


@pytest.mark.thorough
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("transaction", ["none", "run"])
@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_every_setting_leaves_the_last_cycles_rows(
    tmp_path: Path, settings: str, transaction: str, driver: str
) -> None:
    pytest.importorskip(driver)
    done = valid_trial(cycles_case(SETTINGS[settings], driver=driver, transaction=transaction), tmp_path)
    assert values(done) == [f"salt 7 cycle 6 insertion 2 row {row}" for row in (1, 2, 3)]
    assert len(done.series(STATEMENTS)) == 6
    assert len(done.series(BEGIN_AND_COMMIT)) == (0 if transaction == "none" else 6)
    for name in (WAL_FRAMES, CHECKPOINTED_FRAMES, WAL_RESTARTS):
        assert len(done.series(name)) == (0 if settings == "delete" else 6)


def test_closing_checkpoint_is_the_last_step(tmp_path: Path) -> None:
    (exit_,) = valid_trial(cycles_case(), tmp_path).ended
    assert exit_.done and exit_.done.totals.operations["checkpoint"] == 1


@pytest.mark.parametrize(("transaction", "frames"), [("none", [7] * 5), ("run", [0] * 4 + [1])])
def test_every_commit_is_a_frame(tmp_path: Path, transaction: str, frames: list[int]) -> None:
    frame_counts = valid_trial(cycles_case(transaction=transaction), tmp_path).series(WAL_FRAMES)
    assert [after - before for before, after in pairwise(frame_counts)] == frames


def test_default_checkpoint_is_seen_in_cycle_91(tmp_path: Path) -> None:
    settings = Settings(synchronous="normal")
    done = valid_trial(cycles_case(settings, cycles=100, rows=5), tmp_path)
    frames, restarts = done.series(WAL_FRAMES), done.series(WAL_RESTARTS)
    assert frames[:90] == tuple(range(11, 991, 11))
    # The tenth commit of cycle 91 is number 1000; the eleventh restarts the WAL.
    assert (frames[90], frames[99]) == (1, 100)
    assert restarts == (0,) * 90 + (1,) * 10


def test_wal_grows_to_the_end_if_checkpoints_are_off(tmp_path: Path) -> None:
    settings = Settings(synchronous="normal", wal_autocheckpoint=0)
    done = valid_trial(cycles_case(settings, cycles=100, rows=5), tmp_path)
    assert done.series(WAL_FRAMES)[-1] == 1100
    assert set(done.series(WAL_RESTARTS)) == {0}


def test_timed_out_run_keeps_its_finished_cycles(tmp_path: Path) -> None:
    case = cycles_case(SETTINGS["delete"], cycles=100_000, timeout_s=0.3)
    done = valid_trial(case, tmp_path)
    (exit_,) = done.ended
    assert exit_.done
    assert exit_.done.findings.outcome == TIMEOUT
    cycles = len(done.series(STATEMENTS))
    assert exit_.done.findings.note == f"{cycles} of 100000 cycles were done"
    assert 0 < cycles < 100_000
    assert exit_.done.totals.operations["insert"] >= 6 * cycles


@pytest.mark.thorough
def test_transaction_over_a_timed_out_run_is_rolled_back(tmp_path: Path) -> None:
    done = valid_trial(cycles_case(cycles=100_000, transaction="run", timeout_s=0.3), tmp_path)
    assert values(done) == []


# The calls of a worker's connection.


@contextmanager
def calls(case: Case, folder: Path) -> Iterator[dict[str, Operation]]:
    work = open_work(case, folder, SALT, {})
    work.prepare(nothing)
    with closing(CyclesSource(case, SqlitePlace(case, folder), 1, SALT, work.shared)) as source:
        yield source._calls


def insert_a_row_and_checkpoint(calls: dict[str, Operation]) -> None:
    for kind, params in ((BEGIN, ()), (INSERT, ("a",)), (COMMIT, ()), (CHECKPOINT, ())):
        calls[kind](params)


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_closing_checkpoint_blocked_by_a_reader_is_reported(tmp_path: Path, driver: str) -> None:
    pytest.importorskip(driver)
    case = cycles_case(Settings(synchronous="off", busy_timeout_ms=50), driver=driver)
    # Use the same library: two libraries in one process would not see each other's locks.
    with calls(case, tmp_path) as made, files.opened(case, files.paths(case, tmp_path)[0]) as reader:
        reader.rows("BEGIN")
        assert reader.rows("SELECT count(*) FROM t1") == [(0,)]
        with pytest.raises(EnvironmentFailure, match="the final checkpoint timed out waiting for a lock"):
            insert_a_row_and_checkpoint(made)


def test_closing_checkpoint_leaves_the_wal_empty(tmp_path: Path) -> None:
    with calls(cycles_case(), tmp_path) as made:
        insert_a_row_and_checkpoint(made)
        assert (tmp_path / "kv.db-wal").stat().st_size == 0


# The steps of a cycle.


cyclings = st.builds(
    Cycling, st.integers(1, 4), st.integers(1, 3), st.sampled_from(("none", "run")), st.none()
)


def all_steps(cycling: Cycling) -> list[Step]:
    return list(CyclesSource.steps_of(Case(workload="cycles", spec=cycling), 1, SALT))


@given(cyclings)
def test_deletes_remove_the_rows_that_are_there(cycling: Cycling) -> None:
    steps = all_steps(cycling)
    stored = 0
    for step in steps:
        assert step.removed == (stored if step.kind == DELETE else 0)
        stored += len(step.rows) - step.removed


@given(cyclings)
def test_last_cycles_second_insertion_remains_at_the_end(cycling: Cycling) -> None:
    steps = all_steps(cycling)
    last = [row for step in steps for row in step.rows][-cycling.rows :]
    assert committed(steps) == last


@given(cyclings)
def test_row_values_are_unique(cycling: Cycling) -> None:
    rows = [row for step in all_steps(cycling) for row in step.rows]
    assert len(rows) == 2 * cycling.cycles * cycling.rows
    assert len(set(rows)) == len(rows)


# The state of the WAL at the end of each cycle, on a file that stays open.


def noted(*states: tuple[int, int, int]) -> dict[str, tuple[int, ...]]:
    """Return the series of these states: frames, checkpointed frames, salt."""
    found = wal_series([WalIndex(frames, checkpointed, salt, 4096) for frames, checkpointed, salt in states])
    return {name: tuple(values) for name, _, values in found}


def test_wal_with_another_salt_was_restarted() -> None:
    found = noted((11, 0, 5), (22, 22, 5), (3, 0, 6), (14, 0, 6), (2, 1, 9))
    assert found == {
        WAL_FRAMES: (11, 22, 3, 14, 2),
        CHECKPOINTED_FRAMES: (0, 22, 0, 0, 1),
        WAL_RESTARTS: (0, 0, 1, 1, 2),
    }


def test_wal_with_its_first_frames_was_not_restarted() -> None:
    assert noted((0, 0, 0), (0, 0, 0), (1, 0, 77))[WAL_RESTARTS] == (0, 0, 0)


IS_LOCKED = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0)
try:
    connection.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print(error)
"""


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_looks_belong_to_their_cycles_and_keep_the_locks(driver: str, tmp_path: Path) -> None:
    pytest.importorskip(driver)
    database = tmp_path / "kv.db"
    connection = load_driver(driver).connect(database, 0)
    for sql in ("PRAGMA journal_mode=wal", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE t (id INTEGER)"):
        connection.rows(sql)
    wal = WalStates(database)
    for _ in range(3):
        connection.rows("INSERT INTO t VALUES (1)")
        wal.read()
    connection.rows("PRAGMA wal_checkpoint(PASSIVE)")
    wal.read()
    connection.rows("BEGIN IMMEDIATE")
    wal.read()
    answer = subprocess.run(
        [sys.executable, "-c", IS_LOCKED, database], capture_output=True, text=True, check=True
    ).stdout
    assert answer == "database is locked\n"
    connection.close()
    wal.close()
    found = {name: values for name, _, values in wal_series(wal.states)}
    frames = found[WAL_FRAMES]
    assert [after - before for before, after in pairwise(frames)] == [1, 1, 0, 0]
    assert found[CHECKPOINTED_FRAMES] == [0, 0, 0, frames[-1], frames[-1]]
    assert found[WAL_RESTARTS] == [0] * 5


def test_missing_index_gives_no_looks(tmp_path: Path) -> None:
    wal = WalStates(tmp_path / "kv.db")
    wal.read()
    assert wal_series(wal.states) == []
    wal.close()
