"""The tables match docs/keys.md, real processes fill them, and ids keep their guarantees."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count, cycle, pairwise, product, repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.summary import outcomes
from sqlstress.experiments.classics import worker
from sqlstress.experiments.classics.spec import ID_TYPES, SCHEMAS, Picks
from sqlstress.experiments.classics.work import NOW, definitions
from sqlstress.experiments.classics.worker import Step, insert_statement, picked_by, users_of
from sqlstress.report.case import Case
from tests.example_report import example_report
from tests.experiments.classics.cases import keys_case
from tests.experiments.measured import SALT, measure, statuses
from tests.halves import open_work
from tests.pulses import nothing, stopped_everywhere
from tests.rows import mostly_thorough

COMBINATIONS = [*product(SCHEMAS, ID_TYPES)]


FILE = ("quick_check", "schema", "users and items")
MIXED = [(driver, *each) for driver, each in zip(cycle(["sqlite3", "apsw"]), COMBINATIONS, strict=False)]
"""All combinations, with the two drivers in turn."""


@pytest.mark.parametrize(("driver", "schema", "id_type"), mostly_thorough(MIXED, MIXED[::8]))
def test_acknowledged_picks_are_in_the_file(tmp_path: Path, driver: str, schema: str, id_type: str) -> None:
    pytest.importorskip(driver)
    case = keys_case(schema, id_type, driver=driver)
    done = measure(case, tmp_path)
    verdict = done.verdict()
    own = ["identifiers"] if schema.startswith("id-") else []
    assert statuses(verdict) == dict.fromkeys([*FILE, "picks", "foreign keys", *own], "ok")
    expected = sum(len(picked_by(case, user)) for user in range(30))
    checked = {check.name: check.checked for check in verdict.checks}
    # Each pick has two foreign keys.
    assert (checked["picks"], checked["foreign keys"]) == (expected, 2 * expected)
    assert checked.get("identifiers", expected) == expected
    assert done.rows("SELECT count(*) FROM picks") == [(expected,)]
    for exit_ in done.ended:
        assert exit_.done
        assert exit_.done.findings.effective["foreign_keys"] == "1"
        assert exit_.done.totals.operations == {"picks": len(users_of(case, exit_.worker))}
        assert exit_.done.totals.rows == sum(
            len(picked_by(case, user)) for user in users_of(case, exit_.worker)
        )


def test_each_user_has_a_range_of_integers(tmp_path: Path) -> None:
    done = measure(keys_case("id-rowid", "int"), tmp_path)
    numbers = {row[0] for row in done.rows("SELECT id FROM picks")}
    assert {number for number in numbers if number - 1 not in numbers} <= {
        user * 11 + 1 for user in range(30)
    }
    assert done.verdict().status == "ok"


def test_dry_driver_makes_the_rows_and_writes_no_file(tmp_path: Path) -> None:
    done = measure(keys_case("id-rowid", "uuid4", driver="dry"), tmp_path)
    assert [exit_.done.totals.operations for exit_ in done.ended if exit_.done] == [{"picks": 15}] * 2
    assert statuses(done.verdict()) == {"verification": "skipped"}
    assert not any(tmp_path.iterdir())


class Written:
    """A connection that records its statements."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def writer(self, sql: str) -> Callable[[object], None]:
        return lambda _params: self.statements.append(sql)

    def run_many(self, sql: str, rows: Iterable[object]) -> None:
        for _ in rows:
            self.statements.append(sql)


@pytest.mark.parametrize("begin", ["deferred", "immediate"])
def test_user_picks_and_their_ids_are_one_transaction(begin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Picks("id-rowid", "uuid4", begin=begin)
    written: Any = Written()
    monkeypatch.setitem(worker.MAKERS, "uuid4", lambda: lambda: written.statements.append("made uuid4"))
    worker.insertion(load, written)([(1, 7, 1), (2, 7, 2)])
    each = ["made uuid4", "INSERT INTO picks (id, user, item) VALUES (?, ?, ?)"]
    assert written.statements == [f"BEGIN {begin}", *each, *each, "COMMIT"]


def test_space_is_measured_only_if_the_data_is_right(tmp_path: Path) -> None:
    done = measure(keys_case("no-key", "int"), tmp_path)
    trial = replace(example_report().runs[0].trials[0], verdict=done.verdict())
    space = done.work.complete(trial, nothing).space
    assert space
    assert space.table_alone("picks").total("entries") == done.rows("SELECT count(*) FROM picks")[0][0]
    done.path.write_bytes(b"nothing that SQLite can read")
    wrong = replace(trial, verdict=done.verdict())
    assert wrong.verdict.status == "failed"
    assert done.work.complete(wrong, nothing) is wrong


@pytest.mark.thorough
def test_preparing_and_verifying_can_be_interrupted_and_repeated(tmp_path: Path) -> None:
    load = Picks("id-rowid", "uuid7", users=300, picks=10, items=600)
    case = keys_case("", "", spec=load)
    work = open_work(case, tmp_path, SALT, {})
    # The ids of 300 users and 600 items are made and written, with a pulse per 256 of each.
    assert stopped_everywhere(work.prepare) >= 2 * (2 + 3)
    done = measure(case, tmp_path)
    ended = outcomes(done.ended)
    assert stopped_everywhere(lambda pulse: done.work.verify(ended, pulse)) > 10
    assert done.verdict().status == "ok"


# The tables.


COMMON = ["user", "item", "priority", "public", "done", "when_done", "last_updated"]


def created(picks: Picks) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for statement in definitions(picks):
        connection.execute(statement)
    return connection


def indices(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the origin of each index of the table of picks, c (CREATE INDEX) or pk, by its columns."""
    found = {}
    for _, name, _, origin, _ in connection.execute("PRAGMA index_list(picks)"):
        columns = [row[2] for row in connection.execute(f"PRAGMA index_info({name})")]
        found[", ".join(columns)] = origin
    return found


@pytest.mark.parametrize("id_type", ["int", "uuid4"])
@pytest.mark.parametrize(
    ("schema", "more", "key", "rowid"),
    [
        ("id-rowid", ["id"], "id", True),
        ("id-norowid", ["id"], "id", False),
        ("pair-norowid", [], "user, item", False),
        ("no-key", ["created_at"], None, True),
        ("pair-rowid", ["created_at"], "user, item", True),
    ],
)
def test_each_schema_has_its_columns_its_key_and_two_indices(
    schema: str, more: list[str], key: str | None, rowid: bool, id_type: str
) -> None:
    with closing(created(Picks(schema, id_type))) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(picks)")]
        assert sorted(columns) == sorted([*COMMON, *more])
        own = dict.fromkeys(["user", "item"], "c")
        if key and not (rowid and key == "id" and id_type == "int"):
            own[key] = "pk"  # an integer key of a table with rowids is the rowid
        assert indices(connection) == own
        text = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'picks'").fetchone()[0]
        assert text.endswith("WITHOUT ROWID") != rowid
        keys = {row[2:5] for row in connection.execute("PRAGMA foreign_key_list(picks)")}
        assert keys == {("users", "user", "id"), ("items", "item", "id")}


@pytest.mark.parametrize("id_type", ID_TYPES)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_pick_is_inserted_with_its_default_values(schema: str, id_type: str) -> None:
    picks = Picks(schema, id_type)
    sql = insert_statement(picks)
    with closing(created(picks)) as connection:
        for number in (1, 2) if id_type == "int" else (1,):
            connection.execute(sql, (*[number] * (sql.count("?") - 2), 10 + number, 20))
        rows = connection.execute("SELECT user, item, public, done, priority, when_done FROM picks")
        assert next(rows) == (11, 20, 1, 0, None, None)
        (age,) = connection.execute(f"SELECT {NOW} - last_updated FROM picks").fetchone()
        assert 0 <= age < 60
        if picks.own_id:
            made = [row[0] for row in connection.execute("SELECT id FROM picks ORDER BY id")]
            assert made == ([1, 2] if id_type == "int" else [1])


def test_time_of_creation_is_now() -> None:
    picks = Picks("no-key", "int")
    with closing(created(picks)) as connection:
        connection.execute(insert_statement(picks), (1, 2))
        found = connection.execute(f"SELECT typeof(created_at), {NOW} - created_at < 60 FROM picks")
        assert found.fetchone() == ("integer", 1)


# Identifiers, and the picks that follow from the seed.


BLOBS = [id_type for id_type in ID_TYPES if id_type != "int"]
NOW_NS = 1_689_379_200_123_456_789
clocks = st.lists(st.integers(NOW_NS - 10**10, NOW_NS + 10**10), min_size=2, max_size=60)
"""Answers of a system clock that may stop and may be set back."""


def ticking(times_ns: list[int]) -> Callable[[], int]:
    answers: Iterator[int] = iter(times_ns)
    return lambda: next(answers)


def ascends(made: list[bytes]) -> bool:
    return all(earlier < later for earlier, later in pairwise(made))


@pytest.mark.parametrize("id_type", BLOBS)
def test_ids_are_unique_and_ascend_if_their_type_guarantees_it(id_type: str) -> None:
    make = worker.MAKERS[id_type]()
    made = [make() for _ in range(30_000)]
    assert len(set(made)) == len(made)
    assert set(map(len, made)) == {worker.SIZE}
    assert ascends(made) == (id_type == worker.ASCENDING)


@given(clocks)
def test_uuid7_keeps_its_order_if_the_clock_stops_or_is_set_back(times_ns: list[int]) -> None:
    make = worker.uuid7_maker(ticking(times_ns))
    made = [make() for _ in times_ns]
    assert ascends(made)
    latest_ms = [max(times_ns[: index + 1]) // 1_000_000 for index in range(len(times_ns))]
    assert [int.from_bytes(blob[:6]) for blob in made] == latest_ms


@pytest.mark.parametrize(("id_type", "version"), [("uuid4", 4), ("uuid7", 7)])
def test_uuid_states_its_version(id_type: str, version: int) -> None:
    make = worker.MAKERS[id_type]()
    for made in (uuid.UUID(bytes=make()) for _ in range(1000)):
        assert (made.variant, made.version) == (uuid.RFC_4122, version)


def test_uuid7_has_the_layout_of_rfc_9562() -> None:
    drawn = iter([bytes.fromhex("ffffffffffff01020304"), bytes.fromhex("00000000000005060708")])
    make = worker.uuid7_maker(lambda: NOW_NS, lambda size: next(drawn))
    first, second = (uuid.UUID(bytes=make()) for _ in range(2))
    assert (first.int >> 80, second.int >> 80) == (NOW_NS // 1_000_000, NOW_NS // 1_000_000)
    assert {(made.variant, made.version) for made in (first, second)} == {(uuid.RFC_4122, 7)}

    def counter(made: uuid.UUID) -> int:
        return (made.int >> 64 & 0xFFF) << 30 | made.int >> 32 & 0x3FFF_FFFF

    # The counter starts at a random number whose highest bit is 0, and increases by 1.
    assert (counter(first), counter(second)) == (2**41 - 1, 2**41)
    assert (first.int & 0xFFFF_FFFF, second.int & 0xFFFF_FFFF) == (0x01020304, 0x05060708)


def test_two_processes_never_make_the_same_ones_of_the_same_moment() -> None:
    same = repeat(NOW_NS)
    makers = [worker.uuid7_maker(lambda: next(same)) for _ in range(2)]
    made = [make() for make in makers for _ in zip(range(1000), count())]
    assert len(set(made)) == len(made)


loads = st.builds(
    lambda users, picks, more: Picks(
        "no-key", "int", users=users, picks=picks, items=picks + picks // 10 + more
    ),
    st.integers(1, 300),
    st.integers(1, 60),
    st.integers(0, 50),
)


def case_of_load(load: Picks, seed: int = 5, concurrency: int = 1) -> Case:
    return Case(workload="keys", seed=seed, concurrency=concurrency, spec=load)


@given(loads, st.integers(1, 9))
def test_every_user_belongs_to_one_worker(load: Picks, workers: int) -> None:
    case = case_of_load(load, concurrency=workers)
    users = [user for number in range(1, workers + 1) for user in users_of(case, number)]
    assert sorted(users) == list(range(load.users))


@given(loads, st.integers(0, 1000))
def test_user_picks_distinct_items_within_a_tenth_of_the_option(load: Picks, user: int) -> None:
    picked = picked_by(case_of_load(load), user)
    assert len(set(picked)) == len(picked)
    assert all(0 <= item < load.items for item in picked)
    assert load.picks - load.picks // 10 <= len(picked) <= load.picks + load.picks // 10


def test_seed_is_the_same_work_whatever_the_schema_and_the_type() -> None:
    one, other = case_of_load(Picks("no-key", "int")), case_of_load(Picks("id-rowid", "uuid7"), concurrency=4)
    assert [picked_by(one, user) for user in range(20)] == [picked_by(other, user) for user in range(20)]
    again = replace(one, seed=6)
    assert [picked_by(again, user) for user in range(20)] != [picked_by(one, user) for user in range(20)]


@given(loads, st.integers(0, 1000))
def test_no_two_users_have_a_number_in_common(load: Picks, user: int) -> None:
    first, second = (
        [number for number, _ in worker.numbered_picks(load, step)]
        for each in (user, user + 1)
        for step in [Step("picks", [(each, item) for item in picked_by(case_of_load(load), each)])]
    )
    assert first[-1] < second[0]
