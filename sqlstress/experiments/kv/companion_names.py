"""Processes beside the workers of a key-value case: what they do to the WAL, and what they see of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlstress.report.case import Case


CHECKPOINTER = "checkpointer"
PINNED_READER = "pinned reader"
WAL_WATCHER = "WAL watcher"


def names(case: Case) -> tuple[str, ...]:
    """Return which of them a case has."""
    beside = case.spec.checkpointing
    if beside is None:
        return ()
    checkpointer = () if beside.mode == "none" else (CHECKPOINTER,)
    reader = (PINNED_READER,) if beside.pinned_reader else ()
    return (*checkpointer, *reader, WAL_WATCHER)
