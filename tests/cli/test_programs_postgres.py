"""The user's programs on PostgreSQL, an application and commands: real runs, a real server."""

import subprocess
import sys
from pathlib import Path

import pytest

from sqlstress.experiments.app.work import NAME
from sqlstress.report import Trial
from sqlstress.report.results import MAX_COUNTEREXAMPLES
from tests.cli.conftest import Cli, Said
from tests.cli.on_postgres import OUTPUTS, left, measured, password
from tests.pages import ROOT
from tests.rows import thorough

APPS = ROOT / "examples" / "app"
HEAD = """
import os, random, signal, time
import psycopg
from sqlstress import check, connect, setup, transaction
@setup
def made(url):
    with psycopg.connect(url) as c:
        c.execute("CREATE TABLE t (x int)")
        c.execute("INSERT INTO t VALUES (0)")
"""
DROPS = "\"DO 'BEGIN EXECUTE format($$DROP SCHEMA %I CASCADE$$, current_schema()); END'\""
CONNECTS = """
@connect
def opened(url):
    return psycopg.connect(url, autocommit=True)
@transaction
def add(c):
    c.execute("UPDATE t SET x = x + 1")
"""
SHORT = ("--duration=600ms", "--warmup=50ms")


def app(cli: Cli, url: str, text: str, *options: str, code: int = 0) -> tuple[Said, Trial]:
    """Measure an application on a server; return the ended command, and the only trial."""
    Path("own.py").write_text(HEAD + text, encoding="utf-8")
    words = ("own.py", "--target=postgres", f"--dsn={url}", "-c2", *SHORT, *options)
    said, report = measured(cli, "app", *words, code=code)
    (run,) = report.runs
    (trial,) = run.trials
    return said, trial


def status(trial: Trial, name: str = NAME) -> tuple[str, str]:
    (found,) = [check for check in trial.verdict.checks if check.name == name]
    return found.status, " ".join((*found.counterexamples[:MAX_COUNTEREXAMPLES], found.note)).strip()


def test_application_is_proved_and_its_connection_settings_are_reported(
    cli: Cli, server: str, url: str
) -> None:
    said, trial = app(cli, url, CONNECTS)
    assert (
        "Settings of your connections (as read from PostgreSQL at the end): synchronous_commit=on, read"
        in said.text
    )
    assert "autocommit on (2 connections)" in said.text and "Every commit synced" in said.text
    assert status(trial)[0] == "ok" and trial.transactions
    assert trial.effective["transaction_isolation"] == "read committed"
    assert left(server) == (0, 0)
    saved = "".join(Path(name).read_text(encoding="utf-8") for name in OUTPUTS)
    assert password(server) not in said.out + said.err + saved


@pytest.mark.thorough
def test_isolation_level_is_set_and_a_different_one_is_reported(cli: Cli, url: str) -> None:
    _, trial = app(cli, url, CONNECTS, "--isolation=serializable", "--max-failed=100%")
    assert trial.effective["transaction_isolation"] == "serializable"
    own = CONNECTS.replace(
        "return psycopg.connect(url, autocommit=True)",
        """
    c = psycopg.connect(url)
    c.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    c.execute("SET synchronous_commit = off")
    c.commit()
    return c
""",
    ).replace('x + 1")', 'x + 1"); c.commit()')
    said, trial = app(cli, url, own, "--max-failed=100%")
    assert trial.effective["transaction_isolation"] == "repeatable read"
    assert trial.effective["synchronous_commit"] == "off"
    assert "synchronous_commit is off on connections: a power failure can lose" in said.text
    assert "A power cut can lose the last commits" in said.text


@pytest.mark.thorough
def test_refused_transactions_are_counted_by_sqlstate(cli: Cli, url: str) -> None:
    text = """
@connect
def opened(url):
    return psycopg.connect(url)
@transaction
def meets(c):
    with c.transaction():
        c.execute("SELECT x FROM t")
        time.sleep(0.002)
        c.execute("UPDATE t SET x = x + 1")
"""
    said, trial = app(cli, url, text, "--isolation=repeatable-read", "--max-failed=100%")
    (raised,) = [sighting for sighting in trial.sightings if sighting.topic == "exception"]
    assert (raised.what, raised.traits["raised"]) == ("SQLSTATE 40001", "psycopg.errors.SerializationFailure")
    assert trial.busy_snapshot and trial.failed and not trial.busy
    assert "retry the whole transaction" in said.text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "found", "told"),
    [
        # Its connections are closed before the check; the server has counted their writes.
        (
            "@transaction\ndef t(url):\n    with psycopg.connect(url) as c:\n"
            "        c.execute('UPDATE t SET x = x + 1')",
            "ok",
            "",
        ),
        (
            "@transaction\ndef t(url):\n    with psycopg.connect(url) as c:\n        c.execute('SELECT 1')",
            "unknown",
            "no connection of psycopg was seen at work",
        ),
        (
            "@connect\ndef c(url):\n    c = psycopg.connect(url, autocommit=True)\n"
            "    c.execute('SET search_path = public')\n    return c\n"
            "@transaction\ndef t(c):\n    c.execute('SELECT 1')",
            "failed",
            "the app used postgres.public instead",
        ),
    ],
)
def test_application_outside_of_our_schema_is_detected(
    cli: Cli, url: str, text: str, found: str, told: str
) -> None:
    said, trial = app(cli, url, text, code=1 if found == "failed" else 0)
    assert status(trial) == (found, told)
    if found != "failed":
        assert "no psycopg connection was open and idle at the end. A session begins with" in said.text
        assert "Durability unknown: no connection was seen." in said.text


@pytest.mark.thorough
def test_killed_process_does_not_prevent_the_report(cli: Cli, server: str, url: str) -> None:
    text = CONNECTS.replace(
        'x + 1")', 'x + 1") if random.random() < .9 else os.kill(os.getpid(), signal.SIGKILL)'
    )
    _, trial = app(cli, url, text, code=4)
    assert trial.error and "was killed by SIGKILL" in trial.error
    assert left(server) == (0, 0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEAD.replace('c.execute("', 'c.execute("--'), "left the database empty"),
        thorough(HEAD.replace('"INSERT INTO t VALUES (0)"', DROPS), "left the database empty"),
        ("from sqlstress import transaction\nimport psycopg\npsycopg.connect('')\n", "cannot be imported"),
    ],
)
def test_unusable_file_is_a_one_line_error(cli: Cli, server: str, url: str, text: str, told: str) -> None:
    Path("own.py").write_text(text + "@transaction\ndef t(c): pass\n", encoding="utf-8")
    said = cli("app", "own.py", "--target=postgres", f"--dsn={url}", "-c1", "--repeat=1", "--no-progress")
    assert (said.code, len(said.lines)) == (2, 1), said.err
    assert told in said.err and left(server) == (0, 0)


@pytest.mark.thorough
def test_commands_find_the_server_by_a_url_and_by_variables(cli: Cli, server: str, url: str) -> None:
    Path("s.sql").write_text("CREATE TABLE t (x int)")
    Path("c.sql").write_text("-- each number once\nSELECT x FROM t GROUP BY x HAVING count(*) > 1;")
    Path("own.py").write_text(
        "import os, sys, psycopg\n"
        "assert os.environ['SQLSTRESS_DATABASE'] == sys.argv[1]\n"
        "with psycopg.connect(sys.argv[1] if int(sys.argv[2]) % 2 else '') as c:\n"
        "    c.execute('INSERT INTO t VALUES (%s)', [sys.argv[2]])\n"
    )
    options = ("--target=postgres", f"--dsn={url}", "--setup=s.sql", "--check=c.sql", "-c2", "--ops=3")
    words = (*options, "--", sys.executable, "own.py", "{db}", "{n}")
    said, report = measured(cli, "exec", *words)
    own, nothing = report.runs
    assert own.trials[0].transactions == 6 and own.verdict.status == "ok", said.out
    assert not nothing.case.spec.command
    assert "PostgreSQL (" in said.text and "SQLite" not in said.out
    assert left(server) == (0, 0)


TAKES = """
import sys, time
from pathlib import Path
import psycopg
with psycopg.connect("") as c:
    ((number,),) = c.execute("SELECT coalesce(max(number), 0) + 1 FROM ticket").fetchall()
    Path(f"{number} {sys.argv[1]}").touch()
    until = time.monotonic() + 30
    while len(list(Path().glob(f"{number} *"))) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    c.execute("INSERT INTO ticket (number) VALUES (%s)", [number])
"""
"""Takes the next number, even if another process has read the number: docs/exec.md shows the consequence."""


@pytest.mark.thorough
@pytest.mark.parametrize("isolation", ["read-committed", "serializable"])
def test_concurrent_commands_take_equal_numbers_unless_isolated(cli: Cli, url: str, isolation: str) -> None:
    Path("own.py").write_text(TAKES)
    tickets = (f"--setup={ROOT / 'examples/tickets.sql'}", f"--check={ROOT / 'examples/tickets_checks.sql'}")
    options = ("--target=postgres", f"--dsn={url}", "--isolation", isolation, *tickets)
    words = ("-c2", "--ops=1", "--timeout=60s", "--alone", "--", sys.executable, "own.py", "{worker}")
    said, report = measured(cli, "exec", *options, *words, code=1)
    holds = isolation == "serializable"
    (trial,) = report.runs[0].trials
    assert (report.runs[0].verdict.status == "ok") == holds == bool(trial.failed)
    told = "could not serialize access" if holds else "no number twice: ("
    assert told in said.text


@pytest.mark.thorough
def test_statement_of_an_ended_command_is_ended_on_the_server(cli: Cli, server: str, url: str) -> None:
    Path("own.py").write_text("import psycopg\npsycopg.connect('').execute('SELECT pg_sleep(600)')\n")
    options = ("--target=postgres", f"--dsn={url}", "-c2", "--ops=1", "--timeout=2s", "--alone")
    said, report = measured(cli, "exec", *options, "--", sys.executable, "own.py", code=1)
    assert "took longer than 2 s" in said.text
    assert left(server) == (0, 0) and not report.runs[0].trials[0].error


@pytest.mark.thorough
def test_application_is_set_side_by_side_on_two_targets(cli: Cli, server: str, url: str) -> None:
    options = (str(APPS / "bank_sqlalchemy.py"), "--target=sqlite,postgres", f"--dsn={url}", "-c2")
    said, report = measured(cli, "app", *options)
    assert [run.case.driver for run in report.runs] == ["sqlite3", "psycopg"]
    assert {run.verdict.status for run in report.runs} == {"ok"}
    assert "sqlite postgres" in said.text
    assert "as read from SQLite" in said.text and "as read from PostgreSQL" in said.text
    assert left(server) == (0, 0)


@pytest.mark.thorough
def test_temporary_server_ignores_the_users_postgres_variables(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PGHOSTADDR": "192.0.2.1", "PGSERVICE": "theirs"}.items():
        monkeypatch.setenv(name, value)
    _, report = measured(cli, "app", str(APPS / "bank_psycopg.py"), "--target=postgres", "-c2")
    assert report.runs[0].verdict.status == "ok"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(OUTPUTS)


WITHOUT = (
    "import sys; sys.modules['psycopg'] = None; from sqlstress.cli.commands import run; sys.exit(run({}))"
)


@pytest.mark.parametrize(
    "words",
    [
        ("app", "--target=postgres", "own.py"),
        thorough(("exec", "--target=postgres", "--", "true")),
        thorough(("kv", "--target=sqlite,postgres")),
        ("kv", "--driver=psycopg", "--loop=python"),
    ],
    ids=["app", "exec", "kv", "kv in Python"],
)
def test_missing_psycopg_is_refused_with_its_installation(cli: Cli, words: tuple[str, ...]) -> None:
    Path("own.py").write_text(HEAD + CONNECTS, encoding="utf-8")
    code = WITHOUT.format([*words])
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr.count("\n")) == (2, 1), said.stderr
    assert "psycopg is not installed" in said.stderr
    assert "Use python -m pip install '.[postgres]'" in said.stderr
