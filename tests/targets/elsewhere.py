"""Connections of another process: what this one reads of their files, it reads without a lock of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

SERVE = """
import json, sys
from pathlib import Path
from sqlstress.targets.sqlite.drivers import load_driver
connect, connections = load_driver(sys.argv[1]).connect, {}
for line in sys.stdin:
    who, database, sql = json.loads(line)
    if sql is None:
        connections.pop(who).close()
        rows = []
    else:
        if who not in connections:
            connections[who] = connect(Path(database), 0, None)
        rows = connections[who].rows(sql)
    print(json.dumps(rows), flush=True)
"""


class Elsewhere:
    """Runs statements in a process of its own, on connections that have names."""

    def __init__(self, driver: str, database: Path) -> None:
        self.database = database
        self._names: set[str] = set()
        words = [sys.executable, "-c", SERVE, driver]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Elsewhere:
        return self

    def __exit__(self, *_how: object) -> None:
        self.process.communicate()

    @contextmanager
    def at(self, database: Path) -> Iterator[Elsewhere]:
        """Use another database; close its connections afterwards."""
        self.database = database
        yield self
        for name in list(self._names):
            self.close(name)

    def rows(self, who: str, sql: str) -> list[list[Any]]:
        """Run a statement on the connection of that name, opened if need be; return its rows."""
        self._names.add(who)
        return self._ask(who, sql)

    def close(self, who: str) -> None:
        """Close the connection of that name."""
        self._names.discard(who)
        self._ask(who, None)

    def _ask(self, who: str, sql: str | None) -> list[list[Any]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([who, str(self.database), sql]), file=self.process.stdin, flush=True)
        rows: list[list[Any]] = json.loads(self.process.stdout.readline())
        return rows
