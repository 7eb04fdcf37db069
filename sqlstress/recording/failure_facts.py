"""Facts of a failed statement: conversion from the report's text to the input of `analysis.causes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sqlstress.analysis.causes import Facts, code_in, diagnose
from sqlstress.sqlite_codes import ERROR, TRANSACTION_ERROR, name

AT_ONCE_SHARE, WHOLE_SHARE = 0.5, 0.8
"""Shares of the busy timeout, to judge how long a statement waited before it failed.

A failure before AT_ONCE_SHARE of the timeout counts as "at once". A failure after WHOLE_SHARE counts as a
wait until the timeout.
"""
SHORT_MS = 100
"""Busy timeout in ms below which the short timeout itself is the cause of a failure."""
HANDLER_MS = 50
"""Minimum duration of a failed statement that shows that the program has its own busy handler, in ms.

SQLite reports a busy timeout of 0 for a connection with such a handler.
"""


def facts_of(traits: Mapping[str, str], waited_ms: float, timeout_ms: int | None) -> Facts:
    """Return the facts of a failed statement in the form from which `diagnose` finds the cause.

    `traits` are the facts as text, `waited_ms` the duration of the statement, and `timeout_ms` the busy
    timeout (None if unknown).
    """
    journal = traits["journal"]
    yes_or_no = {"yes": True, "no": False}
    if timeout_ms == 0 and waited_ms >= HANDLER_MS:
        timeout_ms = round(waited_ms)
    waited = _wait(waited_ms, timeout_ms)
    is_short = waited == "the timeout" and (timeout_ms or 0) < SHORT_MS
    return Facts(
        waited=waited,
        timeout=None if timeout_ms is None else "short" if is_short else "set" if timeout_ms else "none",
        statement=traits["statement"] or None,  # type: ignore[arg-type]
        transaction=traits["transaction"] or None,  # type: ignore[arg-type]
        journal=None if not journal else "wal" if journal == "wal" else "rollback",
        open_cursor=yes_or_no.get(traits["open_cursor"]),
        open_blob=bool(traits.get("open_blob")),
        shared_cache=yes_or_no.get(traits["shared_cache"]),
        exclusive=traits.get("locking_mode") == "exclusive",
        repeated=traits.get("repeated") == "yes",
        holder="this process" if traits["holder"] else "another process",
        busy_handler=bool(traits.get("busy_handler")),
        left_open=bool(traits.get("opened_by")),
        rolled_back=bool(traits.get("rolled_back")),
        shared_connection=bool(traits.get("sharers")),
        # BEGIN IMMEDIATE locks all files, so its lock order alone does not show that two transactions wait
        # for each other.
        other_file=bool(traits.get("lock_order")) and traits["statement"] == "write",
    )


def _wait(waited_ms: float, timeout_ms: int | None) -> Literal["at once", "the timeout"] | None:
    if not timeout_ms or waited_ms < AT_ONCE_SHARE * timeout_ms:
        return "at once"
    return "the timeout" if waited_ms >= WHOLE_SHARE * timeout_ms else None


def code_of(code: int, message: str) -> int:
    """Return the result code, or TRANSACTION_ERROR if the message shows a wrong BEGIN or COMMIT."""
    return TRANSACTION_ERROR if code == ERROR and code_in(message) == TRANSACTION_ERROR else code


def explain(sql: str, message: str, traits: Mapping[str, str]) -> str:
    """Return a sentence on a failed statement, with cause and cure if the cause is certain."""
    timeout_ms = int(traits["timeout_ms"]) if traits["timeout_ms"].isdecimal() else None
    code, at = code_of(int(traits["code"]), message), traits["at"]
    cause = diagnose(code, facts_of(traits, float(traits["waited_ms"]), timeout_ms)).cause
    failed = f"{sql}{f' ({at})' if at else ''} failed with {name(code)}."
    return f"{failed} {cause.cause} {cause.advice}" if cause else failed
