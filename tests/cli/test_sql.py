"""SQL scripts as a user runs them: real processes, real files."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import sqlstress
from sqlstress.experiments.sql.spec import Scripts
from sqlstress.plan import from_toml
from tests.cli.conftest import Cli, saved
from tests.pages import ROOT
from tests.rows import mostly_thorough

TRANSFER = ROOT / "examples" / "transfer"
SCHEMA, INVARIANTS = TRANSFER / "schema.sql", TRANSFER / "invariants.sql"
ONCE = ("--repeat=1", "--duration=100ms", "--warmup=200ms", "--synchronous=off", "--seed=1", "-oreport.json")
LONGER = ("--duration=500ms", "--details")
"""With all findings, because noise decides which three are shown first."""


def checks() -> dict[str, str]:
    return {check.name: check.status for run in saved().runs for check in run.verdict.checks}


def test_scripts_are_measured_proved_and_shown(cli: Cli) -> None:
    words = ("sql", str(TRANSFER / "right.sql@3"), "-bbank", f"--setup={SCHEMA}", f"--check={INVARIANTS}")
    said = cli(*words, "-c2", "--per-statement", *ONCE, expected=0)
    assert "25% bank and 75% " in said.out and " ok" in said.out and "right.sql:11 COMMIT" in said.out
    (run,) = saved().runs
    assert isinstance(run.case.spec, Scripts) and [script.weight for script in run.case.spec.scripts] == [
        1,
        3,
    ]
    assert sum(run.trials[0].workers[0].operations.values()) == run.trials[0].workers[0].transactions
    assert {*checks()} == {"quick_check", "schema", "checks under load", "checks after the load"}
    assert {*checks().values()} == {"ok"}


@pytest.mark.thorough
def test_transfer_with_lost_updates_fails_its_check_and_exits_1(cli: Cli) -> None:
    words = ("sql", str(TRANSFER / "wrong.sql"), f"--setup={SCHEMA}", f"--check={INVARIANTS}", "-c4")
    said = cli(*words, *ONCE, "--duration=500ms")
    assert said.code == 1 and len(said.lines) == 1
    assert "no money comes or goes: (" in said.lines[0] and "FAILED at 4 processes" in said.out
    assert checks()["checks after the load"] == "failed"


@pytest.mark.thorough
def test_scripts_are_measured_with_and_without_a_ledger(cli: Cli) -> None:
    said = cli("sql", "-bbank", "-c2", "--ledger", *ONCE, "--details", "--duration=200ms", "--repeat=6")
    assert said.code == 0 and "- ledger: " in said.out
    assert [run.case.spec.ledger for run in saved().runs] == [False, True]
    ledgers = [[check for check in run.verdict.checks if check.name == "ledger"] for run in saved().runs]
    assert not ledgers[0] and sum(check.checked for check in ledgers[1]) > 100
    assert {check.status for check in ledgers[1]} == {"ok"}


@pytest.mark.thorough
def test_database_is_copied_with_its_journal_mode_and_not_changed(cli: Cli) -> None:
    with closing(sqlite3.connect("app.db")) as connection:
        connection.executescript("PRAGMA journal_mode=delete; CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    Path("add.sql").write_text("UPDATE t SET x = x + 1;")
    Path("more.sql").write_text("CREATE TABLE u (x);")
    before = Path("app.db").stat().st_mtime_ns, Path("app.db").read_bytes()
    cli("sql", "add.sql", "--database=app.db", "--setup=more.sql", "-c2", *ONCE, "--keep", expected=0)
    assert (Path("app.db").stat().st_mtime_ns, Path("app.db").read_bytes()) == before
    assert saved().runs[0].trials[0].effective["journal_mode"] == "delete"
    (copy,) = Path().glob("sqlstress-*/*/kv.db")
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT x > 2 FROM t").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM u").fetchall() == [(0,)]


@pytest.mark.thorough
def test_busy_transaction_is_given_up_or_retried(cli: Cli) -> None:
    Path("t.sql").write_text("CREATE TABLE t (x); INSERT INTO t VALUES (0)")
    Path("upgrade.sql").write_text(
        "BEGIN; SELECT x AS x FROM t \\gset\n\\sleep 1 ms\nUPDATE t SET x = :x + 1; COMMIT;"
    )
    words = ("sql", "upgrade.sql", "--setup=t.sql", "-c4", *ONCE, "--duration=300ms", "--details")
    said = cli(*words)
    assert said.code == 1 and "of the operations failed at 4 processes" in said.lines[0]
    assert "Begin with BEGIN IMMEDIATE." in said.text and "SQLITE_BUSY_SNAPSHOT" in said.text
    again = cli(*words, "--max-tries=1000")
    assert (again.code, again.err) == (0, "") and "each tried up to 1,000 times" in again.out
    assert saved().runs[0].trials[0].failed == 0 and saved().runs[0].trials[0].busy_snapshot


@pytest.mark.thorough
def test_check_may_be_a_function(cli: Cli) -> None:
    Path("c.py").write_text(
        "def few(query):\n    assert query('SELECT count(*) FROM t') < [(20,)], 'too many'\n"
    )
    Path("t.sql").write_text("CREATE TABLE t (x)")
    Path("add.sql").write_text("INSERT INTO t VALUES (1);")
    said = cli("sql", "add.sql", "--setup=t.sql", "--check=c.py:few", "-c2", *ONCE)
    assert said.code == 1 and "few: too many" in said.lines[0]


BAD = {
    "no tables": (("a.sql",), 2, "the scripts need tables"),
    "a folder": ((".", "--setup=s.sql"), 2, "'.' is not a file"),
    "no text": (("bytes", "--setup=s.sql"), 2, "it is not text"),
    "twice": (("a.sql", "a.sql@2", "--setup=s.sql"), 2, "a script is given twice"),
    "unknown variable": (
        ("variable.sql", "--setup=s.sql"),
        2,
        "variable.sql:1:1: the variable :x has no value",
    ),
    "division": (("division.sql", "--setup=s.sql"), 4, "division.sql:1:1: division by zero"),
    "open": (("open.sql", "--setup=s.sql"), 2, "open.sql:1:1: the transaction that begins here never ends"),
    "halves": (("halves.sql", "--setup=s.sql", "--max-tries=2"), 2, "halves.sql:2:1: --max-tries begins"),
    "ledger": (("halves.sql", "--setup=s.sql", "--ledger"), 2, "exactly one BEGIN and one COMMIT"),
    "no table": (("table.sql", "--setup=s.sql"), 2, "table.sql:1:1: no such table: gone"),
    "setup": (("a.sql", "--setup=bad.sql"), 2, "bad.sql:2:1: no such table: nowhere"),
    "setup open": (("a.sql", "--setup=open.sql"), 2, "open.sql: its transaction never ends"),
    "no query": (("a.sql", "--setup=s.sql", "--check=a.sql"), 2, "a.sql:1:1: a check must be a query"),
    "broken before": (("a.sql", "--setup=s.sql", "--check=broken.sql"), 1, "before any load, check 1: (1)"),
    "endless": (
        ("a.sql", "--setup=s.sql", "--check=endless.sql", "--check-timeout=50ms"),
        2,
        "took longer than 0.05 s",
    ),
    "no function": (("a.sql", "--setup=s.sql", "--check=c.py:gone"), 2, "has no attribute 'gone'"),
    "no database": (("a.sql", "--database=a.sql"), 2, "'a.sql' is not a SQLite database, or is encrypted"),
}


@pytest.mark.parametrize("name", mostly_thorough(BAD, ["open", "no table", "broken before"]))
def test_unusable_script_is_a_short_error_and_leaves_no_file(cli: Cli, name: str) -> None:
    for file, text in {
        "a.sql": "UPDATE t SET x = x + 1;",
        "s.sql": "CREATE TABLE t (x);",
        "variable.sql": "UPDATE t SET x = :x;",
        "division.sql": "\\set x 1 / 0\nUPDATE t SET x = :x;",
        "open.sql": "BEGIN; CREATE TABLE u (x);",
        "halves.sql": "UPDATE t SET x = 1;\nUPDATE t SET x = 2;",
        "table.sql": "UPDATE gone SET x = 1;",
        "bad.sql": "CREATE TABLE t (x);\nINSERT INTO nowhere VALUES (1)",
        "broken.sql": "SELECT 1;",
        "endless.sql": "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT * FROM n "
        "WHERE i < 0",
        "c.py": "",
    }.items():
        Path(file).write_text(text)
    Path("bytes").write_bytes(b"\xff\x00")
    before = {path.name for path in Path().iterdir()}
    words, code, text = BAD[name]
    said = cli("sql", *words, *ONCE)
    assert (said.code, len(said.lines) in (1, 2)) == (code, True), said
    assert text in said.err
    assert {path.name for path in Path().iterdir()} - {"report.json", "__pycache__"} == before


@pytest.mark.thorough
def test_plan_and_python_name_scripts_as_the_command_line_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TRANSFER)
    options: dict[str, Any] = {
        "script": ["right.sql@2"],
        "setup": "schema.sql",
        "check": ["invariants.sql"],
        "seed": 1,
    }
    report = sqlstress.measure(
        "sql", directory=tmp_path, concurrency=2, repeat=1, duration=0.1, warmup=0.02, **options
    )
    assert report.ok, report.problems
    assert report.figures[0].latency["right.sql"].count > 0 and report.figures[0].counts == "transactions"
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[[case]]\nworkload = "sql"\nconcurrency = 2\nrepeat = 1\nduration = 0.1\nwarmup = 0.02\n'
    )
    with plan.open("a") as file:
        file.writelines(f"{name} = {json.dumps(value)}\n" for name, value in options.items())
    assert [case.spec for case in from_toml(plan)] == [run.case.spec for run in report.runs]


@pytest.mark.thorough
def test_scripts_may_change_what_is_defined(cli: Cli) -> None:
    Path("t.sql").write_text("CREATE TABLE t (x)")
    Path("define.sql").write_text(
        "\\set n random(1, 1000000)\nCREATE TABLE IF NOT EXISTS u (x); INSERT INTO u VALUES (:n);"
    )
    cli("sql", "define.sql", "--setup=t.sql", "-c2", *ONCE, expected=0)
    assert "schema" not in checks()


@pytest.mark.thorough
def test_dry_driver_runs_scripts_without_a_database(cli: Cli) -> None:
    said = cli("sql", "-btpcb-like", "-c1", "--driver=dry", *ONCE)
    assert (said.code, said.err) == (0, "") and "stores nothing" in said.out
    bank = cli("sql", "-bbank", "-c1", "--driver=dry", *ONCE)
    assert bank.code == 2 and "bank:5:1: \\gset needs a row, and the dry driver returns none" in bank.lines[0]


@pytest.mark.thorough
def test_window_without_completed_transaction_is_an_error(cli: Cli) -> None:
    Path("slow.sql").write_text("\\sleep 1 s\nSELECT 1;\n")
    Path("s.sql").write_text("CREATE TABLE t (x);\n")
    said = cli("sql", "slow.sql", "--setup=s.sql", "-c1", *ONCE)
    assert said.code == 4
    assert "no transaction ended within the window of 100ms, in 3 trials: give a longer" in said.err
