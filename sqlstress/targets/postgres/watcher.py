"""The process that keeps a server of ours: it ends it when it is told to, or when who told it has died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sqlstress.system.child import Pipe, begin_child, send, when_orphaned

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
