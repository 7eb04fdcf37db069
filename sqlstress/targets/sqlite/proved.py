"""All rows of all buckets, looked at in C: whether each is right."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.targets import run_watched
from sqlstress.targets.native import NotToBeHad, extension
from sqlstress.targets.sqlite.connections import reached
from sqlstress.targets.sqlite.drivers import Connection, load_driver

if TYPE_CHECKING:
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse

_ALL = "SELECT key, value FROM kv"
_STATEMENTS = 8
"""As many as loop.h has: the first one is this."""


class _Opened(NamedTuple):
    """Connections that are interrupted, and closed, together."""

    connections: list[Connection]

    def interrupt(self) -> None:
        for connection in self.connections:
            connection.interrupt()

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


def proved(case: Case, paths: Sequence[Path], plan: dict[str, Any], pulse: Pulse) -> int | None:
    """Return how many rows there are, if C finds each of them right; else None, for any reason."""
    driver, opened = load_driver(case.driver), _Opened([])

    def connect() -> list[Connection]:
        for path in paths:
            opened.connections.append(driver.connect(path, case.settings.busy_timeout_ms, None))
        return opened.connections

    with closing(opened):
        try:
            _, handles = reached(case.driver, connect)
        except NotToBeHad:
            return None
        except Exception as error:
            if driver.result_code(error) is None:
                raise
            return None

        statements = (_ALL, *[""] * (_STATEMENTS - 1))
        whole = {**plan, "connections": [tuple(handle) for handle in handles], "statements": statements}
        rows = run_watched(opened, lambda: int(extension().proved(whole)), pulse)
        return None if rows < 0 else rows
