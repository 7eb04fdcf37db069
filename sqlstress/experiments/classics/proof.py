"""Checks that a table has all rows whose commit SQLite acknowledged to a worker, and no other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from sqlstress.experiments.classics.worker import ASCENDING, SIZE
from sqlstress.report import Check
from sqlstress.report.results import CheckCounter

Tables = Sequence[Sequence[Any]]
"""Lists of the rows that a worker committed: [rows]; if it died, [rows, rows with its uncertain commit]."""


def check_rows(
    name: str, rows: Iterable[Any], workers: Iterable[Tables], described: Callable[[Any], str] = repr
) -> Check:
    """Check that a table has each row that the workers committed exactly once, and no other rows.

    `name` is the name of the check, and `rows` are the rows of the table. `workers` has a list of committed
    rows for each worker. If a worker died, a second list has the rows of its last commit, too, which may have
    succeeded: the table may have either list. `described` converts a row to a text.
    """
    tally = CheckCounter(name)
    by_worker = [*workers]
    expected = {*chain.from_iterable(chain.from_iterable(by_worker))}
    found = [*rows]
    tally.checked = len(found)
    if {*found} == expected and len(found) == len(expected) and all(len(tables) == 1 for tables in by_worker):
        return tally.check()  # All rows are right. The search for wrong rows would take longer.
    stored: set[Any] = set()
    for row in found:
        if row not in expected:
            tally.problem(f"{described(row):.80} should not be there")
        elif row in stored:
            tally.problem(f"{described(row):.80} is there twice")
        stored.add(row)
    for tables in by_worker:
        for text in min((_objections(table, tables, stored, described) for table in tables), key=len):
            tally.problem(text)
    return tally.check()


def _objections(
    table: Sequence[Any], tables: Tables, stored: set[Any], described: Callable[[Any], str]
) -> list[str]:
    rows = {*table}
    others = dict.fromkeys(row for row in chain.from_iterable(tables) if row not in rows)
    return [
        *(f"{described(row):.80}, which was acknowledged, is gone" for row in table if row not in stored),
        *(f"{described(row):.80} was not acknowledged" for row in others if row in stored),
    ]


def check_ids(by_worker: Iterable[Iterable[tuple[int, Any]]], id_type: str) -> Check:
    """Check that ids are of the type `id_type` and unique. UUIDs of version 7 must ascend in each worker.

    `by_worker` has a list for each worker, with a tuple (integer, stored id) for each row, in order of
    insertion. If `id_type` is "int", the stored id must be this integer.
    """
    tally = CheckCounter("identifiers")
    seen: set[Any] = set()
    for ids in by_worker:
        latest = bytes(SIZE)
        for number, pick_id in ids:
            tally.checked += 1
            text = short_id(pick_id)
            is_blob = isinstance(pick_id, bytes) and len(pick_id) == SIZE
            if id_type == "int" and (type(pick_id), pick_id) != (int, number):
                tally.problem(f"{text} is there instead of {number}")
            elif id_type != "int" and not is_blob:
                tally.problem(f"{text} is not of the type {id_type}")
            elif pick_id in seen:
                tally.problem(f"{text} is there twice")
            elif is_blob and id_type == ASCENDING and pick_id < latest:
                tally.problem(f"{text} was made after {short_id(latest)}, and is less")
            seen.add(pick_id)
            latest = pick_id if is_blob else latest
    return tally.check()


def short_id(value: Any) -> str:
    """Convert an id, or another value that was stored instead, to a text of at most 40 characters."""
    return value.hex()[:40] if isinstance(value, bytes) else f"{value!r:.40}"
