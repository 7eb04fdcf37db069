"""A real PostgreSQL server, started by us and ended by its own id."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.postgres.dialect import OURS

CONNECTIONS = 40
KEPT: set[int] = set()
"""The processes of the server that is there for all tests."""


def needs_server() -> None:
    """Skip a test where no server can be started."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from sqlstress.targets.postgres.server import programs, unprivileged

    try:
        programs()
        unprivileged()
    except EnvironmentFailure as error:
        pytest.skip(str(error))


@contextmanager
def running_server(folder: Path, connections: int = CONNECTIONS) -> Iterator[str]:
    """Run a server in a folder, as somebody has one: it listens on this machine and wants a password.

    Yields its connection string.
    """
    needs_server()
    import psycopg

    from sqlstress.targets.postgres import server as embedded

    with ExitStack() as stack:
        # Other servers are started while this one runs, and are none of somebody's.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(embedded, "LONGEST_SOCKET", 0)
            dsn = stack.enter_context(embedded.running(folder, connections))
        # Who waits in a circle is told at once: by default it takes a second, a test's whole window.
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET deadlock_timeout = '20ms'")
            connection.execute("SELECT pg_reload_conf()")
        yield dsn


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server, one for each process of pytest's: its connection string."""
    before = children()
    with running_server(tmp_path_factory.mktemp("postgres")) as dsn:
        KEPT.update(children() - before)
        yield dsn
    KEPT.clear()


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


@pytest.fixture
def our_server(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, as a measurement knows the one that runs for it."""
    monkeypatch.setenv(OURS, server)
    return server
