"""A real PostgreSQL server, which the tests start and end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.postgres.dialect import SERVER_VARIABLE, programs

CONNECTIONS = 50
KEPT: set[int] = set()
"""Processes of the server that all tests share."""


def needs_server() -> None:
    """Skip a test if no server can be started."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    try:
        programs()
    except EnvironmentFailure as error:
        pytest.skip(str(error))


@contextmanager
def running_server(folder: Path, connections: int = CONNECTIONS) -> Iterator[str]:
    """Run a server as a user has it, with a port and a password; yield its connection string."""
    needs_server()
    import psycopg

    from sqlstress.targets.postgres.server import MAX_SOCKET_PATH, running

    # The path is too long for a socket.
    with running(folder / ("p" * MAX_SOCKET_PATH), connections) as dsn:
        # By default a deadlock takes a second, the whole window of a test.
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET deadlock_timeout = '20ms'")
            connection.execute("SELECT pg_reload_conf()")
        yield dsn


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The connection string of a server, one for each process of pytest."""
    before = children()
    with running_server(tmp_path_factory.mktemp("postgres")) as dsn:
        KEPT.update(children() - before)
        yield dsn
    KEPT.clear()


def children() -> set[int]:
    """Return the process ids of our children."""
    return {child.pid for child in psutil.Process().children()}


@pytest.fixture
def our_server(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the server the temporary server of a measurement; its connection string."""
    monkeypatch.setenv(SERVER_VARIABLE, server)
    return server
