"""A server of our own, for one measurement: it lies in our folder, beside what else is measured there.

Its socket lies there too, in a folder that nobody else may enter; where that can't be (Windows, long paths),
it listens on 127.0.0.1 and wants a password that is drawn for it.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo

from sqlstress.errors import EnvironmentFailure
from sqlstress.report.case import Case
from sqlstress.system.child import Pipe, begin_child, send, when_orphaned
from sqlstress.system.processes import Inbox
from sqlstress.system.processes import start as start_process
from sqlstress.targets.place import SERVER_FOLDER
from sqlstress.targets.postgres.address import OURS, dsn_of
from sqlstress.targets.postgres.errors import one_line
from sqlstress.targets.postgres.installed import programs, unprivileged
from sqlstress.targets.postgres.schema import drop_abandoned, opened

# The process that keeps a server of ours: it ends it when it is told to, or when who told it has died.


END_S = 10.0
"""So long a server may take to end at once before it is killed."""


DATA = "{data}"


class Start(NamedTuple):
    """How a program of the server's is started."""

    command: list[str]
    """Words in which DATA stands for the folder of its data."""
    data: Path
    log: Path
    """What it says goes there."""
    user: tuple[int, int] | None
    """As which user and group; None: as ourselves."""


def watch(start: Start, pipe: Pipe) -> None:
    """Run the watcher's process: tell the server's id, then wait for the other end of the pipe to close."""
    begin_child()
    try:
        server = launch(start)
    except (OSError, subprocess.SubprocessError) as error:
        send(pipe, str(error))
        return
    when_orphaned(lambda: end(server))
    with suppress(OSError):
        send(pipe, server.pid)
    with suppress(EOFError, OSError):
        pipe.recv_bytes()
    end(server)


def launch(start: Start) -> subprocess.Popen[bytes]:
    """Start a program of the server's, out of reach of a Ctrl-C. Raises OSError or SubprocessError."""
    # What libpq is told by the environment is of the user's servers.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    with ExitStack() as opened:
        log = opened.enter_context(start.log.open("ab"))
        data, apart = _apart(start, opened)
        return subprocess.Popen(
            [word.replace(DATA, data) for word in start.command],
            cwd=start.data.anchor,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **apart,
        )


def _apart(start: Start, opened: ExitStack) -> tuple[str, dict[str, Any]]:
    """Return how a program reaches its data, and how it is started apart from us."""
    data = str(start.data)
    if sys.platform == "win32":
        return data, {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    if start.user is None:
        return data, {"start_new_session": True}
    user, group = start.user
    apart: dict[str, Any] = {"start_new_session": True, "user": user, "group": group, "extra_groups": []}
    if sys.platform != "linux":
        return data, apart
    # As another user it may not reach the folder by its path: it is handed it, open.
    folder = os.open(data, os.O_RDONLY)
    opened.callback(os.close, folder)
    return f"/proc/self/fd/{folder}", {**apart, "pass_fds": (folder,)}


def end(server: subprocess.Popen[bytes]) -> None:
    """End a server at once: what it holds is not wanted any more."""
    _until_ended(server, partial(ask_to_end, server.pid))
    _until_ended(server, server.kill)


def _until_ended(server: subprocess.Popen[bytes], act: Callable[[], None]) -> None:
    if server.poll() is None:
        with suppress(OSError):
            act()
        with suppress(subprocess.TimeoutExpired):
            server.wait(END_S)


def ask_to_end(pid: int) -> None:
    """Ask a server to end without writing anything more. Raises OSError."""
    if sys.platform == "win32":
        os.kill(pid, signal.SIGTERM)
    else:
        os.kill(pid, signal.SIGQUIT)


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


# What a measurement needs of servers before its first trial: that they are there, and have room.


OWN = 3
"""Connections of the parent, at once."""
EACH = 4
"""Connections that a server of ours has for each process: an application of the user's may have several."""
_FREE = (
    "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
    " - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
)


@contextmanager
def serving(cases: Sequence[Case], folder: Path) -> Iterator[None]:
    """Have a server of ours for the cases that name none, and look at those that are named.

    Raises EnvironmentFailure.
    """
    own = [case for case in cases if not (case.server and case.server.address)]
    others = {dsn_of(case): case for case in sorted(cases, key=_processes) if case not in own}
    for dsn, case in others.items():
        _look(dsn, case.concurrency)
    if not own:
        yield
        return
    # A server that is named may need them.
    alone = nullcontext() if others else variables_hidden()
    with alone, running(folder, EACH * max(map(_processes, own)) + OWN) as dsn:
        os.environ[OURS] = dsn
        try:
            yield
        finally:
            del os.environ[OURS]


@contextmanager
def variables_hidden() -> Iterator[None]:
    """Hide what libpq takes from the environment: it is of another server, and would lead there."""
    names = {one.envvar.decode() for one in Conninfo.get_defaults() if one.envvar} | {"PGSERVICE"}
    hidden = {name: os.environ.pop(name) for name in names & os.environ.keys()}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _processes(case: Case) -> int:
    return case.concurrency


def _look(dsn: str, processes: int) -> None:
    """See that a server answers and has room; drop what killed runs of ours have left there."""
    drop_abandoned(dsn)
    with opened(dsn, "the server can't be used") as connection:
        row = connection.execute(_FREE).fetchone()
    free = row[0] if row else 0
    if free < processes + OWN - 1:
        raise EnvironmentFailure(
            f"the server has room for {free} connections more, and {processes + OWN - 1} are needed: "
            "lower --concurrency, or raise its max_connections."
        )
