"""The loop in C is equivalent to the loop in Python: equal draws, writes and proofs."""

import sqlite3
import time
from array import array
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.engine.pool import Pool
from sqlstress.engine.values import Values
from sqlstress.engine.worker import STOP
from sqlstress.experiments.kv.acks import area_of
from sqlstress.experiments.kv.keys import DISTRIBUTIONS, KEY_TYPES, number_of
from sqlstress.experiments.kv.native_loop import NativeSource
from sqlstress.experiments.kv.spec import Load
from sqlstress.experiments.kv.worker import KINDS
from sqlstress.report.case import Case, Settings
from sqlstress.targets import open_place
from sqlstress.targets.native import PLAN_WITHOUT_STORE, extension
from sqlstress.targets.sqlite.connections import native_unavailable
from tests.drawing import examples
from tests.experiments.kv import loops
from tests.experiments.kv.dry import GET, PAIR, REPLACE, SALT, UPDATE, Recorder
from tests.experiments.kv.loops import (
    CONTENTS,
    FAST,
    FOREVER_S,
    KEYS,
    KILLED,
    LOOPS,
    SO_FEW,
    check_counts,
    first_worker_results,
    killing,
    killing_a_writer,
    meddling,
    take_back_one,
)
from tests.experiments.measured import Measured, measure, rejected
from tests.halves import open_source, open_work
from tests.loads import OTHERS
from tests.rows import mostly_thorough

pytestmark = pytest.mark.skipif(
    native_unavailable("sqlite3") is not None, reason="there is no native loop here"
)
Drawn = tuple[str, list[int | None]]

loads = st.builds(
    Load,
    read_ratio=st.sampled_from([0.0, 0.31, 0.5, 1.0]),
    update_ratio=st.just(0.0),
    key_space=st.sampled_from([7, 64, 1000]),
    distribution=st.sampled_from(DISTRIBUTIONS),
    key_type=st.sampled_from(KEY_TYPES),
    value_size=st.sampled_from([8, 9, 300]),
    batch=st.sampled_from([1, 1, 2, 3, 4]),
)
updating = loads.flatmap(
    lambda load: st.sampled_from([0.0, 0.2]).map(
        lambda ratio: replace(load, update_ratio=min(ratio, 1 - load.read_ratio))
    )
)


def drawn_in_python(recorder: Recorder, size: int) -> list[Drawn]:
    """Return the kind of each operation of a chunk, and its keys or counter."""
    case = recorder.case
    chunk = recorder.source.next_chunk(size)
    found = []
    for kind, params in zip(chunk.kinds, chunk.params, strict=False):
        name = KINDS[kind]
        keys = params
        if name == REPLACE:
            keys = [key for key, _ in params] if case.spec.batch > 1 else params[:1]
        numbers = [key if name == UPDATE else number_of(key, case.spec.key_type) for key in keys]
        found.append((name, numbers))
    return found


def drawn_in_c(source: Any, sizes: list[int]) -> Iterator[list[Drawn]]:
    plan = source.plan | {
        **PLAN_WITHOUT_STORE,
        **dict.fromkeys(("stores", "opens", "closes", "bin_ns", "limit"), 0),
        **dict.fromkeys(("progress", "stop"), array("q", [0])),
        "largest_chunk": max(sizes),
    }
    width = source.case.spec.batch
    rows = {GET: 1, UPDATE: 1, PAIR: 2, REPLACE: width}
    for kinds, _, numbers in extension().drawn(plan, sizes):
        keys = array("q", numbers).tolist()
        names = [KINDS[kind] for kind in kinds]
        yield [(name, keys[place * width : place * width + rows[name]]) for place, name in enumerate(names)]


@given(
    load=updating,
    buckets=st.sampled_from([1, 3]),
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=3),
    seed=st.integers(0, 1 << 32),
)
def test_both_loops_draw_the_same_kinds_and_keys(
    load: Load, buckets: int, sizes: list[int], seed: int
) -> None:
    if load.batch > 1:
        load = replace(load, key_space=1000)  # each bucket has room for a batch of distinct keys
    recorder = Recorder(load, buckets, worker=2, concurrency=2, seed=seed)
    source = native_of(recorder, worker=2)
    expected = [drawn_in_python(recorder, size) for size in sizes]
    assert list(drawn_in_c(source, sizes)) == expected


def native_of(recorder: Recorder, worker: int = 1) -> Any:
    """Return an equivalent worker with the loop in C."""
    case = replace(recorder.case, spec=replace(recorder.case.spec, loop="native"))
    return open_source(case, Path("nowhere"), worker, SALT, recorder.work.shared)


def test_ten_thousand_zipfian_keys_are_equal_in_c() -> None:
    recorder = Recorder(Load(key_space=100_000, distribution="zipfian", read_ratio=1.0))
    source, sizes = native_of(recorder), [1000] * 10
    assert list(drawn_in_c(source, sizes)) == [drawn_in_python(recorder, size) for size in sizes]


NOT_IN_THE_PLAN = {
    "begin": "the store prepares the statement, which a contract of stores sees",
    "loop": "which of the two loops it is",
    "where": "the shim below SQLite records it, whatever drives the load",
    "checkpointing": "processes of their own do it",
}


def plan_of(load: Load) -> dict[str, Any]:
    """Return the load's options as the loop in C gets them, without shared memory."""
    plan = native_of(Recorder(load)).plan
    return {name: value for name, value in plan.items() if isinstance(value, int | float | None)}


def test_no_field_of_a_load_is_ignored_by_the_loop_in_c() -> None:
    usual = plan_of(Load())
    assert plan_of(Load()) == usual
    told = {name: value for name, value in OTHERS.items() if name not in NOT_IN_THE_PLAN}
    assert [name for name, value in told.items() if plan_of(Load(**{name: value})) == usual] == []


def case_of(load: Load, loop: str, driver: str = "sqlite3", **more: Any) -> Case:
    return loops.case_of(replace(load, loop=loop), driver=driver, **more)


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
@pytest.mark.parametrize("buckets", mostly_thorough([1, 3], [3]))
@pytest.mark.parametrize("load", mostly_thorough(CONTENTS, CONTENTS[3:4]))
def test_both_loops_leave_the_same_rows_counters_and_acknowledgements(
    tmp_path: Path, driver: str, buckets: int, load: Load
) -> None:
    if native_unavailable(driver):
        pytest.skip("no native loop here")
    left = {}
    for loop in LOOPS:
        case = case_of(load, loop, driver, buckets=buckets, ops=SO_FEW, seed=5, warmup_s=0.0, concurrency=1)
        folder = tmp_path / loop
        folder.mkdir()
        done = measure(case, folder)
        assert done.verdict().status == "ok", done.verdict()
        rows = [done.rows("SELECT key, value FROM kv ORDER BY key", bucket=n) for n in range(buckets)]
        left[loop] = rows, *first_worker_results(done)
    assert left["native"] == left["python"]
    assert left["native"][-1] == SO_FEW


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
@pytest.mark.parametrize(
    ("load", "settings"),
    mostly_thorough(
        [
            (Load(key_space=KEYS, batch=4, update_ratio=0.2), FAST),
            (Load(key_space=KEYS, batch=4, update_ratio=0.2, begin="deferred"), FAST),
            (Load(key_space=KEYS, key_type="text", value_size=5000), replace(FAST, journal_mode="delete")),
            (Load(key_space=KEYS, read_ratio=1.0, batch=2), FAST),
        ],
        [],
    ),
)
def test_counts_agree_with_each_other(tmp_path: Path, driver: str, load: Load, settings: Settings) -> None:
    done = measure(case_of(load, "native", driver, settings=settings, concurrency=3, buckets=2), tmp_path)
    assert done.verdict().status == "ok", done.verdict().counterexamples
    check_counts(done)


@settings(max_examples=examples(4))
@given(ns=st.integers(0, 1 << 62))
def test_latency_has_the_same_histogram_bin_in_c(ns: int) -> None:
    from sqlstress.statistics.histogram import bin_of

    assert extension().latency_bin(ns) == bin_of(ns)


@pytest.mark.thorough
def test_value_from_before_the_workers_own_write_is_a_bad_read(tmp_path: Path) -> None:
    """The loop in Python cannot detect it, because a write of this trial made the value."""
    case = case_of(Load(key_space=3, read_ratio=0.9), "native", concurrency=1, duration_s=1.0)

    def restore(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE kv SET value = ? WHERE key = 2", (Values(SALT, 8).maker(0)(2),))

    verdict = measure(case, tmp_path, meddling(tmp_path, 1.15, restore)).verdict()
    rejected(verdict, "values read", "a get of key 2 read the preload after")


@pytest.mark.parametrize(("acknowledged_ns", "is_stale"), [(1, True), (1 << 62, False)])
def test_value_that_was_replaced_before_the_get_began_is_a_bad_read(
    tmp_path: Path, acknowledged_ns: int, is_stale: bool
) -> None:
    """The write of another worker, if it was acknowledged before; one of 256 gets is checked."""
    case = case_of(Load(key_space=2, read_ratio=0.9), "native", concurrency=2, ops=3000)
    work = open_work(case, tmp_path, SALT, {})
    work.prepare(lambda: None)
    other = area_of(case, work.shared[0], 2)
    for key in range(2):
        other.sequences[key], other.begins[key], other.ends[key] = 9, 1, acknowledged_ns
    with closing(sqlite3.connect(tmp_path / "kv.db", isolation_level=None)) as connection:
        # Each write of worker 1 is replaced with the other worker's fifth write.
        made = int(Values(SALT, 8).maker(2)(5))
        connection.execute(
            "CREATE TRIGGER back AFTER INSERT ON kv "
            f"BEGIN UPDATE kv SET value = {made} WHERE key = new.key; END"
        )
        connection.execute("UPDATE kv SET value = ?", (made,))
    source = NativeSource(case, open_place(case, tmp_path), 1, SALT, work.shared)
    now = time.perf_counter_ns()
    progress, stop = (memoryview(bytearray(64)).cast("q") for _ in range(2))
    source.run(Window(now, now, FOREVER_NS), 3000, progress, stop)
    examples = source.findings().bad_read_examples
    source.close()
    work.release()
    told = [text for text in examples if "worker 2's write 9 was acknowledged" in text]
    assert bool(told) == is_stale


@pytest.mark.parametrize("loop", LOOPS)
def test_both_loops_report_the_same_sqlite_error(tmp_path: Path, loop: str) -> None:
    case = case_of(Load(key_space=KEYS), loop, concurrency=1, duration_s=FOREVER_S)

    def drop(_pool: Pool) -> None:
        with closing(sqlite3.connect(tmp_path / "kv.db", timeout=10, isolation_level=None)) as connection:
            connection.execute("DROP TABLE kv")

    (ended,) = measure(case, tmp_path, drop).ended
    assert ended.reason == "SQLITE_ERROR: no such table: kv"


@pytest.mark.thorough
def test_operation_is_given_up_after_its_time_out(tmp_path: Path) -> None:
    settings = replace(FAST, busy_timeout_ms=30)
    load = Load(key_space=KEYS, read_ratio=0.0)
    case = case_of(load, "native", concurrency=1, settings=settings, duration_s=FOREVER_S)

    def hold(pool: Pool) -> None:
        with closing(sqlite3.connect(tmp_path / "kv.db", timeout=10, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(0.5)
            connection.execute("ROLLBACK")
        pool._words[STOP] = 1

    done = measure(case, tmp_path, hold)
    assert done.verdict().status == "ok", done.verdict().counterexamples
    (ended,) = done.ended
    assert ended.done and ended.done.totals.failed
    assert ended.done.totals.longest_wait_ns >= 30_000_000


def killed(folder: Path, load: Load, driver: str, seed: int) -> Measured:
    """Measure, and kill a worker at a random moment of its window."""
    case = case_of(load, "native", driver, concurrency=2, seed=seed, duration_s=0.3, settings=FAST)
    return measure(case, folder, killing(seed))


@pytest.mark.parametrize("seed", mostly_thorough(range(8), [0]))
@pytest.mark.parametrize("load", mostly_thorough(KILLED, KILLED[:1]), ids=["replaces", "batches"])
def test_acknowledged_writes_survive_a_kill_at_any_moment(tmp_path: Path, load: Load, seed: int) -> None:
    done = killed(tmp_path, load, ("sqlite3", "apsw")[seed % 2], seed)
    verdict = done.verdict()
    assert verdict.status == "ok", verdict.counterexamples
    assert max(area_of(done.case, done.work.shared[0], 2).sequences.tolist()) > 0 or not any(
        outcome.died for outcome in done.outcomes
    )


def test_reverted_write_of_a_killed_worker_is_caught(tmp_path: Path) -> None:
    load = replace(KILLED[0], key_space=20_000)
    case = case_of(load, "native", concurrency=2, duration_s=FOREVER_S, settings=FAST)
    done = measure(case, tmp_path, killing_a_writer(tmp_path))
    assert done.verdict().status == "ok"
    take_back_one(done)
