"""Applications of tests: the text of a user's file, measured by the command app."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlstress

HEAD = """
import os, random, signal, sqlite3, sys, time
from sqlstress import check, connect, setup, transaction
@setup
def made(path):
    c = sqlite3.connect(path)
    c.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES (0)")
    c.close()
@connect
def opened(path):
    return sqlite3.connect(path, timeout=30, isolation_level=None)
"""
WRITES = """
@transaction
def add(c):
    c.execute("UPDATE t SET x = x + 1")
"""
OPERATIONS = 20


def measured(folder: Path, text: str, name: str = "own.py", **options: Any) -> sqlstress.Report:
    """Return the report of an application, by a number of operations.

    A slow disk may leave a window empty, and a fast disk does more than needed.
    """
    short = {} if options.keys() & {"duration", "start"} else {"ops": OPERATIONS}
    (folder / name).write_text(text, encoding="utf-8")
    given = {"concurrency": 2, "repeat": 1, **short, **options}
    return sqlstress.measure("app", file=str(folder / name), directory=folder, **given)


def line_of(text: str, piece: str) -> int:
    """Return the number of the line in which a piece of a text begins."""
    return text[: text.index(piece)].count("\n") + 1


def left(folder: Path) -> list[str]:
    """Return the names of the files that a measurement left."""
    return sorted(path.name for path in folder.iterdir() if path.name not in ("own.py", "__pycache__"))


def findings_of(report: sqlstress.Report, code: str) -> list[sqlstress.Finding]:
    """Return the findings with a code."""
    return [finding for finding in report.findings if finding.code == code]
