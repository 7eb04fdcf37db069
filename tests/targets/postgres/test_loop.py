"""The load on a server: consistent counts, and a proof that detects wrong data."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine.pool import Pool
from sqlstress.engine.values import Values
from sqlstress.engine.worker import STOP
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Server, Settings
from sqlstress.targets.postgres.dialect import schema_of
from tests.experiments.kv.loops import FOREVER_S, KEYS, KILLED, check_counts, killing
from tests.experiments.measured import SALT, Measured, measure, rejected, wait_for
from tests.rows import mostly_thorough, thorough

psycopg = pytest.importorskip("psycopg")

FAST = Settings(synchronous="off")
During = Callable[[Pool], None]


def case_of(load: Load, isolation: str = "read-committed", **more: Any) -> Case:
    fields: dict[str, Any] = {"settings": FAST, "warmup_s": 0.05, "duration_s": 0.15, **more}
    return Case(
        driver="psycopg", server=Server(isolation=isolation), spec=replace(load, loop="python"), **fields
    )


class Bench:
    """Measures on the server and changes its data from another session."""

    def __init__(self, dsn: str, stack: ExitStack) -> None:
        self.dsn, self._stack = dsn, stack

    def measure(self, case: Case, folder: Path, during: During = lambda pool: None) -> Measured:
        folder.mkdir(exist_ok=True)
        done = measure(case, folder, during)
        self._stack.callback(done.work.discard)
        return done

    def rows(self, folder: Path, table: str) -> list[Any]:
        with psycopg.connect(self.dsn) as connection:
            rows = connection.execute(f"TABLE {schema_of(folder)}.{table}").fetchall()
        return sorted(rows)

    def execute(self, sql: str, *params: object) -> int:
        with psycopg.connect(self.dsn) as connection:
            return int(connection.execute(sql, params).rowcount)

    def insist(self, seconds: float, sql: str, *params: object) -> None:
        """Execute a statement repeatedly, without pauses, for `seconds`."""
        until = time.monotonic() + seconds
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            while time.monotonic() < until:
                connection.execute(sql, params)


@pytest.fixture
def bench(our_server: str) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(our_server, stack)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("load", "isolation"),
    [
        (Load(key_space=KEYS, batch=4, update_ratio=0.2), "serializable"),
        (Load(key_space=KEYS, batch=4, update_ratio=0.2), "read-committed"),
        (Load(key_space=KEYS, batch=4, update_ratio=0.2, begin="deferred"), "repeatable-read"),
        (Load(key_space=KEYS, key_type="text", value_size=5000), "read-committed"),
        (Load(key_space=KEYS, key_type="blob", read_ratio=1.0, batch=2), "read-committed"),
    ],
)
def test_counters_agree_after_retries(tmp_path: Path, bench: Bench, load: Load, isolation: str) -> None:
    done = bench.measure(
        case_of(load, isolation=isolation, concurrency=3, buckets=2, duration_s=0.4), tmp_path
    )
    assert done.verdict().status == "ok", done.verdict().counterexamples
    check_counts(done)
    totals_by_worker = [ended.done.totals for ended in done.ended if ended.done]
    assert not any(totals.failed for totals in totals_by_worker)  # refused transactions were retried
    any_refused = any(totals.busy_snapshot for totals in totals_by_worker)
    assert any_refused or isolation == "read-committed"


@pytest.mark.parametrize("change", ["DELETE FROM {}.kv_0", thorough("UPDATE {}.kv_0 SET value = -7")])
def test_foreign_change_fails_the_check_of_values_read(tmp_path: Path, bench: Bench, change: str) -> None:
    case = case_of(Load(key_space=3, read_ratio=1.0), concurrency=1, duration_s=0.3)

    def tamper(_pool: Pool) -> None:
        assert bench.execute(change.format(schema_of(tmp_path))) == 3

    done = bench.measure(case, tmp_path, tamper)
    check_result = next(check for check in done.verdict().checks if check.name == "values read")
    assert check_result.status == "failed" and check_result.problems


def test_table_locked_by_another_program_fails_the_proof_in_time(
    tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlstress.targets.postgres.own_schema.LOCKED_S", 0.1)
    done = bench.measure(case_of(Load(key_space=3), concurrency=1), tmp_path)
    with psycopg.connect(bench.dsn) as other:
        other.execute(f"LOCK TABLE {schema_of(tmp_path)}.kv_0")
        with pytest.raises(EnvironmentFailure, match=r"cannot read sqlstress_.*lock timeout"):
            done.verdict()


@pytest.mark.thorough
def test_half_a_batch_fails_the_check_of_torn_transactions(tmp_path: Path, bench: Bench) -> None:
    case = case_of(Load(key_space=4, batch=2, read_ratio=0.8), concurrency=1, duration_s=1.0)

    def tear(_pool: Pool) -> None:
        stray = Values(SALT, 8).maker(0)(1)
        bench.insist(1.3, f"UPDATE {schema_of(tmp_path)}.kv_0 SET value = %s WHERE key = 1", stray)

    rejected(bench.measure(case, tmp_path, tear).verdict(), "torn transactions")


@pytest.mark.thorough
@pytest.mark.parametrize("ends", [False, True], ids=["a table is dropped", "a session is ended"])
def test_refusal_of_the_server_is_the_reason(tmp_path: Path, bench: Bench, ends: bool) -> None:
    def drop(_pool: Pool) -> None:
        bench.execute(f"DROP TABLE {schema_of(tmp_path)}.kv_0")

    def end(_pool: Pool) -> None:
        worker = "query LIKE 'SELECT value%%' OR query LIKE 'INSERT%%'"
        sql = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {worker}"
        wait_for(lambda: bench.execute(sql) > 0)

    case = case_of(Load(key_space=KEYS), concurrency=1, duration_s=FOREVER_S)
    (ended,) = bench.measure(case, tmp_path, end if ends else drop).ended
    # Sometimes the connection is lost before the server's message arrives.
    ending = r"(SQLSTATE 57P01|PostgreSQL): .*(terminating|closed the) connection"
    dropped = 'SQLSTATE 42P01: relation "kv_0" does not exist'
    assert re.match(ending if ends else dropped, ended.reason or ""), ended.reason


@pytest.mark.thorough
def test_operation_fails_after_its_time_out(tmp_path: Path, bench: Bench) -> None:
    settings = replace(FAST, busy_timeout_ms=30)
    load = Load(key_space=KEYS, read_ratio=0.0)
    case = case_of(load, concurrency=1, settings=settings, duration_s=FOREVER_S)

    def hold(pool: Pool) -> None:
        with psycopg.connect(bench.dsn) as connection:
            connection.execute(f"LOCK TABLE {schema_of(tmp_path)}.kv_0 IN EXCLUSIVE MODE")
            time.sleep(0.5)
        pool._words[STOP] = 1

    done = bench.measure(case, tmp_path, hold)
    assert done.verdict().status == "ok", done.verdict().counterexamples
    (ended,) = done.ended
    assert ended.done
    assert ended.done.totals.failed and ended.done.totals.longest_wait_ns >= 30_000_000


@pytest.mark.parametrize("seed", mostly_thorough(range(4), [0]))
@pytest.mark.parametrize("load", mostly_thorough(KILLED, KILLED[1:]))
def test_acknowledged_writes_of_a_killed_worker_are_stored(
    tmp_path: Path, bench: Bench, load: Load, seed: int
) -> None:
    case = case_of(load, concurrency=2, seed=seed, duration_s=0.3)
    verdict = bench.measure(case, tmp_path, killing(seed)).verdict()
    assert verdict.status == "ok", verdict.counterexamples


@pytest.mark.thorough
def test_lost_write_of_a_killed_worker_fails_the_proof(tmp_path: Path, bench: Bench) -> None:
    values = Values(SALT, 8)

    def last_written_keys() -> list[int]:
        """Return the keys whose last writer was the second worker."""
        rows = bench.rows(tmp_path, "kv_0")
        return [key for key, value in rows if (stamp := values.read(value)) and stamp.worker == 2]

    def kill(pool: Pool) -> None:
        wait_for(lambda: bool(last_written_keys()))
        pool._processes[1].kill()
        pool._words[STOP] = 1  # otherwise the other worker might overwrite all of it

    case = case_of(replace(KILLED[0], key_space=20_000), concurrency=2, duration_s=FOREVER_S)
    done = bench.measure(case, tmp_path, kill)
    assert done.verdict().status == "ok"
    (lost, *_) = last_written_keys()
    change = f"UPDATE {schema_of(tmp_path)}.kv_0 SET value = %s WHERE key = %s"
    assert bench.execute(change, values.maker(0)(lost), lost) == 1
    rejected(done.verdict(), "last write", f"key {lost} ")
