"""All rows of all buckets, looked at in C: whether each is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.targets import watched
from sqlstress.targets.native import NotToBeHad, extension
from sqlstress.targets.sqlite.connections import Handle, reached
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


@contextmanager
def proving(
    case: Case, paths: Sequence[Path], plan: dict[str, Any], pulse: Pulse
) -> Iterator[Callable[[], int | None]]:
    """Let C look at all rows meanwhile; yield what waits for it, and returns how many there are, if each of
    them is right; else None, for any reason.
    """
    with closing(_Opened([])) as opened:
        handles = _reached(case, paths, opened.connections)
        if handles is None:
            yield lambda: None
            return
        statements = (_ALL, *[""] * (_STATEMENTS - 1))
        whole = {**plan, "connections": [tuple(handle) for handle in handles], "statements": statements}
        with watched(opened, lambda: int(extension().proved(whole)), pulse) as rows:
            yield lambda: None if (count := rows()) < 0 else count


def _reached(case: Case, paths: Sequence[Path], connections: list[Connection]) -> list[Handle] | None:
    """Connect to all files, and return how C reaches the connections; None where it can't."""
    driver = load_driver(case.driver)

    def connect() -> list[Connection]:
        for path in paths:
            connections.append(driver.connect(path, case.settings.busy_timeout_ms, None))
        return connections

    try:
        return reached(case.driver, connect)[1]
    except NotToBeHad:
        return None
    except Exception as error:
        if driver.result_code(error) is None:
            raise
        return None
