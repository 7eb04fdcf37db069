"""Connections of another process: what this one reads of their files, it reads without a lock of its own."""

from __future__ import annotations

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
"""Those of the other process, by name."""


def _run(driver: str, database: Path, who: str, sql: str | None) -> list[Any]:
    if sql is None:
        _CONNECTIONS.pop(who).close()
        return []
    if who not in _CONNECTIONS:
        _CONNECTIONS[who] = load_driver(driver).connect(database, 0)
    return _CONNECTIONS[who].rows(sql)


class Elsewhere(ProcessPoolExecutor):
    """Runs statements in a process of its own, on connections that have names."""

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

    def rows(self, who: str, sql: str) -> list[Any]:
        """Run a statement on the connection of that name, opened if need be; return its rows."""
        self._names.add(who)
        return self.submit(_run, self._driver, self._database, who, sql).result()

    def close(self, who: str) -> None:
        """Close the connection of that name."""
        self._names.discard(who)
        self.submit(_run, self._driver, self._database, who, None).result()
