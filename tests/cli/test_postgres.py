"""PostgreSQL through the command line: real runs, on the user's server and on a temporary server."""

import os
import re
import signal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest

import sqlstress
from sqlstress.report import Run
from tests.cli.conftest import Cli, Said, saved
from tests.cli.on_postgres import OUTPUTS, in_the_window, kill_worker, measured, password, schemas
from tests.servers import running_server

psycopg = pytest.importorskip("psycopg")

SHORT = ("kv", "--driver=psycopg", "--key-space=200", "--repeat=1", "--no-progress", "--dir=.")
KV = SHORT[:3]


def test_run_on_a_given_server_is_proved_and_leaves_no_trace(cli: Cli, server: str, url: str) -> None:
    said, report = measured(
        cli, *KV, "--dsn", url, "-c", "1,3", "-b", "2", "--batch", "3", "--update-ratio", "20%"
    )
    for run in report.runs:
        assert run.verdict.status == "ok"
        assert run.case.server and f"postgresql://{run.case.server.address}" == url.replace(
            f":{password(server)}", ""
        )
    assert schemas(server) == []
    everything = said.out + said.err + "".join(Path(name).read_text(encoding="utf-8") for name in OUTPUTS)
    assert password(server) not in everything
    assert "Every commit synced: fsync on, synchronous_commit on" in said.out.replace("\n", " ")
    assert "PostgreSQL 1" in said.out
    assert "SQLite 3" not in said.out and "busy handler" not in said.out


@pytest.mark.thorough
def test_ab_test_in_python_saves_no_password(server: str, url: str, tmp_path: Path) -> None:
    own, saved = {"driver": "psycopg", "dsn": url}, tmp_path / "ab.json"
    report = sqlstress.ab(
        a=own, b={**own, "synchronous": "normal"}, directory=tmp_path, save=saved, concurrency=1,
        key_space=500, duration="50ms", warmup="50ms", max_pairs=10,
    )  # fmt: skip
    assert report.verdict
    assert schemas(server) == []
    assert password(server) not in report.text() + saved.read_text(encoding="utf-8")


@pytest.mark.thorough
def test_run_without_dsn_starts_a_server_and_removes_it(cli: Cli, tmp_path: Path) -> None:
    _, report = measured(cli, *KV, "-c", "2", "--verify", "full", "--key-type", "text")
    (run,) = report.runs
    assert run.verdict.status == "ok"
    assert run.case.server and run.case.server.address is None
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(OUTPUTS)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("isolation", "begin", "holds"),
    [
        ("read-committed", "deferred", False),
        ("read-committed", "immediate", True),
        ("repeatable read", "deferred", True),
        ("serializable", "deferred", True),
    ],
)
def test_read_modify_write_loses_updates_only_as_documented(
    cli: Cli, url: str, isolation: str, begin: str, holds: bool
) -> None:
    said, report = measured(
        cli,
        *(*KV, "--dsn", url, "--isolation", isolation, "--begin", begin, "-c", "6"),
        *("--update-ratio", "100%", "--read-ratio", "0", "--duration", "1s"),
        code=0 if holds else 1,
    )
    (run,) = report.runs
    assert run.trials[0].effective["transaction_isolation"] == isolation.replace("-", " ")
    lost = next(check for check in run.verdict.checks if check.name == "lost updates")
    assert lost.status == ("ok" if holds else "failed")
    assert ("SELECT ... FOR UPDATE" in said.out) is not holds
    if begin == "deferred" and holds:
        assert run.trials[0].busy_snapshot
        assert "after a serialization failure" in said.out.replace("\n  ", " ")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("level", "told"),
    [
        ("normal", "A power cut can lose the last commits: fsync on, synchronous_commit off"),
        ("full", "Every commit synced"),
    ],
)
def test_synchronous_level_is_set_read_back_and_reported(cli: Cli, url: str, level: str, told: str) -> None:
    said, report = measured(cli, *KV, "--dsn", url, "--synchronous", level, "-c", "1")
    assert report.runs[0].trials[0].effective["synchronous_commit"] == {"normal": "off", "full": "on"}[level]
    assert told in said.out.replace("\n", " ")


@pytest.mark.thorough
def test_rate_works_on_a_server(cli: Cli, url: str) -> None:
    _, report = measured(cli, *KV, "--dsn", url, "-c", "2", "--rate", "100")
    assert report.runs[0].verdict.status == "ok"


def refused(cli: Cli, dsn: str, *options: str) -> str:
    """Return the error message of a refused measurement."""
    said = cli(*SHORT, "--dsn", dsn, *options)
    assert (said.code, len(said.lines)) == (4, 1)
    return said.err


def test_unreachable_server_is_a_one_line_error(cli: Cli) -> None:
    assert "cannot use the server: connection" in refused(cli, "postgresql://me:s3cr3t@127.0.0.1:1/db")


def test_wrong_password_is_reported_without_the_password(cli: Cli, url: str) -> None:
    told = refused(cli, url.replace(password(url), "s3cr3t"))
    assert "password authentication failed" in told
    assert "s3cr3t" not in told and password(url) not in told


def test_server_without_free_connections_is_an_error_with_its_limit(cli: Cli, server: str, url: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE ROLE few LOGIN SUPERUSER PASSWORD 'x'")
        connection.execute("ALTER ROLE few NOSUPERUSER CONNECTION LIMIT 2")
        connection.execute("GRANT CREATE ON DATABASE postgres TO few")
        try:
            dsn = url.replace(f"sqlstress:{password(url)}", "few:x")
            assert 'too many connections for role "few"' in refused(cli, dsn, "-c", "4")
            assert schemas(server) == []
        finally:
            connection.execute("REVOKE CREATE ON DATABASE postgres FROM few")
            connection.execute("DROP ROLE few")


def test_missing_database_is_an_error(cli: Cli, url: str) -> None:
    assert 'database "nowhere" does not exist' in refused(cli, url.replace("/postgres", "/nowhere"))


LATE = ("--read-ratio=0", "--duration=3s", "-oreport.json")


def disturbed(cli: Cli, dsn: str, act: Any, *options: str, code: int = 4) -> tuple[Said, Run]:
    """Measure while `act` is called in the window; return the ended command, and the run."""
    with in_the_window(dsn, act):
        said = cli(*SHORT, "--details", "--dsn", dsn, *LATE, *options)
    assert said.code == code, said.err
    (run,) = saved().runs
    assert run.trials, (run.error, said.err)
    return said, run


@pytest.mark.thorough
@pytest.mark.parametrize("all_at_once", [True, False], ids=["all are ended", "one is killed"])
def test_sessions_that_end_in_the_window_lose_no_acknowledged_write(
    cli: Cli, tmp_path: Path, all_at_once: bool
) -> None:
    """If a server process is killed, the server ends all sessions and recovers all that was committed."""

    def end(connection: Any, rows: Any) -> None:
        for pid, *_ in rows if all_at_once else ():
            connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
        if not all_at_once:
            psutil.Process(rows[0][0]).kill()

    with running_server(tmp_path) as own:
        _, run = disturbed(cli, own, end, "-c3")
        assert schemas(own) == []
    (trial,) = run.trials
    assert trial.error and re.search("terminating connection|closed the connection", trial.error)
    assert trial.verdict.status == "ok"


@pytest.mark.thorough
def test_trial_with_a_server_that_stops_is_kept_with_its_error(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlstress.targets.postgres import own_schema as sessions

    monkeypatch.setattr(sessions, "RECOVERY_S", 1.0)

    def stop(_connection: Any, _rows: Any) -> None:
        (file,) = tmp_path.glob("*/server/data/postmaster.pid")
        os.kill(int(file.read_text().split("\n")[0]), getattr(signal, "SIGQUIT", signal.SIGTERM))

    with running_server(tmp_path) as own:
        _, run = disturbed(cli, own, stop, "-c2")
    assert run.trials, run
    assert run.trials[0].error


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options", [("--read-ratio", "0"), ("--update-ratio", "1", "--read-ratio", "0")], ids=str
)
def test_killed_worker_loses_no_acknowledged_write(
    cli: Cli, server: str, url: str, options: tuple[str, ...]
) -> None:
    _, run = disturbed(cli, url, kill_worker, "-c3", *options)
    (trial,) = run.trials
    assert trial.error and "was killed by SIGKILL" in trial.error
    assert trial.verdict.status == "ok"
    assert trial.transactions
    assert schemas(server) == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("TRUNCATE {}.kv_0", "kv_0 was replaced by another table while it was measured"),
        ("CREATE INDEX theirs ON {}.kv_0 (value)", "was added later"),
    ],
    ids=["replaced table", "foreign index"],
)
def test_change_of_the_schema_is_reported(cli: Cli, server: str, url: str, sql: str, words: str) -> None:
    def change(connection: Any, _rows: Any) -> None:
        (schema,) = schemas(server)
        connection.execute(sql.format(schema))

    said, _ = disturbed(cli, url, change, "-c2", code=1)
    assert words in said.text


@pytest.mark.thorough
def test_statements_are_examined_next_to_a_temporary_server(cli: Cli) -> None:
    # If the path of its folder is short enough, the server has a socket, which cannot be copied.
    with TemporaryDirectory(prefix="s") as short:
        options = ("--builtin=bank", "--target=sqlite,postgres", "-c1", "--duration=100ms", "--warmup=50ms")
        said, _ = measured(cli, "sql", *options, "--dir", short)
    assert "were not examined" not in said.text
