"""The experiment on real files, by real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine.summary import outcomes
from sqlstress.experiments.keys import ids
from sqlstress.experiments.keys import worker as source
from sqlstress.experiments.keys.experiment import ID_TYPES, SCHEMAS, Picks
from sqlstress.experiments.keys.ids import picked_by, users_of
from tests.example_report import example_report
from tests.experiments.keys.cases import case_of
from tests.experiments.measured import SALT, Measured, measure, statuses
from tests.halves import open_work
from tests.pulses import nothing, stopped_everywhere
from tests.rows import mostly_thorough

COMBINATIONS = [
    (schema, id_type, made_by)
    for schema in SCHEMAS
    for id_type in ID_TYPES
    for made_by in ("python", "sqlite")
    if made_by == "python" or schema.startswith("id-")
]


FILE = ("quick_check", "schema", "users and items")
MIXED = [(driver, *each) for driver, each in zip(cycle(["sqlite3", "apsw"]), COMBINATIONS[::2], strict=False)]
"""Every second of them, with the one driver and the other in turn."""


@pytest.mark.parametrize(("driver", "schema", "id_type", "made_by"), mostly_thorough(MIXED, MIXED[::4]))
def test_every_pick_that_was_acknowledged_is_there(
    tmp_path: Path, driver: str, schema: str, id_type: str, made_by: str
) -> None:
    pytest.importorskip(driver)
    case = case_of(schema, id_type, made_by, driver=driver)
    done = measure(case, tmp_path)
    verdict = done.verdict()
    own = ["identifiers"] if schema.startswith("id-") else []
    assert statuses(verdict) == dict.fromkeys([*FILE, "picks", "foreign keys", *own], "ok")
    expected = sum(len(picked_by(case, user)) for user in range(30))
    assert {check.checked for check in verdict.checks if check.name not in FILE} == {expected}
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


class Written:
    """A connection that takes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def writer(self, sql: str) -> Callable[[object], None]:
        return lambda _params: self.told.append(sql)

    def run_many(self, sql: str, rows: Iterable[object]) -> None:
        self.told += [sql for _ in rows]


@pytest.mark.parametrize("begin", ["deferred", "immediate"])
def test_a_users_picks_are_one_transaction_that_begins_as_it_was_asked_to(begin: str) -> None:
    load = Picks("no-key", "int", begin=begin)
    case = case_of("", "", spec=load)
    written: Any = Written()
    insert = source.insertion(case, written, source.rows_of(case))
    insert(source.UserPicks(7, [1, 2, 3], 1))
    insertions = ["INSERT INTO picks (user, item) VALUES (?, ?)"] * 3
    assert written.told == [f"BEGIN {begin}", *insertions, "COMMIT"]


def test_ids_are_made_while_the_transaction_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    case, written = case_of("id-rowid", "uuid4"), Written()
    monkeypatch.setattr(ids, "maker", lambda id_type: lambda: written.told.append(f"made {id_type}"))
    connection: Any = written
    source.insertion(case, connection, source.rows_of(case))(source.UserPicks(7, [1], 1))
    assert [text.split("(")[0] for text in written.told] == [
        "BEGIN deferred",
        "made uuid4",
        "INSERT INTO picks ",
        "COMMIT",
    ]


def test_the_space_is_measured_of_a_file_that_is_right_and_of_no_other(tmp_path: Path) -> None:
    done = measure(case_of("no-key", "int"), tmp_path)
    trial = replace(example_report().runs[0].trials[0], verdict=done.verdict())
    space = done.work.complete(trial, nothing).space
    assert space
    assert space.table_alone("picks").entries == done.rows("SELECT count(*) FROM picks")[0][0]
    done.path.write_bytes(b"nothing that SQLite can read")
    wrong = replace(trial, verdict=done.verdict())
    assert wrong.verdict.status == "failed"
    assert done.work.complete(wrong, nothing) is wrong


@pytest.mark.thorough
def test_preparing_and_proving_can_be_stopped_anywhere_and_begun_again(tmp_path: Path) -> None:
    load = Picks("id-rowid", "uuid7", users=300, picks=10, items=600)
    case = case_of("", "", spec=load)
    work = open_work(case, tmp_path, SALT, {})
    # Ids are made and written: of 300 users and of 600 items, with a pulse for each 256.
    assert stopped_everywhere(work.prepare) >= 2 * (2 + 3)
    done = measure(case, tmp_path)
    ended = outcomes(done.ended)
    assert stopped_everywhere(lambda pulse: done.work.verify(ended, pulse)) > 10
    assert done.verdict().status == "ok"
