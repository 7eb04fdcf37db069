"""A temporary PostgreSQL server. A guard process starts it, and stops it when sqlstress has ended."""

import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from time import monotonic
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.place import SERVER_FOLDER
from sqlstress.targets.postgres.dialect import one_line, programs

HOST, MAX_SOCKET_PATH, NOBODY, START_S = "127.0.0.1", 100, 65534, 60
INITDB = "-U sqlstress -E UTF8 --locale=C --no-sync -A scram-sha-256 --auth-local=trust --pwfile=../password"
NO_CONSOLE = 0x08000000 if sys.platform == "win32" else 0  # Ctrl-C must not reach the server.


@contextmanager
def running(folder: Path, connections: int) -> Iterator[str]:
    """Run a server for `connections` connections in `folder`; yield its DSN. Raises EnvironmentFailure."""
    home = folder.absolute() / SERVER_FOLDER
    (home / "data").mkdir(parents=True)
    home.chmod(0o700)
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import guard; guard(*sys.argv[1:])"
    command = [sys.executable, "-c", code, str(home), str(programs()), str(connections)]
    try:
        with (home / "log").open("wb") as log:
            pipes: dict[str, Any] = {"stdin": PIPE, "stdout": PIPE, "stderr": log}
            guarding = Popen(command, start_new_session=True, creationflags=NO_CONSOLE, **pipes)
    except OSError as error:
        raise EnvironmentFailure(f"cannot start a PostgreSQL server: {error}. Give --dsn.") from error
    with guarding:
        if guarding.stdout and (answer := guarding.stdout.readline()):
            yield json.loads(answer)
            return
    text = one_line(" ".join((home / "log").read_text("utf-8", "replace").strip().splitlines()[-2:]))
    raise EnvironmentFailure(f"a PostgreSQL server did not start: {text}. Give --dsn.")


def guard(home: str, programs_folder: str, connections: str) -> None:
    """Run a server in the folder `home` and print its DSN. Stop it when standard input ends."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # The guard ends after sqlstress, to stop the server.
    with socket.create_server((HOST, 0)) as free:
        port = str(free.getsockname()[1])
    data, password = Path(home, "data"), Path(home, "password")
    has_socket = sys.platform != "win32" and len(os.fsencode(f"{data}/.s.PGSQL.{port}")) <= MAX_SOCKET_PATH
    host, sockets = (str(data), ".") if has_socket else (HOST, "")
    secret = secrets.token_urlsafe(24)  # Other users of this machine can connect to the port.
    password.write_text(secret, encoding="ascii")
    dsn = make_conninfo("user=sqlstress dbname=postgres", host=host, port=port, password=secret)
    system: dict[str, Any] = {"cwd": data, "stdin": DEVNULL, "stdout": sys.stderr}
    if sys.platform == "linux" and os.geteuid() == 0:  # PostgreSQL refuses to run as root.
        system |= {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
        for path in (data.parent, data, password):
            os.chown(path, NOBODY, NOBODY)
    here = "/proc/self/cwd" if sys.platform == "linux" else "."  # "nobody" may not have access to the path.
    if Popen([f"{programs_folder}/initdb", "-D", here, *INITDB.split()], **system).wait():
        return
    options = ("-D", here, "-N", connections, "-h", HOST, "-p", port, "-k", sockets)
    deadline_s = monotonic() + START_S
    with Popen([f"{programs_folder}/postgres", *options], **system) as server:
        try:
            while server.poll() is None and monotonic() < deadline_s:
                with suppress(psycopg.OperationalError):
                    psycopg.connect(dsn, connect_timeout=10).close()
                    os.write(sys.stdout.fileno(), json.dumps(dsn).encode() + b"\n")
                    sys.stdin.read()
                    return
        finally:
            server.send_signal(getattr(signal, "SIGQUIT", signal.SIGTERM))
