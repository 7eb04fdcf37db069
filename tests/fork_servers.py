"""Fork servers that tests share: a start costs as much processor time as a brief measurement."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from sqlstress.system import processes

MAX_SERVERS = 8
"""Maximum number of servers that a process of pytest keeps."""
MODULES = ("sqlstress.experiments.app.user_file", "sqlstress.targets.sqlite.integrity")
"""Modules of the server that replaces spawned processes."""
CURRENT_TEST = "PYTEST_CURRENT_TEST"
"""Environment variable that pytest changes for each test."""
LIMITS = ("RLIMIT_AS", "RLIMIT_CORE", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_NPROC")


class ForkServers:
    """Servers that outlive a measurement, for later measurements with equal modules and surroundings."""

    def __init__(self) -> None:
        self._begin: Callable[[Sequence[str]], AbstractContextManager[processes.Starter]] = processes._starter
        self._servers: dict[tuple[object, ...], tuple[processes.Starter, ExitStack]] = {}
        """Servers and the stacks that end them, by modules and surroundings, the latest used last."""

    @contextmanager
    def lend(self, modules: Sequence[str]) -> Iterator[processes.Starter]:
        """Yield a server that has imported the modules; a starter of spawned processes without modules."""
        key = (*modules, *surroundings())
        if key not in self._servers:
            stack = ExitStack()
            self._servers[key] = stack.enter_context(self._begin(modules)), stack
        self._servers[key] = self._servers.pop(key)
        server, _ = self._servers[key]
        try:
            yield server
        finally:
            getattr(server, "_ahead", []).clear()  # These are processes of the measurement that has ended.
            self.end(MAX_SERVERS)

    def end(self, left: int = 0) -> None:
        """End all servers, except for the `left` that were used last."""
        while len(self._servers) > left:
            _, stack = self._servers.pop(next(iter(self._servers)))
            stack.close()


class ForkInsteadOfSpawn(processes.Starter):
    """Starter of processes outside of a session, which would be spawned: a shared server forks them."""

    def __init__(self, servers: ForkServers) -> None:
        self._servers = servers

    def start(self, main: Callable[..., None], args: tuple[Any, ...]) -> BaseProcess:
        """Start a process that calls `main` with `args`. Raises OSError."""
        with self._servers.lend(MODULES) as server:
            return server.start(main, args)


def surroundings() -> Iterator[object]:
    """Yield all that processes inherit from a server: environment, streams, limits, user, processors."""
    yield frozenset((name, value) for name, value in os.environ.items() if name != CURRENT_TEST)
    for descriptor in (1, 2):
        status = os.fstat(descriptor)
        yield status.st_dev, status.st_ino
    if sys.platform != "win32":
        import resource

        yield from (resource.getrlimit(getattr(resource, name)) for name in LIMITS)
        yield os.geteuid()
        mask = os.umask(0o077)
        os.umask(mask)
        yield mask
    if sys.platform == "linux":
        yield frozenset(os.sched_getaffinity(0))


@pytest.fixture(scope="session")
def fork_servers() -> Iterator[ForkServers]:
    """The shared servers of a process of pytest."""
    servers = ForkServers()
    yield servers
    servers.end()


@pytest.fixture
def shared_fork_servers(fork_servers: ForkServers) -> Iterator[None]:
    """Share servers between measurements in this process. Commands in other processes start their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_starter", fork_servers.lend)
        token = processes._STARTER.set(ForkInsteadOfSpawn(fork_servers))
        yield
        processes._STARTER.reset(token)
