"""SQL scripts on PostgreSQL through the command line: real runs, real servers."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.on_postgres import ONCE, OUTPUTS, in_the_window, kill_worker, left, measured, password
from tests.pages import ROOT
from tests.rows import thorough

TRANSFER = ROOT / "examples" / "transfer"
DATA = (f"--setup={TRANSFER / 'schema.sql'}", f"--check={TRANSFER / 'invariants.sql'}")


@pytest.mark.thorough
def test_scripts_on_a_given_server_are_proved_and_leave_no_trace(cli: Cli, server: str, url: str) -> None:
    options = ("-btpcb-like@2", "-bbank", f"--dsn={url}", "--driver=psycopg", "-c3", "--per-statement")
    said, report = measured(cli, "sql", *options, "--max-tries=5")
    (run,) = report.runs
    assert run.verdict.status == "ok" and run.trials[0].transactions
    statuses = {check.name: check.status for check in run.verdict.checks}
    assert statuses == {"schema": "ok", "checks under load": "ok", "checks after the load": "ok"}
    assert [check.name for check in run.case.spec.data.checks] == [
        "accounts agree with the history",
        "tellers agree with branches",
        "accounts agree with branches",
        "the bank's money is what it was",
        "nobody owes the bank",
    ]
    assert left(server) == (0, 0)
    everything = said.out + said.err + "".join(Path(name).read_text(encoding="utf-8") for name in OUTPUTS)
    assert password(server) not in everything
    assert "Every commit synced: fsync on" in said.text and " ok " in said.text
    assert "read committed, lock waits up to 60s" in said.text and "SQLite" not in said.text


@pytest.mark.parametrize(
    ("script", "isolation", "holds"),
    [
        ("plain.sql", "read-committed", False),
        pytest.param("plain.sql", "serializable", True, marks=pytest.mark.thorough),
        pytest.param("plain.sql", "repeatable-read", True, marks=pytest.mark.thorough),
        pytest.param("for-update.sql", "read-committed", True, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.thorough
def test_read_modify_write_loses_money_only_as_documented(
    cli: Cli, server: str, url: str, script: str, isolation: str, holds: bool
) -> None:
    text = (TRANSFER / script).read_text(encoding="utf-8")
    for many, few in (("100)", "20)"), ("98", "18"), ("% 100", "% 20")):
        text = text.replace(many, few)
    Path("few.sql").write_text(text, encoding="utf-8")
    options = ("few.sql", *DATA, f"--dsn={url}", "--driver=psycopg", "-c4", "--max-tries=1000")
    said, report = measured(
        cli, "sql", *options, "--isolation", isolation, "--duration=1s", code=0 if holds else 1
    )
    (run,) = report.runs
    (trial,) = run.trials
    assert trial.effective["transaction_isolation"] == isolation.replace("-", " ")
    assert trial.transactions and not trial.failed
    assert ("no money comes or goes: (" in said.err) is not holds
    assert ("Use SELECT ... FOR UPDATE to wait for them" in said.out.replace("\n  ", " ")) is not holds
    if script == "plain.sql" and holds:
        assert trial.busy_snapshot
        assert "by a serialization failure" in said.out.replace("\n  ", " ")
    assert left(server) == (0, 0)


@pytest.mark.thorough
def test_refused_transaction_is_given_up_without_max_tries(cli: Cli, url: str) -> None:
    Path("t.sql").write_text("CREATE TABLE t (x int); INSERT INTO t VALUES (0)")
    Path("add.sql").write_text("BEGIN; SELECT x AS x FROM t \\gset\nUPDATE t SET x = :x + 1; COMMIT;")
    options = ("add.sql", "--setup=t.sql", f"--dsn={url}", "--driver=psycopg", "-c4")
    said, report = measured(cli, "sql", *options, "--isolation=serializable", code=1)
    (trial,) = report.runs[0].trials
    assert trial.failed and trial.busy_snapshot
    assert "must retry them (--max-tries)" in said.out.replace("\n  ", " ")


@pytest.mark.thorough
def test_targets_are_set_side_by_side_each_with_its_own_sql(cli: Cli, server: str, url: str) -> None:
    options = ("-bbank", "--target=sqlite,postgres", f"--dsn={url}", "-c2", "--journal-mode=wal")
    said, report = measured(cli, "sql", *options)
    assert [run.case.driver for run in report.runs] == ["sqlite3", "psycopg"]
    assert [run.verdict.status for run in report.runs] == ["ok", "ok"]
    one, other = (run.case.spec.scripts[0].text for run in report.runs)
    assert "BEGIN IMMEDIATE" in one and "FOR UPDATE" in other
    assert "sqlite: every commit synced" in said.text and "postgres: every commit synced" in said.text
    assert "every check passed, and SQLite finds no error" in said.text
    assert left(server) == (0, 0)
    again = cli("report", "report.json", "--details")
    assert again.out == said.out


@pytest.mark.thorough
def test_run_without_dsn_starts_a_server_and_removes_it(cli: Cli, tmp_path: Path) -> None:
    _, report = measured(
        cli, "sql", "-bselect-only", "--driver=psycopg", "-c2", "--ledger", "--synchronous=normal"
    )
    assert {run.verdict.status for run in report.runs} == {"ok"}
    assert report.runs[0].trials[0].effective["synchronous_commit"] == "off"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(OUTPUTS)


@pytest.mark.thorough
def test_ledger_rate_and_check_function_work_on_a_server(cli: Cli, url: str) -> None:
    Path("c.py").write_text("def money(query):\n    assert query('SELECT sum(balance) FROM bank_accounts')\n")
    options = ("-bbank", f"--dsn={url}", "--driver=psycopg", "-c2", "--rate=50", "--check=c.py:money")
    _, report = measured(cli, "sql", *options, "--ledger", "--duration=1s")
    without, with_ledger = report.runs
    assert (without.verdict.status, with_ledger.verdict.status) == ("ok", "ok")
    (ledger,) = [check for check in with_ledger.verdict.checks if check.name == "ledger"]
    assert ledger.checked > 10


@pytest.mark.thorough
def test_killed_worker_loses_no_acknowledged_write(cli: Cli, server: str, url: str) -> None:
    options = ("-bbank", f"--dsn={url}", "--driver=psycopg", "-c3", "--ledger", "--duration=4s")
    with in_the_window(server, kill_worker, "sqlstress_ledger"):
        _, report = measured(cli, "sql", *options, code=4)
    (trial,) = report.runs[1].trials
    assert trial.error and "was killed by SIGKILL" in trial.error
    assert trial.verdict.status == "ok" and trial.transactions
    assert left(server) == (0, 0)


@pytest.mark.thorough
def test_foreign_table_is_reported(cli: Cli, server: str, url: str) -> None:
    def add(connection: Any, _rows: Any) -> None:
        (name,) = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, 'sqlstress_')"
        ).fetchone()
        connection.execute(f"CREATE TABLE {name}.theirs (x int)")

    options = ("-bbank", f"--dsn={url}", "--driver=psycopg", "-c2", "--duration=4s")
    with in_the_window(server, add, "UPDATE bank_accounts"):
        said, _ = measured(cli, "sql", *options, code=1)
    assert "the schema holds the column of theirs" in " ".join((said.out + said.err).split())


@pytest.mark.parametrize(
    ("script", "code", "told"),
    [
        ("SELECT * FROM gone;", 2, 'a.sql:1:1: relation "gone" does not exist'),
        thorough("INSERT INTO account VALUES (1, 1);", 4, "a.sql:1:1: SQLSTATE 23505: duplicate key value"),
    ],
)
def test_script_error_is_reported_with_its_place(
    cli: Cli, server: str, url: str, script: str, code: int, told: str
) -> None:
    Path("a.sql").write_text(script)
    said = cli("sql", "a.sql", *DATA, f"--dsn={url}", "--driver=psycopg", "-c2", *ONCE)
    assert (said.code, len(said.lines)) == (code, 1) and told in said.err
    assert left(server) == (0, 0)
