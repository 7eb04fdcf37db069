"""Detection of changes that other programs make to a trial's databases, on real files."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.engine.pool import WorkerExit
from sqlstress.engine.trial import Guard, unreadable_verdict
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


def make_guard(case: Case, folder: Path) -> Guard:
    table = table_of(case, folder)
    table.fill([[(key, key) for key in range(30)]] * BUCKETS, nothing)
    table.release()
    return Guard(open_place(case, folder), nothing)


def disturbance_after(case: Case, folder: Path, act: Act, *ended: WorkerExit) -> Disturbance | None:
    guard = make_guard(case, folder)
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


def test_database_used_only_by_workers_is_undisturbed(case: Case, tmp_path: Path) -> None:
    work = sql("REPLACE INTO kv VALUES (1, 2)", "INSERT INTO kv VALUES (100, 1)", "PRAGMA wal_checkpoint")
    assert disturbance_after(case, tmp_path, work, done(1), dead(2)) is None


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (Path.unlink, "kv_1.db was deleted while it was measured"),
        (lambda path: shutil.rmtree(path.parent), "kv_0.db was deleted while it was measured"),
        (exchange, "kv_1.db was replaced by another file while it was measured"),
    ],
    ids=["deleted", "with its folder", "replaced"],
)
def test_deleted_or_replaced_file_fails_without_a_proof(
    case: Case, tmp_path: Path, act: Act, text: str
) -> None:
    (tmp_path / "own").mkdir()
    disturbance = disturbance_after(case, tmp_path / "own", act)
    assert disturbance is not None
    verdict = unreadable_verdict(disturbance)
    assert verdict is not None
    assert (disturbance.text, verdict.status, verdict.counterexamples) == (text, "failed", (text,))


@pytest.mark.parametrize(
    ("statements", "mark"),
    [
        (("CREATE INDEX i ON kv (value)",), "schema_version"),
        (("VACUUM",), "schema_version"),
        (("PRAGMA application_id=77",), "application_id"),
    ],
)
def test_foreign_schema_change_is_reported(
    case: Case, tmp_path: Path, statements: tuple[str, ...], mark: str
) -> None:
    disturbance = disturbance_after(case, tmp_path, sql(*statements))
    assert disturbance is not None
    assert disturbance.text.startswith(
        f"another program changed kv_1.db while it was measured: its {mark} was "
    )
    assert unreadable_verdict(disturbance) is None


def test_changed_worker_setting_is_reported(case: Case, tmp_path: Path) -> None:
    answers = {"journal_mode": case.settings.journal_mode, "synchronous": "off"}
    first, second = done(1, effective=answers), done(2, effective={**answers, "synchronous": "off / full"})
    disturbance = disturbance_after(case, tmp_path, lambda _: None, first, second)
    assert disturbance == Disturbance("synchronous was off and became off / full while it was measured")
    assert disturbance_after(case, tmp_path, lambda _: None, first) is None


def test_broken_seal_of_a_worker_is_reported(case: Case, tmp_path: Path) -> None:
    first = done(1)
    assert first.done is not None
    first.done.findings.broken_seal = "kv_1.db-wal was deleted"
    disturbance = disturbance_after(case, tmp_path, lambda _: None, dead(2), first)
    assert disturbance == Disturbance("kv_1.db-wal was deleted while it was measured")


def test_unreadable_database_is_reported_with_sqlites_error_name(case: Case, tmp_path: Path) -> None:
    disturbance = disturbance_after(case, tmp_path, damage)
    assert disturbance == Disturbance("cannot read kv_1.db: SQLITE_NOTADB: file is not a database")


@pytest.fixture
def stranger(tmp_path: Path, case: Case) -> Iterator[sqlite3.Connection]:
    make_guard(case, tmp_path)
    with closing(sqlite3.connect(tmp_path / VICTIM, isolation_level=None)) as connection:
        yield connection


@pytest.mark.parametrize("kind", ["IMMEDIATE", "EXCLUSIVE"])
def test_foreign_lock_is_reported_and_the_verdict_is_unknown(
    case: Case, tmp_path: Path, stranger: sqlite3.Connection, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlstress.targets.sqlite.files.LOCK_TIMEOUT_MS", 0)
    guard = Guard(open_place(case, tmp_path), nothing)
    stranger.execute(f"BEGIN {kind}")
    disturbance = guard.disturbance([])
    assert disturbance is not None
    assert disturbance.text == "kv_1.db is locked by another program: end it and measure again"
    verdict = unreadable_verdict(disturbance)
    assert verdict is not None
    assert (verdict.status, verdict.checks[0].note) == ("unknown", disturbance.text)
    stranger.execute("ROLLBACK")
    assert guard.disturbance([]) is None


def test_missing_files_fail_and_a_dry_place_is_never_disturbed(case: Case, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"cannot read kv_0\.db: SQLITE_CANTOPEN"):
        Guard(open_place(case, tmp_path / "gone"), nothing)
    assert Guard(open_place(Case(driver="dry"), tmp_path), nothing).disturbance([done(1)]) is None


def test_guard_can_be_interrupted_at_each_database(case: Case, tmp_path: Path) -> None:
    make_guard(case, tmp_path)
    assert (
        stopped_everywhere(lambda pulse: Guard(open_place(case, tmp_path), pulse).disturbance([]))
        == 2 * BUCKETS
    )
