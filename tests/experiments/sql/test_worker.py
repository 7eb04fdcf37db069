"""Both halves of the experiment, on a real database with each driver."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sqlstress.engine.loop import Window
from sqlstress.engine.protocols import FAILED, Outcome
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiments.sql.builtin import checks
from sqlstress.experiments.sql.work import SqlWork, check_ledger
from sqlstress.experiments.sql.worker import LEDGER
from sqlstress.targets.sqlite.drivers import Connection, load_driver
from tests.experiments.sql.databases import Open, case_of, done, rows
from tests.pages import ROOT
from tests.pulses import nothing

INVARIANTS = ROOT / "examples" / "transfer" / "invariants.sql"

PAY = "BEGIN IMMEDIATE; UPDATE account SET balance = balance - 1 WHERE id = 1; COMMIT;"
UPGRADE = (
    "\\set x random(1, 1000000)\nBEGIN;\nSELECT balance AS b FROM account WHERE id = 1 \\gset\n"
    "\\sleep 0\n\\set y :x + random(1, 1000000)\nINSERT INTO seen VALUES (:y);\nCOMMIT;"
)


@pytest.fixture(params=["sqlite3", "apsw"])
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def locked(path: Path, driver: str) -> Iterator[None]:
    """Lock a database by the same library: another library in this process would not see the lock."""
    with closing(load_driver(driver).connect(path, 1000)) as connection:
        connection.rows("BEGIN IMMEDIATE")
        yield


def test_scripts_are_drawn_by_weight_and_read_statements_to_their_end(start: Open, driver: str) -> None:
    scripts = {"read.sql@3": "SELECT * FROM account;", "write.sql": PAY}
    work, source = start(scripts, driver=driver)
    kinds = done(source, 400).kinds
    assert 250 < kinds.count(0) < 350 and kinds.count(1) == 400 - kinds.count(0)
    assert rows(work, "SELECT balance FROM account WHERE id = 1") == [(100 - kinds.count(1),)]
    # No statement is left open that a checkpoint would have to wait for.
    assert rows(work, "PRAGMA wal_checkpoint(TRUNCATE)")[0][0] == 0


def test_each_worker_has_its_own_variables_and_numbers_are_numeric(start: Open, driver: str) -> None:
    text = "INSERT INTO seen VALUES (:client_id || :n || typeof(:m) || (3 < :m) || typeof(:d) || typeof(:s));"
    define = ["n=0", "m=2", "d=2.5", "s=inf"]
    work, source = start(f"\\set n :n + 1\n{text}", worker=2, driver=driver, define=define)
    done(source, 2)
    assert rows(work, "SELECT value FROM seen") == [(f"1{n}integer0realtext",) for n in (1, 2)]


def test_equal_seeds_draw_equal_values(start: Open) -> None:
    found = []
    for _ in range(2):
        text = "\\set x random(1, 1000000000)\nINSERT INTO seen VALUES (:x);"
        work, source = start(text)
        done(source, 20)
        found.append(rows(work, "SELECT value FROM seen"))
        source.close()
    assert found[0] == found[1] and len(set(found[0])) == 20


def test_locked_transaction_is_given_up_after_the_time_out_and_undone(start: Open, driver: str) -> None:
    work, source = start(PAY, driver=driver, busy_timeout="10ms")
    with locked(Path(work.place.directions().address), driver):
        assert done(source, 1).kinds[0] == FAILED
    assert source.busy_counts()[0] >= 1 and source.busy_counts()[1] == 0
    assert done(source, 1).kinds[0] == 0


@pytest.mark.parametrize("tries", [1, 2])
def test_outdated_snapshot_is_retried_with_the_same_values(
    start: Open, driver: str, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts: list[Callable[[], object]] = []
    monkeypatch.setattr(time, "sleep", lambda _: acts.pop()() if acts else None)
    expected = values_written(start, driver, tries, lambda _: None)
    assert len(expected[2]) == 1

    def interfere(work: SqlWork) -> None:
        rival = load_driver(driver).connect(Path(work.place.directions().address), 1000)
        acts.append(lambda: deleted(rival))

    kind, counts, found = values_written(start, driver, tries, interfere)
    assert not acts and counts == (0, 1)
    assert (kind, found) == ((FAILED, []) if tries == 1 else (0, expected[2]))


def deleted(rival: Connection) -> None:
    rival.rows("DELETE FROM seen")
    rival.rows("DELETE FROM account WHERE id = 2")
    rival.close()


def values_written(
    start: Open, driver: str, tries: int, before: Callable[[SqlWork], None]
) -> tuple[int, tuple[int, int], list[tuple[object, ...]]]:
    """Run one transaction that reads, sleeps and writes; return its kind, the busy counts, the written
    values.
    """
    work, source = start(UPGRADE, driver=driver, max_tries=tries)
    before(work)
    kind = done(source, 1).kinds[0]
    counts = source.busy_counts()
    source.close()
    return kind, counts, rows(work, "SELECT value FROM seen")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("\\set d 0\nSELECT 1;\n\\set x 1 / :d\n", "a.sql:3:1: division by zero"),
        ("INSERT INTO account VALUES (1, 1);", "a.sql:1:1: SQLITE_CONSTRAINT_PRIMARYKEY"),
        ("\\if :client_id < 9\nBEGIN;\n\\else\nBEGIN; COMMIT;\n\\endif\n", "ends inside a transaction"),
        ("SELECT 1 AS a WHERE 0 \\gset\n", "a.sql:1:1: .gset needs one row, and the query returned none"),
    ],
)
def test_error_other_than_a_lock_ends_the_worker_with_its_place(
    start: Open, driver: str, text: str, error: str
) -> None:
    _, source = start(text, driver=driver)
    with pytest.raises(EnvironmentFailure, match=error):
        done(source, 1)


def test_statements_are_timed_within_the_window_only(start: Open, driver: str) -> None:
    _, source = start(PAY, driver=driver, per_statement=True)
    source.hear(Window(0, 0, 1 << 62))
    source.settle(done(source, 5), 5, [], source.stamps)
    source.hear(Window(0, 0, 1))
    source.settle(done(source, 5), 5, [], source.stamps)
    latency = source.findings().latency
    counts = [sum(buckets.values()) for buckets, _ in latency.values()]
    assert counts == [5, 5, 5] and all(largest > 0 for _, largest in latency.values())
    assert [*latency][1] == "a.sql:1 UPDATE account SET balance = balance - 1 WHERE id = 1"[:60]


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        ("SELECT 1", None),
        (f"DELETE FROM {LEDGER} WHERE number = 10", "10 commits of worker 1 were acknowledged, 9 are there"),
        (f"DELETE FROM {LEDGER} WHERE number = 3", "9 are there"),
        (f"INSERT INTO {LEDGER} VALUES (1, 11)", "10 commits of worker 1 were acknowledged, 11 are there"),
        (f"UPDATE {LEDGER} SET number = 12 WHERE number = 3", "are 1 to 12, and only 10"),
        (f"INSERT INTO {LEDGER} VALUES (3, 1)", "commits of worker 3, whom nobody started"),
    ],
)
def test_ledger_equals_the_acknowledged_transactions(
    start: Open, driver: str, harm: str, problem: str | None
) -> None:
    work, source = start(PAY, driver=driver, ledger=True)
    done(source, 10)
    source.close()
    rows(work, harm)
    outcomes = [Outcome(worker, False, None) for worker in (1, 2)]
    (check,) = (result for result in work.verify(outcomes, nothing).checks if result.name == "ledger")
    assert check.status == ("failed" if problem else "ok") and check.checked == 10
    assert problem is None or problem in check.counterexamples[0]


def test_dead_worker_may_have_committed_one_more_row() -> None:
    assert check_ledger({1: (3, 1, 3)}, [2], [True]).status == "ok"
    assert check_ledger({1: (3, 1, 3)}, [2], [False]).status == "failed"
    assert check_ledger({1: (4, 1, 4)}, [2], [True]).status == "failed"
    assert check_ledger({1: (1, 1, 1)}, [0], [True]).status == "skipped"
    assert check_ledger({1: (1, 1, 1)}, [2], [True]).status == "failed"


def test_dry_driver_runs_scripts_without_a_store(start: Open) -> None:
    scripts = {"a.sql": PAY, "b.sql": "SELECT 1;"}
    _, source = start(scripts, driver="dry", ledger=True, per_statement=True)
    assert set(done(source, 50).kinds) == {0, 1} and source.busy_counts() == (0, 0)


def test_variables_of_transactions_that_were_not_run_are_reset(start: Open) -> None:
    text = "\\set n :n + 1\nINSERT INTO seen VALUES (:n);"
    work, source = start(text, define=["n=0"])
    for run in (2, 0, 3):
        chunk = source.next_chunk(5)
        for call, params in zip(list(chunk.calls)[:run], list(chunk.params)[:run], strict=True):
            call(params)
        source.settle(chunk, run, [], source.stamps)
    assert rows(work, "SELECT value FROM seen") == [(1,), (2,), (3,), (4,), (5,)]


def test_dry_driver_does_not_sleep(start: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    _, source = start("\\sleep 3 s\nSELECT 1;", driver="dry")
    done(source, 2)
    assert not slept


def test_missing_money_fails_the_checks_of_the_bank_and_the_example(tmp_path: Path) -> None:
    with closing(load_driver("sqlite3").connect(tmp_path / "a.db", 1000)) as connection:
        for table in ("account", "bank_accounts"):
            connection.rows(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)")
        for sql in (next(checks(["bank"], 1)).sql, INVARIANTS.read_text("utf-8").partition(";")[0]):
            assert connection.rows(sql)


# A script that is retried must be one transaction, in every branch.


ONE, OTHER = "UPDATE account SET balance = 1 WHERE id = 1;\n", "DELETE FROM account;\n"
DRAWN = "\\set x random(1, 2)\n"
PARTS = [
    ONE + OTHER,
    f"{DRAWN}\\if :x = 1\nBEGIN;\n\\endif\n{ONE}{OTHER}\\if :x = 1\nCOMMIT;\n\\endif\n",
    f"{DRAWN}BEGIN;\n{ONE}\\if :x = 1\nCOMMIT;\n\\endif\n{OTHER}",
    f"{DRAWN}\\if :x = 1\n{ONE}\\endif\n{OTHER}",
]
WHOLE = [
    f"BEGIN;\n{ONE}{OTHER}COMMIT;\n",
    ONE,
    f"SELECT 1;\n{ONE}",
    f"{DRAWN}BEGIN;\n\\if :x = 1\n{ONE}\\else\n{OTHER}\\endif\n{ONE}COMMIT;\n",
    f"{DRAWN}\\if :x = 1\n{ONE}\\else\n{OTHER}\\endif\n",
    f"{DRAWN}\\if :x = 1\nBEGIN;\n\\else\nBEGIN IMMEDIATE;\n\\endif\n{ONE}{OTHER}COMMIT;\n",
]


@pytest.mark.parametrize("text", PARTS)
def test_script_with_statements_outside_of_its_transaction_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"a\.sql:\d+:1: --max-tries begins a script again from the start"):
        case_of(tmp_path, {"a.sql": text}, max_tries=3)


def test_script_of_one_transaction_or_without_retries_is_accepted(tmp_path: Path) -> None:
    for text in WHOLE:
        case_of(tmp_path, {"a.sql": text}, max_tries=3)
    case_of(tmp_path, {"a.sql": ONE + OTHER})
