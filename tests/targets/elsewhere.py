"""Connections in another process, so that this process reads their files without holding locks on them."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil

from sqlstress.targets.sqlite.drivers import Connection, load_driver

_CONNECTIONS: dict[str, Connection] = {}
"""Open connections by name; filled only in the other process."""


def _run(driver: str, database: Path, name: str, sql: str | None) -> list[Any]:
    if sql is None:
        _CONNECTIONS.pop(name).close()
        return []
    if name not in _CONNECTIONS:
        _CONNECTIONS[name] = load_driver(driver).connect(database, 0)
    return _CONNECTIONS[name].rows(sql)


class Elsewhere(ProcessPoolExecutor):
    """Runs statements in another process, on named connections."""

    def __init__(self, driver: str, database: Path) -> None:
        super().__init__(1, get_context("spawn"))
        self._driver, self._database = driver, database
        self._names: set[str] = set()

    @cached_property
    def process(self) -> psutil.Process:
        return psutil.Process(self.submit(os.getpid).result())

    @contextmanager
    def at(self, database: Path) -> Iterator[None]:
        """Use another database; close its connections afterwards."""
        self._database = database
        yield
        for name in list(self._names):
            self.close(name)

    def rows(self, name: str, sql: str) -> list[Any]:
        """Run a statement on the named connection, opened if necessary; return its rows."""
        self._names.add(name)
        return self.submit(_run, self._driver, self._database, name, sql).result()

    def close(self, name: str) -> None:
        """Close the named connection."""
        self._names.discard(name)
        self.submit(_run, self._driver, self._database, name, None).result()
