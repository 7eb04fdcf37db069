"""Races of schema migrations: processes that start together make the same schema change."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

_EXISTS = re.compile(r"\b(table|index|view|trigger) \S+ already exists\b|\bduplicate column name\b")
"""Pattern of SQLite's messages if a table or column to be added already exists."""
_CHECK = re.compile(
    r"\b(user_version\b(?!\s*=)|schema_version|sqlite_master|sqlite_schema|table_x?info|alembic_version)"
)
"""Pattern of expressions that read the schema's state, to decide whether to migrate."""


def is_migration(message: str) -> bool:
    """Return whether an error message says that a table or column to be added already exists."""
    return _EXISTS.search(message) is not None


def schema_check(file: Path) -> str:
    """Return the first expression in a file that reads the schema's state; empty if there is none.

    An example is "user_version (start.py:16)".
    """
    with suppress(OSError):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            if not line.lstrip().startswith("#") and (match := _CHECK.search(line)):
                return f"{match[1]} ({file.name}:{number})"
    return ""


def migration_race(check: str) -> str:
    """Return a text on cause and remedy of a migration that fails only in some of the processes.

    `check` is the result of `schema_check`: the expression that reads the state of the schema.
    """
    state = check or "the state of the schema"
    return (
        f"Processes that start together made the same change, because each had read {state} before the "
        "transaction that migrates. BEGIN IMMEDIATE, read it again, migrate, COMMIT."
    )
