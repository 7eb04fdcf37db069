"""A server of our own, for one measurement: it lies in our folder, beside what else is measured there.

Its socket lies there too, in a folder that nobody else may enter; where that can't be (Windows, long paths),
it listens on 127.0.0.1 and wants a password that is drawn for it.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg.conninfo import make_conninfo

from sqlstress.errors import EnvironmentFailure
from sqlstress.system.processes import Inbox
from sqlstress.system.processes import start as start_process
from sqlstress.targets.place import SERVER_FOLDER
from sqlstress.targets.postgres.binaries import programs, unprivileged
from sqlstress.targets.postgres.errors import one_line
from sqlstress.targets.postgres.watcher import DATA, END_S, Start, ask_to_end, launch, watch

USER, DATABASE, PORT = "sqlstress", "postgres", 5432
READY_S = 60.0
SPARE = 10
"""Connections beside the workers': the parent's, and the server's reserve."""
LONGEST_SOCKET = 100
"""Bytes of a socket's path that every system takes."""
POLL_S = 0.02
_HAS_AMCHECK = "SELECT name FROM pg_available_extensions WHERE name = 'amcheck'"


class Way(NamedTuple):
    """How a server is spoken to."""

    server: tuple[str, ...]
    """Its options."""
    initdb: tuple[str, ...]
    """Those of the program that makes its files."""
    dsn: str


@contextmanager
def running(folder: Path, connections: int) -> Iterator[str]:
    """Run a server for so many connections in a folder of ours; yield its connection string.

    It has ended when the block does; its files are in a folder of its own there. Raises EnvironmentFailure.
    """
    bin, user, home = programs(), unprivileged(), folder.absolute() / SERVER_FOLDER
    data, log = home / "data", home / "log"
    for made in (home, data):
        made.mkdir(mode=0o700)
        _hand_over(made, user)
    way = _way(home, data, user)
    initdb = [
        str(bin / "initdb"),
        "-D",
        DATA,
        "-U",
        USER,
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
        *way.initdb,
    ]
    _initialise(Start(initdb, data, log, user))
    limit = ("-c", f"max_connections={connections + SPARE}")
    postgres = [str(bin / "postgres"), "-D", DATA, *way.server, *limit]
    with _watched(Start(postgres, data, log, user)) as runs:
        _await_ready(way.dsn, log, runs)
        _take_checks(way.dsn)
        yield way.dsn


def _hand_over(made: Path, user: tuple[int, int] | None) -> None:
    if user and sys.platform != "win32":
        os.chown(made, *user)


def _way(home: Path, data: Path, user: tuple[int, int] | None) -> Way:
    """Return how a server can be spoken to: by a socket in its folder, or by a port where that can't be."""
    if sys.platform != "win32" and len(os.fsencode(data / f".s.PGSQL.{PORT}")) <= LONGEST_SOCKET:
        server = ("-c", "listen_addresses=", "-c", "unix_socket_directories=.", "-p", str(PORT))
        dsn = make_conninfo("", host=str(data), port=PORT, user=USER, dbname=DATABASE)
        return Way(server, ("--auth=trust",), dsn)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    password, slip = secrets.token_urlsafe(24), home / "password"
    slip.touch(0o600)
    slip.write_text(password, encoding="ascii")
    _hand_over(slip, user)
    server = ("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-p", str(port))
    dsn = make_conninfo("", host="127.0.0.1", port=port, user=USER, password=password, dbname=DATABASE)
    return Way(server, ("--auth=scram-sha-256", f"--pwfile={DATA}/../{slip.name}"), dsn)


def _initialise(start: Start) -> None:
    """Make the files of a server. Raises EnvironmentFailure."""
    try:
        code = launch(start).wait()
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"cannot make a PostgreSQL server: {error}.") from error
    if code:
        raise EnvironmentFailure(f"cannot make a PostgreSQL server: {_last_words(start.log)}.")


@contextmanager
def _watched(server: Start) -> Iterator[Callable[[], bool]]:
    """Run a server with its watcher; yield what says whether it still runs. Raises EnvironmentFailure."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    watcher = context.Process(target=watch, args=(server, theirs), daemon=True)
    pid: int | None = None
    try:
        with theirs:
            start_process(watcher)
        told = Inbox(ours).receive() if ours.poll(READY_S) else "its watcher does not answer"
        if not isinstance(told, int):
            raise EnvironmentFailure(f"cannot start a PostgreSQL server: {told}.")
        pid = told
        yield lambda: watcher.is_alive() and (server.data / "postmaster.pid").exists()
    except (EOFError, OSError) as error:
        raise EnvironmentFailure(f"cannot start a PostgreSQL server: {error}.") from error
    finally:
        ours.close()
        watcher.join(3 * END_S)
        if pid:
            _end_without_watcher(pid, server.data)


def _end_without_watcher(pid: int, data: Path) -> None:
    """End a server whose watcher somebody has killed: as long as it runs it has a file with its id."""
    until = time.monotonic() + END_S
    while _id_in(data) == pid and time.monotonic() < until:
        with suppress(OSError):
            ask_to_end(pid)
        time.sleep(POLL_S)


def _id_in(data: Path) -> int | None:
    try:
        return int((data / "postmaster.pid").read_text(encoding="ascii").split("\n")[0])
    except (OSError, ValueError):
        return None


def _await_ready(dsn: str, log: Path, runs: Callable[[], bool]) -> None:
    """Wait until a server takes connections. Raises EnvironmentFailure, with its last words."""
    began = time.monotonic()
    while True:
        try:
            psycopg.connect(dsn, connect_timeout=10).close()
            return
        except psycopg.OperationalError as error:
            waited_s = time.monotonic() - began
            if waited_s > READY_S or (waited_s > 1 and not runs()):
                words = one_line(str(error)) if runs() else _last_words(log)
                raise EnvironmentFailure(f"a PostgreSQL server did not start: {words}.") from error
        time.sleep(POLL_S)


def _take_checks(dsn: str) -> None:
    """Let the server check its own indexes, where it was installed with what that takes."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        if connection.execute(_HAS_AMCHECK).fetchone():
            connection.execute("CREATE EXTENSION IF NOT EXISTS amcheck")


def _last_words(log: Path) -> str:
    """Return what a server said last; nothing of its log stays when the measurement is over."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return one_line(" ".join(lines[-2:]))
