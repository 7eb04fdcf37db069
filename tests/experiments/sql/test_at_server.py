"""Both halves of the experiment on a real PostgreSQL server."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine.protocols import FAILED, Outcome
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiments.sql.work import SqlWork
from sqlstress.experiments.sql.worker import SqlSource
from sqlstress.user_work.checks import CheckFailure, CheckNotRun, Checks
from sqlstress.user_work.options import Invariant
from tests.experiments.sql.databases import Open, done, source_of
from tests.pulses import nothing

psycopg = pytest.importorskip("psycopg")

SETUP = """CREATE TABLE account (id int PRIMARY KEY, balance numeric NOT NULL);
INSERT INTO account VALUES (1, 100), (2, 100);
CREATE TABLE seen (value text, flag boolean, share float8, moment timestamptz DEFAULT now());
CREATE FUNCTION twice(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN; RETURN 2 * n; END $$;
""".replace("BEGIN;", "BEGIN")
UPGRADE = """\\set x random(1, 1000000)
BEGIN;
SELECT balance AS b FROM account WHERE id = 1 \\gset
\\sleep 1 ms
\\set y :x + random(1, 1000000)
INSERT INTO seen VALUES (:y);
UPDATE account SET balance = :b + 1 WHERE id = 1;
COMMIT;"""


@pytest.fixture
def start(start: Open, our_server: str, tmp_path: Path) -> Open:
    """Return a function that opens both halves of scripts on the server."""
    setup = tmp_path / "server.sql"
    setup.write_text(SETUP, encoding="utf-8")
    return partial(start, driver="psycopg", setup=str(setup), busy_timeout="100ms")


def rows(work: SqlWork, sql: str) -> list[tuple[Any, ...]]:
    reader = work.place.reader()
    try:
        return reader.rows(sql)
    finally:
        reader.close()


def at(server: str, work: SqlWork, sql: str) -> None:
    """Run a statement in the schema, as another client."""
    name: str = work.place.name  # type: ignore[attr-defined]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"SET search_path = {name}")
        connection.execute(sql)


Acts = list[Callable[[], object]]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Acts:
    """Actions that happen during the sleeps of scripts, in turn, at any speed of this machine."""
    acts: Acts = []
    monkeypatch.setattr(SqlSource, "sleep", lambda self, seconds: acts and acts.pop(0)())
    return acts


def pays(server: str, work: SqlWork) -> Callable[[], None]:
    """Return an action of another client, which adds 10 to the first balance."""
    return lambda: at(server, work, "UPDATE account SET balance = balance + 10 WHERE id = 1")


@pytest.mark.thorough
def test_values_are_parameters_of_the_types_that_the_server_infers(start: Open) -> None:
    script = (
        "\\set n random(5, 5)\n\\set d 1.5\n\\set yes true\n"
        "SELECT :n::int AS n, twice(:n) AS m, :d * 2.0 AS e, :yes = 1 AS y, NULL AS none, ':n' AS t "
        "\\gset got_\n"
        "\\set total :got_n + :got_m + 0\n"
        "INSERT INTO seen VALUES (:name || :got_t || :total || coalesce(:got_none, '-'), :got_y, :d);"
    )
    work, source = start(script, define=["name='; DROP TABLE seen; --"])
    done(source, 2)
    assert (
        rows(work, "SELECT value, flag, share FROM seen") == [("'; DROP TABLE seen; --:n15-", True, 1.5)] * 2
    )


@pytest.mark.parametrize(
    "isolation", ["repeatable-read", pytest.param("serializable", marks=pytest.mark.thorough)]
)
def test_serialization_failure_is_retried_with_the_same_values(
    start: Open, our_server: str, tmp_path: Path, isolation: str, meanwhile: Acts
) -> None:
    work, source = start(UPGRADE, max_tries=2, isolation=isolation)
    meanwhile.append(pays(our_server, work))
    assert list(done(source, 1).kinds) == [0]
    assert source.busy_counts() == (0, 1)
    again = source_of(work, tmp_path, 1)
    assert list(done(again, 1).kinds) == [0]
    again.close()
    assert rows(work, "SELECT balance FROM account WHERE id = 1") == [(112,)]
    values = rows(work, "SELECT value FROM seen")
    assert len(values) == 2 and len(set(values)) == 1


@pytest.mark.thorough
def test_read_committed_loses_a_concurrent_update(start: Open, our_server: str, meanwhile: Acts) -> None:
    work, source = start(UPGRADE)
    meanwhile.append(pays(our_server, work))
    assert list(done(source, 1).kinds) == [0]
    assert rows(work, "SELECT balance FROM account WHERE id = 1") == [(101,)]


def test_parameters_have_the_values_of_literals(start: Open) -> None:
    values = {
        ":nine + :ten": 19,
        "greatest(:nine, :ten)": 10,
        ":half * :ten": "5.0",
        ":nine = 9 AND :name = 'x'": True,
        ":name || :ten": "x10",
        "(SELECT count(*) FROM seen WHERE value = :ten::text)": 1,
        "coalesce(:none, :ten)": 10,
        ":many + :many": 60_000,
    }
    queries = [f"SELECT {text} AS v{number} \\gset\n" for number, text in enumerate(values)]
    script = (
        "\\set nine 9\n\\set ten 10\n\\set half 0.5\n\\set many 30000\n\\set none NULL\n"
        f"DELETE FROM seen;\nINSERT INTO seen VALUES (:ten);\n{''.join(queries)}"
    )
    _, source = start(script, define=["name=x"])
    assert list(done(source, 2).kinds) == [0, 0]
    assert [source._variables[f"v{number}"] for number in range(len(values))] == list(values.values())


def test_transaction_that_waits_for_a_lock_is_given_up_and_undone(start: Open, our_server: str) -> None:
    script = "BEGIN; INSERT INTO seen VALUES (1); UPDATE account SET balance = 0 WHERE id = 1; COMMIT;"
    work, source = start(script, busy_timeout="20ms")
    with psycopg.connect(our_server) as somebody:
        somebody.execute(f"LOCK TABLE {work.place.name}.account")  # type: ignore[attr-defined]
        assert list(done(source, 2).kinds) == [FAILED, FAILED]
    assert source.busy_counts() == (2, 0)
    assert rows(work, "SELECT count(*) FROM seen") == [(0,)]
    assert list(done(source, 1).kinds) == [0]


@pytest.mark.thorough
def test_deadlock_is_retried(start: Open, tmp_path: Path, meanwhile: Acts) -> None:
    script = (
        "\\set mine 1 + :client_id\n\\set theirs 2 - :client_id\nBEGIN;\n"
        "UPDATE account SET balance = balance + 1 WHERE id = :mine;\n\\sleep 1 ms\n"
        "UPDATE account SET balance = balance + 1 WHERE id = :theirs;\nCOMMIT;"
    )
    work, source = start(script, max_tries=5, busy_timeout="10s")
    rival = source_of(work, tmp_path, 2)
    each_has_its_own = threading.Barrier(2, timeout=60)
    meanwhile += [each_has_its_own.wait] * 2
    try:
        thread = threading.Thread(target=done, args=(rival, 1))
        thread.start()
        assert list(done(source, 1).kinds) == [0]
        thread.join()
        # The retried transaction may lock its own row again before the other one wakes: if so, they deadlock
        # again.
        assert sum(source.busy_counts()) + sum(rival.busy_counts()) >= 1
    finally:
        rival.close()
    assert rows(work, "SELECT sum(balance) FROM account") == [(204,)]


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("INSERT INTO account VALUES (1, 1);", r"a.sql:1:1: SQLSTATE 23505: duplicate key value"),
        ("BEGIN;\nSELECT 1 / 0;\nCOMMIT;", r"a.sql:2:1: SQLSTATE 22012: division by zero"),
        ("SELECT 1 AS x \\gset\nSELECT :y::int;", r"a.sql:2:1: SQLSTATE 42P02: the variable :y has no value"),
    ],
)
def test_any_other_error_ends_the_worker_with_its_place(start: Open, script: str, text: str) -> None:
    _, source = start(script)
    with pytest.raises(EnvironmentFailure, match=text):
        done(source, 1)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("SELECT * FROM gone;", 'a.sql:1:1: relation "gone" does not exist'),
        ("SELECT id FROM account; SELECT nope(:client_id);", "a.sql:1:25: function nope"),
    ],
)
def test_invalid_statement_is_refused_before_any_load(start: Open, script: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        start(script)


@pytest.mark.parametrize(
    ("setup", "text"),
    [
        ("CREATE TABLE t (x nope)", r'bad.sql:1:1: type "nope" does not exist'),
        ("SELECT set_config('search' || '_path', 'public', false)", "the setup changes the search_path"),
    ],
)
def test_failed_setup_is_an_error(start: Open, tmp_path: Path, setup: str, text: str) -> None:
    (tmp_path / "bad.sql").write_text(f"{setup};")
    with pytest.raises(UsageError, match=text):
        start("SELECT 1;", setup=str(tmp_path / "bad.sql"))


def test_ledger_equals_the_acknowledged_transactions(start: Open, our_server: str) -> None:
    script = "BEGIN; UPDATE account SET balance = balance + 1 WHERE id = 1; COMMIT;"
    work, source = start(script, ledger=True, verify="full")
    done(source, 10)
    source.close()
    ended = [Outcome(1, False, source.seen), Outcome(2, False, source.seen)]
    found = {check.name: check.status for check in work.verify(ended, nothing).checks}
    assert found == {"schema": "ok", "ledger": "ok"}
    at(our_server, work, "DELETE FROM sqlstress_ledger WHERE number = 10")
    (ledger,) = [check for check in work.verify(ended, nothing).checks if check.name == "ledger"]
    assert ledger.counterexamples == ("10 commits of worker 1 were acknowledged, 9 are there",)


def test_checks_see_one_snapshot_and_cannot_write(start: Open, our_server: str, tmp_path: Path) -> None:
    work, _ = start("SELECT 1;")
    file = tmp_path / "c.py"
    file.write_text(
        "def holds(query):\n    assert query('SELECT id FROM account WHERE id > %s', [1]) == [(2,)]\n"
        "def writes(query):\n    query('DELETE FROM account')\n"
    )
    reader = work.place.reader()

    def broken_checks(*invariants: Invariant, timeout_s: float = 5.0) -> list[CheckFailure]:
        return list(Checks(invariants, timeout_s).broken(reader))

    query = "SELECT id, balance::int FROM account ORDER BY id"
    assert broken_checks(Invariant("all", "c.sql:1", query), Invariant("holds", f"{file}:holds")) == [
        CheckFailure("all", 2, ("(1, 100)", "(2, 100)"))
    ]
    with pytest.raises(
        CheckNotRun, match=r"writes \(.*\) failed to run: cannot execute DELETE in a read-only"
    ):
        broken_checks(Invariant("writes", f"{file}:writes"))
    with pytest.raises(CheckNotRun, match=r"slow \(c.sql:2\) took longer than 0.05 s"):
        broken_checks(Invariant("slow", "c.sql:2", "SELECT pg_sleep(9)"), timeout_s=0.05)
    reader.begin()
    assert reader.rows("SELECT sum(balance) FROM account") == [(200,)]
    at(our_server, work, "UPDATE account SET balance = 0")
    assert reader.rows("SELECT sum(balance) FROM account") == [(200,)]
    reader.end()
    assert reader.rows("SELECT sum(balance) FROM account") == [(0,)]
    reader.close()
