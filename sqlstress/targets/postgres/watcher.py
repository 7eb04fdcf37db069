"""The process that keeps a server of ours: it ends it when it is told to, or when who told it has died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlstress.system.child import Pipe, begin_child, send, when_orphaned

END_S = 10.0
"""So long a server may take to end at once before it is killed."""


class Start(NamedTuple):
    """How a program of the server's is started."""

    command: list[str]
    data: Path
    """The folder of its data, in which it is started."""
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
    apart: dict[str, Any] = {}
    if sys.platform == "win32":
        apart["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
    else:
        apart["start_new_session"] = True
        if start.user:
            user, group = start.user
            apart |= {"user": user, "group": group, "extra_groups": []}
    with start.log.open("ab") as log:
        return subprocess.Popen(
            start.command,
            cwd=start.data,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **apart,
        )


def end(server: subprocess.Popen[bytes]) -> None:
    """End a server at once: what it holds is not wanted any more."""
    for act in (lambda: ask_to_end(server.pid), server.kill):
        if server.poll() is None:
            with suppress(OSError):
                act()
            with suppress(subprocess.TimeoutExpired):
                server.wait(END_S)


def ask_to_end(pid: int) -> None:
    """Ask a server to end without writing anything more. Raises OSError."""
    os.kill(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGQUIT)
