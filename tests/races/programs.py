"""Programs of a module: each is called with the path of a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

Program = Callable[[str], None]


def programs_of(
    module: Mapping[str, Any], opened: Callable[[str], AbstractContextManager[sqlite3.Connection]]
) -> dict[str, Program]:
    """Return the public functions of a file or of a connection; `opened` makes the connection."""
    found: dict[str, Program] = {}
    for name, value in sorted(module.items()):
        if name.startswith("_") or getattr(value, "__module__", "") != module["__name__"]:
            continue
        annotations = getattr(value, "__annotations__", {})
        if annotations == {"file": "str", "return": "None"}:
            found[name] = value
        elif annotations == {"connection": "sqlite3.Connection", "return": "None"}:
            found[name] = _with_connection(value, opened)
    return found


def _with_connection(
    program: Callable[[sqlite3.Connection], None],
    opened: Callable[[str], AbstractContextManager[sqlite3.Connection]],
) -> Program:
    def call(file: str) -> None:
        with opened(file) as connection:
            program(connection)

    return call
