"""A worker's half: its chunks, its times, its time-out; then whole trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.protocols import DONE, TIMEOUT, Stamps
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.experiments.classics.cycles_worker import (
    BEGIN,
    CHECKPOINT,
    COMMIT,
    INSERT,
    CyclesSource,
    calls_of,
    definition,
)
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.dry import DryPlace
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.place import SqlitePlace
from sqlstress.targets.views import Operation
from tests.experiments.cycles.cases import case_of, values
from tests.experiments.measured import SALT, Measured, measure
from tests.halves import open_work
from tests.pulses import nothing
from tests.rows import mostly_thorough, thorough

NOWHERE = Path()


def dry(clock: Callable[[], int] = lambda: 0, **cycling: Any) -> CyclesSource:
    case = case_of(driver="dry", **cycling)
    return CyclesSource(
        case, DryPlace(case, NOWHERE), 1, SALT, open_work(case, NOWHERE, SALT, {}).shared, clock
    )


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
        chunks.append("".join("bidcx"[kind] for kind in chunk.kinds))
    return chunks


@pytest.mark.parametrize(
    ("transaction", "chunks"),
    [
        ("none", ["iidii", "iidii", "iidii"]),
        ("cycle", ["biidiic", "biidiic", "biidiic"]),
        ("run", ["biidii", "iidii", "iidiic"]),
    ],
)
def test_chunks_end_with_their_cycle_and_transactions_as_configured(
    transaction: str, chunks: list[str]
) -> None:
    assert work_off(dry(cycles=3, rows=2, transaction=transaction), [100]) == chunks


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.sampled_from(("none", "cycle", "run")))
def test_times_do_not_depend_on_chunk_sizes(sizes: list[int], transaction: str) -> None:
    source = dry(cycles=3, rows=2, transaction=transaction)
    chunks = work_off(source, sizes)
    findings = source.findings()
    bounds = {"none": [], "cycle": [[20, 20, 20]], "run": [[10, 0, 10]]}[transaction]
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


def test_run_stops_at_its_time_limit() -> None:
    now = [5 * NS_PER_S]

    def clock() -> int:
        now[0] += NS_PER_S
        return now[0]

    source = dry(clock, cycles=10, rows=1, timeout_s=3.0)
    assert len(work_off(source, [100])) == 3
    findings = source.findings()
    # The third cycle was done too, but its successor was not requested in time.
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
@pytest.mark.parametrize("transaction", ["none", "cycle", "run"])
@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_every_setting_leaves_the_last_cycles_rows(
    tmp_path: Path, settings: str, transaction: str, driver: str
) -> None:
    pytest.importorskip(driver)
    done = valid_trial(case_of(SETTINGS[settings], driver=driver, transaction=transaction), tmp_path)
    assert values(done) == [f"salt 7 worker 1 cycle 6 insertion 2 row {row}" for row in (1, 2, 3)]
    assert len(done.series(STATEMENTS)) == 6
    assert len(done.series(BEGIN_AND_COMMIT)) == (0 if transaction == "none" else 6)
    for name in (WAL_FRAMES, CHECKPOINTED_FRAMES, WAL_RESTARTS):
        assert len(done.series(name)) == (0 if settings == "delete" else 6)


@pytest.mark.parametrize(
    ("journal_mode", "transaction"),
    mostly_thorough(
        product(("delete", "wal"), ("none", "cycle", "run")), [("delete", "cycle"), ("wal", "none")]
    ),
)
def test_several_workers_wait_for_each_other(tmp_path: Path, journal_mode: str, transaction: str) -> None:
    settings = Settings(journal_mode=journal_mode, synchronous="off")
    done = valid_trial(case_of(settings, concurrency=3, transaction=transaction), tmp_path)
    for worker in (1, 2, 3):
        assert values(done, f"t{worker}")[0].startswith(f"salt 7 worker {worker} cycle 6 insertion 2 ")


def test_closing_checkpoint_is_a_step_of_the_last_worker(tmp_path: Path) -> None:
    done = valid_trial(case_of(concurrency=2), tmp_path)
    assert [exit_.done.totals.operations.get("checkpoint", 0) for exit_ in done.ended if exit_.done] in (
        [0, 1],
        [1, 0],
        [1, 1],  # both finished at the same moment
    )


@pytest.mark.parametrize(
    ("transaction", "frames"), [("none", [7] * 5), thorough("cycle", [1] * 5), ("run", [0] * 4 + [1])]
)
def test_every_commit_is_a_frame(tmp_path: Path, transaction: str, frames: list[int]) -> None:
    frame_counts = valid_trial(case_of(transaction=transaction), tmp_path).series(WAL_FRAMES)
    assert [after - before for before, after in pairwise(frame_counts)] == frames


def test_default_checkpoint_is_seen_in_cycle_91(tmp_path: Path) -> None:
    settings = Settings(synchronous="normal")
    done = valid_trial(case_of(settings, cycles=100, rows=5), tmp_path)
    frames, restarts = done.series(WAL_FRAMES), done.series(WAL_RESTARTS)
    assert frames[:90] == tuple(range(11, 991, 11))
    # The tenth commit of cycle 91 is number 1000; the eleventh restarts the WAL.
    assert (frames[90], frames[99]) == (1, 100)
    assert restarts == (0,) * 90 + (1,) * 10


def test_wal_grows_to_the_end_if_checkpoints_are_off(tmp_path: Path) -> None:
    settings = Settings(synchronous="normal", wal_autocheckpoint=0)
    done = valid_trial(case_of(settings, cycles=100, rows=5), tmp_path)
    assert done.series(WAL_FRAMES)[-1] == 1100
    assert set(done.series(WAL_RESTARTS)) == {0}


def test_timed_out_run_keeps_its_finished_cycles(tmp_path: Path) -> None:
    case = case_of(SETTINGS["delete"], cycles=100_000, timeout_s=0.3)
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
    done = valid_trial(case_of(cycles=100_000, transaction="run", timeout_s=0.3), tmp_path)
    assert values(done) == []


# The calls of a worker's connection.


@contextmanager
def calls(case: Case, folder: Path) -> Iterator[list[Operation]]:
    place = SqlitePlace(case, folder)
    place.create_tables([definition(1)], nothing)
    client = place.client(1)
    yield calls_of(client, "t1")
    client.close()


def insert_a_row_and_checkpoint(calls: list[Operation]) -> None:
    for kind, params in ((BEGIN, ()), (INSERT, ("a",)), (COMMIT, ()), (CHECKPOINT, ())):
        calls[kind](params)


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_closing_checkpoint_blocked_by_a_reader_is_reported(tmp_path: Path, driver: str) -> None:
    pytest.importorskip(driver)
    case = case_of(Settings(synchronous="off", busy_timeout_ms=50), driver=driver)
    # Use the same library: two libraries in one process would not see each other's locks.
    with calls(case, tmp_path) as made, files.opened(case, files.paths(case, tmp_path)[0]) as reader:
        reader.rows("BEGIN")
        assert reader.rows("SELECT count(*) FROM t1") == [(0,)]
        with pytest.raises(EnvironmentFailure, match="the final checkpoint timed out waiting for a lock"):
            insert_a_row_and_checkpoint(made)


def test_closing_checkpoint_leaves_the_wal_empty(tmp_path: Path) -> None:
    with calls(case_of(), tmp_path) as made:
        insert_a_row_and_checkpoint(made)
        assert (tmp_path / "kv.db-wal").stat().st_size == 0
