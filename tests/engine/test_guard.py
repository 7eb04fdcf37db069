"""Tests of what is seen of a stranger's hand in a trial's databases, on real files."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.engine.pool import Ended
from sqlstress.engine.trial import Guard, unread
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Settings
from sqlstress.targets import open_place
from sqlstress.targets.place import Disturbance
from tests.engine.hand_made import dead, done
from tests.pulses import nothing, stopped_everywhere
from tests.targets.filled import exchange, table_of

BUCKETS = 2
VICTIM = "kv_1.db"
Act = Callable[[Path], object]


def case_of(journal_mode: str) -> Case:
    settings = Settings(synchronous="off", wal_autocheckpoint=8, journal_mode=journal_mode)
    return Case(buckets=BUCKETS, settings=settings, spec=Load(key_space=30))


@pytest.fixture(params=["wal", "delete"])
def case(request: pytest.FixtureRequest) -> Case:
    return case_of(request.param)


def prepared(case: Case, folder: Path) -> Guard:
    table = table_of(case, folder)
    table.fill([[(key, key) for key in range(30)]] * BUCKETS, nothing)
    table.release()
    return Guard(open_place(case, folder), nothing)


def told(case: Case, folder: Path, act: Act, *ended: Ended) -> Disturbance | None:
    guard = prepared(case, folder)
    act(folder / VICTIM)
    return guard.disturbance(ended)


def sql(*statements: str) -> Act:
    def act(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)

    return act


def damage(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"something else")


def test_a_database_that_only_workers_used_is_undisturbed(case: Case, tmp_path: Path) -> None:
    work = sql("REPLACE INTO kv VALUES (1, 2)", "INSERT INTO kv VALUES (100, 1)", "PRAGMA wal_checkpoint")
    assert told(case, tmp_path, work, done(1), dead(2)) is None


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (Path.unlink, "kv_1.db was deleted while it was measured"),
        (lambda path: shutil.rmtree(path.parent), "kv_0.db was deleted while it was measured"),
        (exchange, "kv_1.db was replaced by another file while it was measured"),
    ],
    ids=["deleted", "with its folder", "replaced"],
)
def test_a_file_that_is_not_the_same_leaves_nothing_to_prove(
    case: Case, tmp_path: Path, act: Act, text: str
) -> None:
    (tmp_path / "own").mkdir()
    found = told(case, tmp_path / "own", act)
    assert found is not None
    verdict = unread(found)
    assert verdict is not None
    assert (found.text, verdict.status, verdict.counterexamples) == (text, "failed", (text,))


@pytest.mark.parametrize(
    ("statements", "mark"),
    [
        (("CREATE INDEX i ON kv (value)",), "schema_version"),
        (("VACUUM",), "schema_version"),
        (("PRAGMA application_id=77",), "application_id"),
    ],
)
def test_what_a_stranger_changes_beside_the_rows_is_told(
    case: Case, tmp_path: Path, statements: tuple[str, ...], mark: str
) -> None:
    found = told(case, tmp_path, sql(*statements))
    assert found is not None
    assert found.text.startswith(f"another program changed kv_1.db while it was measured: its {mark} was ")
    assert unread(found) is None


def test_a_worker_whose_settings_are_not_those_asked_for_is_told(case: Case, tmp_path: Path) -> None:
    answers = {"journal_mode": case.settings.journal_mode, "synchronous": "off"}
    one, other = done(1, effective=answers), done(2, effective={**answers, "synchronous": "off / full"})
    found = told(case, tmp_path, lambda _: None, one, other)
    assert found == Disturbance("synchronous was off and became off / full while it was measured")
    assert told(case, tmp_path, lambda _: None, one) is None


def test_a_worker_that_held_a_file_which_is_gone_is_heard(case: Case, tmp_path: Path) -> None:
    one = done(1)
    assert one.done is not None
    one.done.findings.broken_seal = "kv_1.db-wal was deleted"
    found = told(case, tmp_path, lambda _: None, dead(2), one)
    assert found == Disturbance("kv_1.db-wal was deleted while it was measured")


def test_a_database_that_cannot_be_read_is_told_with_sqlites_name_for_it(case: Case, tmp_path: Path) -> None:
    found = told(case, tmp_path, damage)
    assert found == Disturbance("cannot read kv_1.db: SQLITE_NOTADB: file is not a database")


@pytest.fixture
def stranger(tmp_path: Path, case: Case) -> Iterator[sqlite3.Connection]:
    prepared(case, tmp_path)
    with closing(sqlite3.connect(tmp_path / VICTIM, isolation_level=None)) as connection:
        yield connection


@pytest.mark.parametrize("kind", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_lock_that_stays_is_told_and_leaves_the_proof_open(
    case: Case, tmp_path: Path, stranger: sqlite3.Connection, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlstress.targets.sqlite.files.PATIENCE_MS", 0)
    guard = Guard(open_place(case, tmp_path), nothing)
    stranger.execute(f"BEGIN {kind}")
    found = guard.disturbance([])
    assert found is not None
    assert found.text == "kv_1.db is locked by another program: end it and measure again"
    verdict = unread(found)
    assert verdict is not None
    assert (verdict.status, verdict.checks[0].note) == ("unknown", found.text)
    stranger.execute("ROLLBACK")
    assert guard.disturbance([]) is None


def test_where_nothing_is_there_there_is_nothing_to_guard(case: Case, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"cannot read kv_0\.db: SQLITE_CANTOPEN"):
        Guard(open_place(case, tmp_path / "gone"), nothing)
    assert Guard(open_place(Case(driver="dry"), tmp_path), nothing).disturbance([done(1)]) is None


def test_whoever_looks_at_the_databases_can_be_stopped_at_each_of_them(case: Case, tmp_path: Path) -> None:
    prepared(case, tmp_path)
    assert (
        stopped_everywhere(lambda pulse: Guard(open_place(case, tmp_path), pulse).disturbance([]))
        == 2 * BUCKETS
    )
