"""A real PostgreSQL server, started by us and ended by its own id."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.postgres.address import OURS

__all__ = ["OURS", "needs_server", "running_server"]

CONNECTIONS = 40


def needs_server() -> None:
    """Skip a test where no server can be started."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from sqlstress.targets.postgres.binaries import programs, unprivileged

    try:
        programs()
        unprivileged()
    except EnvironmentFailure as error:
        pytest.skip(str(error))


@contextmanager
def running_server(folder: Path, connections: int = CONNECTIONS) -> Iterator[str]:
    """Run a server in a folder; yield its connection string."""
    needs_server()
    from sqlstress.targets.postgres import embedded

    with embedded.running(folder, connections) as dsn:
        yield dsn
