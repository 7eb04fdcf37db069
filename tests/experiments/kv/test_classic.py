"""The published measurement: its keys, its order, its transactions, and its proof over a whole sweep."""

import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress import plan
from sqlstress.engine.protocols import Findings, Outcome
from sqlstress.engine.values import Stamp, Values
from sqlstress.experiments.kv import work as parents_half
from sqlstress.experiments.kv import worker as workers_half
from sqlstress.experiments.kv.acks import area_of
from sqlstress.experiments.kv.worker import KINDS, LARGEST_KEY, draw_keys
from sqlstress.report import Verdict
from sqlstress.report.case import Case
from sqlstress.targets.sqlite import files
from tests.experiments.kv.dry import NOWHERE, do
from tests.halves import open_source, open_work
from tests.pulses import nothing, stopped_everywhere

OPS = 60


def classic(**more: Any) -> Case:
    (case,) = plan.cases_of({"preset": "classic", "concurrency": "1", "seed": 1})
    return replace(case, ops=OPS, settings=replace(case.settings, synchronous="off"), **more)


def chunks(source: Any, size: int = 50) -> list[Any]:
    found = []
    while chunk := source.next_chunk(size):
        found.append(chunk)
        do(source, chunk)
    return found


def test_keys_of_a_worker_are_reproducible_and_of_the_whole_range() -> None:
    case = classic()
    keys = draw_keys(case, salt=3, worker=1)
    assert keys == draw_keys(replace(case, concurrency=8), salt=3, worker=1)
    assert len(keys) == OPS
    for other in (draw_keys(case, 3, 2), draw_keys(case, 4, 1), draw_keys(replace(case, seed=2), 3, 1)):
        assert set(other).isdisjoint(keys)
    many = draw_keys(replace(case, ops=20_000), 1, 1)
    assert 0 <= min(many) < 0.01 * LARGEST_KEY
    assert 0.99 * LARGEST_KEY < max(many) <= LARGEST_KEY


@pytest.mark.parametrize("buckets", [1, 5])
def test_all_keys_are_set_and_then_got_shuffled(buckets: int) -> None:
    case = classic(driver="dry", buckets=buckets)
    work = open_work(case, NOWHERE, 3, {})
    work.prepare(nothing)
    source: Any = open_source(case, NOWHERE, 1, 3, work.shared)
    source.store.batches = [("set", bucket) for bucket in range(buckets)]
    source.store.gets = [("get", bucket) for bucket in range(buckets)]
    sets: list[int] = []
    gets: list[int] = []
    while chunk := source.next_chunk(50):
        for kind, (name, bucket), params in zip(chunk.kinds, chunk.calls, chunk.params, strict=True):
            key = params[0][0] if name == "set" else params[0]
            (sets if name == "set" else gets).append(key)
            assert KINDS[kind] == ("replace" if name == "set" else "get")
            assert bucket == key % buckets
            assert name == "set" or len(sets) == OPS, "a get came before the last set"
    assert sets == draw_keys(case, 3, 1)
    assert Counter(gets) == Counter(sets)
    assert gets != sets


def test_every_set_has_a_slot_of_its_own_and_its_value_names_it() -> None:
    case = classic(driver="dry", concurrency=2)
    work = open_work(case, NOWHERE, 3, {})
    work.prepare(nothing)
    source = open_source(case, NOWHERE, 2, 3, work.shared)
    params = [each for chunk in chunks(source) for each in chunk.params if isinstance(each, list)]
    sequences = list(range(1, OPS + 1))
    assert area_of(case, work.shared[0], 2).sequences.tolist() == sequences
    stamps = [Values(3, 8).read(value) for ((_, value),) in params]
    assert stamps == [Stamp(2, sequence) for sequence in sequences]


def test_each_set_is_a_deferred_transaction(tmp_path: Path) -> None:
    case = classic()
    work = open_work(case, tmp_path, 3, {})
    work.prepare(nothing)
    source: Any = open_source(case, tmp_path, 1, 3, work.shared)
    told: list[str] = []
    source.store.client._connections[0]._connection.set_trace_callback(told.append)
    do(source, source.next_chunk(2))
    source.close()
    words = [sql.split()[0].upper() for sql in told]
    assert words == ["BEGIN", "REPLACE", "COMMIT"] * 2
    assert told[0].upper() in ("BEGIN", "BEGIN DEFERRED")


class Sweep:
    """Trials over the same files, each done in this process, one worker after another."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self._carry: dict[Any, Any] = {}
        self._trial = 0

    def trial(self, does: Callable[[Any], Any] = chunks, *, died: bool = False) -> Callable[..., Verdict]:
        """Let every worker do its work; return the function that checks the trial."""
        self._trial += 1
        work = open_work(self.case, self.folder, self._trial, self._carry)
        work.prepare(nothing)
        workers = range(1, self.case.concurrency + 1)
        for worker in workers:
            source = open_source(self.case, self.folder, worker, self._trial, work.shared)
            does(source)
            source.close()
        outcomes = [Outcome(worker, died, None if died else Findings()) for worker in workers]
        return lambda pulse=nothing: work.verify(outcomes, pulse)

    def execute(self, sql: str) -> list[Any]:
        """Run a statement on every file; return all rows."""
        rows = []
        for path in files.paths(self.case, self.folder):
            with files.opened(self.case, path) as connection:
                rows += connection.rows(sql)
        return rows


@pytest.mark.parametrize("buckets", [1, 3])
def test_sweep_keeps_its_files_and_another_case_gets_new_ones(tmp_path: Path, buckets: int) -> None:
    sweep = Sweep(classic(concurrency=2, buckets=buckets), tmp_path)
    for _ in range(3):
        assert sweep.trial()().status == "ok"
    assert len(sweep.execute("SELECT key FROM kv")) == 3 * 2 * OPS
    sweep.case = replace(sweep.case, seed=2)
    assert sweep.trial()().status == "ok"
    assert len(sweep.execute("SELECT key FROM kv")) == 2 * OPS


@pytest.mark.parametrize(
    ("earlier", "sql", "told"),
    [
        (
            True,
            "UPDATE kv SET value = value + 1 WHERE key = {key}",
            "key {key} holds a value that nobody wrote",
        ),
        (True, "DELETE FROM kv WHERE key = {key}", "key {key} is gone"),
        (False, "DELETE FROM kv WHERE key = {key}", "key {key} is gone"),
        (False, "INSERT INTO kv VALUES (-5, {value})", "key -5 holds a value that nobody wrote"),
        (False, "INSERT INTO kv VALUES (1.5, {value})", "key 1.5 (which does not belong into kv.db)"),
    ],
    ids=["changed", "an earlier trial's gone", "this trial's gone", "stranger", "astray"],
)
def test_foreign_change_fails_the_verdict(tmp_path: Path, earlier: bool, sql: str, told: str) -> None:
    sweep = Sweep(classic(), tmp_path)
    key = draw_keys(sweep.case, 1, 1)[7]
    judge = sweep.trial()
    if earlier:
        assert judge().status == "ok"
        judge = sweep.trial()
    sweep.execute(sql.format(key=key, value=Values(1, 8).maker(1)(1)))
    verdict = judge()
    assert verdict.status == "failed"
    assert told.format(key=key) in " ".join(verdict.counterexamples)


def die_before_the_eleventh_stamp(source: Any) -> None:
    chunk = source.next_chunk(OPS)
    source.stamps.begins[0] = 1
    for index, (call, params) in enumerate(zip(chunk.calls, chunk.params, strict=True)):
        call(params)
        if index == 10:
            break
        source.stamps.ends[index] = index + 2


@pytest.mark.parametrize(("own", "status"), [(9, "failed"), (10, "ok"), (11, "ok"), (None, "ok")])
def test_acknowledged_sets_of_a_dead_worker_must_be_there_its_last_may(
    tmp_path: Path, own: int | None, status: str
) -> None:
    sweep = Sweep(classic(), tmp_path)
    judge = sweep.trial(die_before_the_eleventh_stamp, died=True)
    assert len(sweep.execute("SELECT key FROM kv")) == 11
    if own is not None:
        sweep.execute(f"DELETE FROM kv WHERE key = {draw_keys(sweep.case, 1, 1)[own]}")
    assert next(check for check in judge().checks if check.name == "last write").status == status


def test_key_of_two_workers_must_have_the_later_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (parents_half, workers_half):
        monkeypatch.setattr(module, "draw_keys", lambda case, salt, worker: list(range(OPS)))

    def first_worker_sets_later(source: Any) -> None:
        chunks(source)
        if source.worker == 1:
            source.area.begins[7], source.area.ends[7] = 1000, 1001

    sweep = Sweep(classic(concurrency=2), tmp_path)
    assert sweep.trial()().status == "ok"
    verdict = sweep.trial(first_worker_sets_later)()
    assert verdict.counterexamples == (
        "key 7 holds worker 2's write 8, but worker 1's write 8 began after that one completed",
    )


def test_verification_of_many_workers_needs_little_memory(tmp_path: Path) -> None:
    judge = Sweep(classic(concurrency=100), tmp_path).trial()
    tracemalloc.start()
    try:
        assert judge().status == "ok"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1000 * 100 * OPS


def test_verification_can_be_interrupted_at_every_pulse(tmp_path: Path) -> None:
    judge = Sweep(classic(concurrency=12), tmp_path).trial()
    verdicts: list[Verdict] = []
    assert stopped_everywhere(lambda pulse: verdicts.append(judge(pulse))) > 12
    assert [verdict.status for verdict in verdicts] == ["ok"]
