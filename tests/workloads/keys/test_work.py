"""The experiment on real files, by real processes; then the file is broken on purpose."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from sqlstress.case import ID_TYPES, SCHEMAS, Case, Picks, Settings
from sqlstress.engine.pool import Ended, Pool
from sqlstress.engine.trial import outcomes, plan_window
from sqlstress.engine.worker import SLOT_WORDS
from sqlstress.report import Check, Verdict
from sqlstress.stores import files
from sqlstress.workloads import open_work
from sqlstress.workloads.base import Work
from sqlstress.workloads.keys.choices import picked_by, users_of

SALT = 7
FAST = Settings(synchronous="off", pragmas=(("foreign_keys", "on"),))


def nothing() -> None:
    pass


def case_of(schema: str, id_type: str, made_by: str = "python", **fields: Any) -> Case:
    load = Picks(schema, id_type, made_by, users=30, picks=10, items=60)
    return Case(
        **{"workload": "keys", "concurrency": 2, "settings": FAST, "picks": load, "seed": 3, **fields}
    )


@dataclass
class Measured:
    """A trial whose workers have ended and whose data has not been looked at."""

    case: Case
    path: Path
    work: Work
    ended: Sequence[Ended]

    def verdict(self) -> Verdict:
        return self.work.verify(outcomes(self.ended), nothing)

    def rows(self, sql: str, *params: object) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(sql, params).fetchall()

    def execute(self, sql: str, *params: object) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            assert connection.execute(sql, params).rowcount > 0


def measure(case: Case, folder: Path, during: Callable[[Pool], None] = lambda pool: None) -> Measured:
    work = open_work(case, folder, SALT, {})
    work.prepare(nothing)
    with Pool(case, folder, SALT, work.shared) as pool:
        pool.start(nothing)
        assert pool.wait_ready(60, nothing) == []
        pool.go(plan_window(case, time.perf_counter_ns()))
        during(pool)
        ended = pool.gather(60, nothing)
    return Measured(case, files.paths(case, folder)[0], work, ended)


def statuses(verdict: Verdict) -> dict[str, str]:
    return {check.name: check.status for check in verdict.checks}


def rejected(verdict: Verdict, name: str) -> Check:
    """Return the check of a name, which must have failed."""
    found = {check.name: check for check in verdict.checks}
    assert found[name].status == "failed", verdict
    return found[name]


COMBINATIONS = [
    (schema, id_type, made_by)
    for schema in SCHEMAS
    for id_type in ID_TYPES
    for made_by in ("python", "sqlite")
    if made_by == "python" or schema.startswith("id-")
]


MIXED = [(driver, *each) for driver, each in zip(cycle(["sqlite3", "apsw"]), COMBINATIONS[::2], strict=False)]
"""Every second of them, with the one driver and the other in turn."""


@pytest.mark.parametrize(("driver", "schema", "id_type", "made_by"), MIXED)
def test_every_pick_that_was_acknowledged_is_there(
    tmp_path: Path, driver: str, schema: str, id_type: str, made_by: str
) -> None:
    pytest.importorskip(driver)
    case = case_of(schema, id_type, made_by, driver=driver)
    done = measure(case, tmp_path)
    verdict = done.verdict()
    own = ["identifiers"] if schema.startswith("id-") else []
    assert statuses(verdict) == dict.fromkeys(["quick_check", "picks", "foreign keys", *own], "ok")
    expected = sum(len(picked_by(case, user)) for user in range(30))
    assert {check.checked for check in verdict.checks if check.name != "quick_check"} == {expected}
    assert done.rows("SELECT count(*) FROM picks") == [(expected,)]
    for one in done.ended:
        assert one.done
        assert one.done.findings.effective["foreign_keys"] == "1"
        assert one.done.totals.operations == {"picks": len(users_of(case, one.worker))}
        assert one.done.totals.rows == sum(len(picked_by(case, user)) for user in users_of(case, one.worker))


@pytest.mark.parametrize(
    ("made_by", "schema", "expected"),
    [
        ("python", "id-rowid", lambda done: {user * 11 + 1 for user in range(30)}),
        ("sqlite", "id-rowid", lambda done: {1}),
        ("sqlite", "id-norowid", lambda done: {1}),
    ],
)
def test_integers_are_given_in_ranges_by_python_and_without_gaps_by_sqlite(
    tmp_path: Path, made_by: str, schema: str, expected: Callable[[Measured], set[int]]
) -> None:
    done = measure(case_of(schema, "int", made_by), tmp_path)
    numbers = {row[0] for row in done.rows("SELECT id FROM picks")}
    assert {number for number in numbers if number - 1 not in numbers} <= expected(done)
    assert done.verdict().status == "ok"


def test_without_a_database_the_rows_are_made_and_nothing_else(tmp_path: Path) -> None:
    done = measure(case_of("id-rowid", "uuid4", driver="dry"), tmp_path)
    assert [one.done.totals.operations for one in done.ended if one.done] == [{"picks": 15}] * 2
    assert statuses(done.verdict()) == {"verification": "skipped"}
    assert not any(tmp_path.iterdir())


def test_what_is_not_to_be_verified_is_not(tmp_path: Path) -> None:
    done = measure(case_of("no-key", "int", verify="none"), tmp_path)
    assert done.verdict().status == "skipped"


def test_the_files_are_removed_at_the_end(tmp_path: Path) -> None:
    done = measure(case_of("no-key", "int"), tmp_path)
    assert done.path.exists()
    done.work.discard()
    assert not any(tmp_path.iterdir())


# Broken on purpose


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measure(case_of("id-rowid", "uuid7"), tmp_path_factory.mktemp("original"))


@pytest.fixture
def measured(original: Measured) -> Iterator[Measured]:
    """The same measured trial for every test; what a test does to its file is undone."""
    with closing(sqlite3.connect(original.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = original.path.read_bytes()
    yield original
    files.remove(original.case, original.path.parent)
    original.path.write_bytes(before)


def test_an_untouched_file_is_accepted(measured: Measured) -> None:
    assert set(statuses(measured.verdict()).values()) == {"ok"}


def test_a_pick_that_is_gone_is_found(measured: Measured) -> None:
    measured.execute("DELETE FROM picks WHERE rowid = 17")
    check = rejected(measured.verdict(), "picks")
    assert (check.problems, check.counterexamples[0][-7:]) == (1, "is gone")


def test_a_pick_that_was_exchanged_for_another_is_found(measured: Measured) -> None:
    (user, item), (_, other) = measured.rows("SELECT user, item FROM picks LIMIT 2")
    measured.execute("UPDATE picks SET item = ? WHERE user = ? AND item = ?", other, user, item)
    assert rejected(measured.verdict(), "picks").problems == 2


def test_a_pick_of_somebody_who_does_not_exist_is_found(measured: Measured) -> None:
    measured.execute("UPDATE picks SET user = x'00' WHERE rowid = 3")
    verdict = measured.verdict()
    assert "which do not both exist" in rejected(verdict, "picks").counterexamples[0]
    assert rejected(verdict, "foreign keys").counterexamples == (
        "row 3 of picks refers to a row of users that is not there",
    )


def test_a_foreign_key_that_dangles_is_found(measured: Measured) -> None:
    (item,) = measured.rows("SELECT item FROM picks WHERE rowid = 5")[0]
    measured.execute("DELETE FROM items WHERE id = ?", item)
    check = rejected(measured.verdict(), "foreign keys")
    assert check.problems == len(measured.rows("SELECT 1 FROM picks WHERE item = ?", item))


def test_an_id_out_of_order_is_found(measured: Measured) -> None:
    measured.execute("UPDATE picks SET id = zeroblob(16) WHERE rowid = 40")
    assert "is not greater" in rejected(measured.verdict(), "identifiers").counterexamples[0]


def test_an_id_that_is_none_is_found(measured: Measured) -> None:
    measured.execute("UPDATE picks SET id = 'an id' WHERE rowid = 40")
    assert "is not of the type uuid7" in rejected(measured.verdict(), "identifiers").counterexamples[0]


def test_the_same_id_for_two_picks_is_found_where_no_key_forbids_it(measured: Measured) -> None:
    with closing(sqlite3.connect(measured.path)) as connection, connection:
        connection.execute("ALTER TABLE picks RENAME TO old")
        connection.execute("CREATE TABLE picks AS SELECT * FROM old")
        connection.execute("UPDATE picks SET id = (SELECT id FROM picks WHERE rowid = 1) WHERE rowid = 2")
    told = rejected(measured.verdict(), "identifiers").counterexamples
    assert any("is there twice" in text for text in told)


def test_a_damaged_page_is_found(measured: Measured) -> None:
    (page_size,), (root,) = (
        measured.rows(sql)[0]
        for sql in ("PRAGMA page_size", "SELECT rootpage FROM sqlite_schema WHERE name = 'picks'")
    )
    with measured.path.open("r+b") as file:
        # The cell pointers of the table's root page, which every look-up passes.
        file.seek((root - 1) * page_size + 12)
        file.write(b"\xff\xff\xff\xff")
    rejected(measured.verdict(), "quick_check")


def test_a_file_that_is_gone_is_told(measured: Measured) -> None:
    measured.path.unlink()
    verdict = measured.verdict()
    assert rejected(verdict, "quick_check").counterexamples == ("kv.db: the file is gone",)
    assert verdict.status == "failed"


def test_a_pick_that_was_inserted_twice_is_found_where_no_key_forbids_it(tmp_path: Path) -> None:
    done = measure(case_of("no-key", "ulid"), tmp_path)
    assert done.verdict().status == "ok"
    done.execute("INSERT INTO picks (user, item) SELECT user, item FROM picks WHERE rowid = 9")
    assert "is there 2 times" in rejected(done.verdict(), "picks").counterexamples[0]


def test_what_a_killed_worker_was_told_still_counts_and_its_last_transaction_is_there_wholly_or_not(
    tmp_path: Path,
) -> None:
    load = Picks("id-rowid", "ulid-monotonic", users=20_000, picks=10, items=60)
    # Fair waits, so that each worker gets to write at all.
    case = case_of("", "", picks=load, settings=Settings(synchronous="off", busy="fair"))

    def kill(pool: Pool) -> None:
        end = time.monotonic() + 60
        while min(pool._words[SLOT_WORDS::SLOT_WORDS]) < 100 and time.monotonic() < end:
            time.sleep(0.001)
        for process in pool._processes:
            process.kill()

    done = measure(case, tmp_path, kill)
    assert [one.worker for one in outcomes(done.ended) if one.died] == [1, 2]
    verdict = done.verdict()
    assert verdict.status == "ok", verdict.counterexamples
    count = next(check.checked for check in verdict.checks if check.name == "picks")
    assert 2000 < count < 200_000
    # What is there of the two that were under way is all or nothing, and the rest is held against the file.
    done.execute("DELETE FROM picks WHERE rowid = (SELECT max(rowid) FROM picks)")
    assert rejected(done.verdict(), "picks").problems == 1
