"""A worker that is killed at any moment: nothing that was acknowledged is lost."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from sqlstress.engine.pool import Pool
from sqlstress.engine.summary import outcomes
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Settings
from sqlstress_lmdb.environments import Held, map_size
from sqlstress_lmdb.place import LmdbPlace
from tests.damage import trial
from tests.damage.trial import work_on
from tests.pulses import nothing
from tests.rows import mostly_long, mostly_thorough

CASE = Case(
    driver="lmdb",
    concurrency=3,
    duration_s=0.3,
    warmup_s=0.05,
    settings=Settings(synchronous="off"),
    spec=Load(key_space=200, read_ratio=0.2, update_ratio=0.3, batch=4),
)

pytestmark = pytest.mark.skipif(
    sys.platform == "darwin", reason="LMDB's lock outlives whoever is killed with it, on macOS"
)


@pytest.mark.parametrize("seed", mostly_long(range(1, 12), (1, 2, 3)))
@pytest.mark.parametrize("level", mostly_thorough(("off", "full"), ("off",)))
def test_acknowledged_writes_of_a_killed_worker_are_there(
    tmp_path: Path, seed: int, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "READY_S", 10.0)
    draw = Random(seed)
    case = replace(CASE, settings=replace(CASE.settings, synchronous=level))

    def kill(pool: Pool) -> None:
        time.sleep(0.35 * draw.random())
        pool._processes[1].kill()

    done = work_on(case, tmp_path, 7, {}, kill)
    # If the killed worker had just been woken, another worker may never wake: it is ended as hung.
    ended = {exit_.worker: exit_.reason or "" for exit_ in done.ended if not exit_.done}
    assert all("hung" in reason for worker, reason in ended.items() if worker != 2)
    verdict = done.work.verify(outcomes(done.ended), nothing)
    assert {check.name: check.status for check in verdict.checks} == {
        "values read": "ok",
        "torn transactions": "ok",
        "lmdb.verify": "ok",
        "schema": "ok",
        "last write": "ok",
        "lost updates": "ok",
    }


READS = """
import sys, time, lmdb
environment = lmdb.open(sys.argv[1], subdir=False, max_dbs=4, map_size=int(sys.argv[2]))
snapshot = environment.begin()
print("ready", flush=True)
time.sleep(600)
"""


def test_pages_of_a_killed_reader_do_not_fill_the_file(tmp_path: Path) -> None:
    place = LmdbPlace(CASE, tmp_path)
    table = place.table("int", 8, 1)
    table.create(nothing)
    table.fill([[(1, 0)]], nothing)
    table.release()
    words = [sys.executable, "-c", READS, str(place.paths[0]), str(map_size(CASE))]
    # The first process to open the file clears the table of readers, so it is opened before the reader.
    with closing(place.keyvalue(1, "immediate", None)) as store:
        with subprocess.Popen(words, stdout=subprocess.PIPE) as reader:
            assert reader.stdout and reader.stdout.readline()
            reader.kill()
        # Each put writes a new page or more: without the check for dead readers no page is used again.
        for number in range(2 * map_size(CASE) // 4096):
            store.puts[0]((1, number))
        assert store.gets[0]((1,)) == number


def test_missing_acknowledged_write_is_found(tmp_path: Path) -> None:
    done = work_on(replace(CASE, spec=replace(CASE.spec, batch=1)), tmp_path, 7, {}, lambda pool: None)
    place = LmdbPlace(CASE, tmp_path)
    held = Held(CASE, place.paths[0])
    with held.environment.begin(write=True, db=held.database(b"kv")) as txn:
        cursor = txn.cursor()
        cursor.first()
        txn.delete(bytes(cursor.key()))
    with held.environment.begin(write=True, db=held.database(b"counter")) as txn:
        txn.put(bytes(8), bytes(8))
    held.close()
    verdict = done.work.verify(outcomes(done.ended), nothing)
    failed = {check.name: check.counterexamples for check in verdict.checks if check.status == "failed"}
    assert failed["last write"] == ("key 0 is gone",)
    assert failed["lost updates"][0].startswith("counter kv.mdb:0 is 0 after ")
