"""Helpers for tests on a PostgreSQL server: remaining objects, and actions during the window."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pytest

from sqlstress.report import Report
from tests.cli.conftest import Cli, Said, saved

psycopg = pytest.importorskip("psycopg")

OUTPUTS = ("report.json", "report.md", "report.html", "report.csv")
ONCE = ("--repeat=1", "--seed=1", "--no-progress", "--dir=.")
OURS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'sqlstress%'"
IN_PUBLIC = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
WRITES = "^(INSERT INTO kv_|UPDATE counter_)"


def password(dsn: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(dsn)["password"])


def measured(cli: Cli, *options: str, code: int = 0) -> tuple[Said, Report]:
    """Measure; return the ended command and its saved report."""
    # With all findings, because noise decides which three are shown first.
    said = cli(*options[:1], *ONCE, "--details", *(f"-o{name}" for name in OUTPUTS), *options[1:])
    assert said.code == code, said.err
    return said, saved()


def schemas(server: str) -> list[str]:
    """Return the schemas that sqlstress created."""
    with psycopg.connect(server) as connection:
        return [name for (name,) in connection.execute(OURS).fetchall()]


def left(server: str) -> tuple[int, int]:
    """Return the number of our schemas, and of all relations outside of the system's schemas."""
    with psycopg.connect(server) as connection:
        row = connection.execute(IN_PUBLIC).fetchone()
    assert row
    return len(schemas(server)), int(row[0])


def ports_of(process: psutil.Process) -> set[int]:
    """Return the ports at which a process has connections; none if it has ended."""
    with suppress(psutil.Error):
        return {connection.laddr.port for connection in process.net_connections("tcp4")}
    return set()


def worker_sessions(connection: Any, query: str = "") -> list[tuple[int, int, Any]]:
    """Return (id, port, begin) of the workers' sessions whose last statement matches `query`."""
    statement = (
        "SELECT pid, client_port, query_start FROM pg_stat_activity "
        "WHERE starts_with(application_name, 'sqlstress_') AND query ~ %s"
    )
    own_ports = ports_of(psutil.Process())
    return [row for row in connection.execute(statement, (query,)).fetchall() if row[1] not in own_ports]


@contextmanager
def in_the_window(server: str, act: Any, writes: str = WRITES) -> Iterator[None]:
    """Call `act` once a worker writes and has written, because a statement is also visible when it is
    prepared.
    """
    over = threading.Event()

    def watch() -> None:
        begins: defaultdict[int, set[Any]] = defaultdict(set)
        with psycopg.connect(server, autocommit=True) as connection:
            while not over.wait(0.01):
                rows = worker_sessions(connection, writes)
                for pid, _, begin in rows:
                    begins[pid].add(begin)
                if any(len(found) >= 5 for found in begins.values()):
                    act(connection, rows)
                    return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def kill_worker(connection: Any, _rows: Any) -> None:
    """Kill a process that has a session of sqlstress. A session may end while its process is searched."""
    workers: list[psutil.Process] = []
    for _ in range(100):
        ports = {port for _, port, _ in worker_sessions(connection)}
        children = psutil.Process().children(recursive=True)
        if workers := [process for process in children if ports & ports_of(process)]:
            break
        time.sleep(0.05)
    workers[0].kill()
