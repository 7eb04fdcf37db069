"""What the server refuses, as a stress test has to tell it apart, in one line.

Source: PostgreSQL's documentation, appendix A, "PostgreSQL Error Codes".
"""

from __future__ import annotations

from typing import Any

from sqlstress.targets import views
from sqlstress.targets.views import Answer

SERIALIZATION_FAILURE = "40001"
DEADLOCK = "40P01"
LOCK_TIMEOUT = "55P03"
CANCELLED = "57014"
UNDEFINED_PARAMETER = "42P02"
UNTYPED = frozenset({"42725", "42P08", "42P18"})
"""Of what type a parameter is can't be inferred: several functions would do, or none says it."""
BUSY = frozenset({DEADLOCK, LOCK_TIMEOUT})
"""A lock that was not to be had."""

_NAMES = {
    SERIALIZATION_FAILURE: "serialization_failure",
    DEADLOCK: "deadlock_detected",
    LOCK_TIMEOUT: "lock_not_available",
}
_ADVICE = {
    "42501": "the user of --dsn must be allowed to CREATE in that database",
    "53100": "free some space there",
    "53200": "the server is out of memory",
    "53300": "lower --concurrency, or raise the server's max_connections",
    "57P01": "the server was stopped, or somebody ended the connection",
    "57P03": "the server is starting or stopping: try again",
}
_LACKING = ("08", "53", "57", "58")
"""Classes of what a server lacks, or that ends it: connections, resources, an operator, the system."""
_LONGEST = 300


class ServerError(Exception):
    """An answer of the server that was an error, with its SQLSTATE; "" where the connection is gone."""

    def __init__(self, sqlstate: str, text: str) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


def sqlstate(error: BaseException) -> str | None:
    """Return the SQLSTATE of an error, ours or psycopg's; None where it has none."""
    return getattr(error, "sqlstate", None) or None


def explained(error: BaseException) -> str | None:
    """Return what went wrong, with the server's name for it; None of an error that is not a server's."""
    if not hasattr(error, "sqlstate"):
        return None
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    code, text = sqlstate(error) or "", one_line(primary or str(error))
    name = _NAMES.get(code, f"SQLSTATE {code}" if code else "PostgreSQL")
    advice = f" ({_ADVICE[code]})" if code in _ADVICE else ""
    return f"{name}: {text}{advice}"


def answer(error: BaseException) -> Answer | None:
    """Return what an error of the server's says; None of one that is not a server's."""
    if not hasattr(error, "sqlstate"):
        return None
    code = sqlstate(error) or ""
    diagnosed = getattr(error, "diag", None)
    text = one_line(getattr(diagnosed, "message_primary", None) or str(error))
    if code in BUSY or code == SERIALIZATION_FAILURE:
        return Answer(views.BUSY, text)
    if code == CANCELLED:
        return Answer(views.INTERRUPTED, text)
    if not code or code.startswith(_LACKING):
        return Answer(views.LACKING, f"{text} ({_ADVICE[code]})" if code in _ADVICE else text)
    return Answer(views.REFUSED, text)


def one_line(text: str) -> str:
    """Return a message of libpq's, which may have several lines, in one."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "; ".join(filter(None, lines))[:_LONGEST].removesuffix(".")


def of_result(result: Any) -> ServerError:
    """Return the error that a result of `psycopg.pq` is."""
    from psycopg.pq import DiagnosticField

    code, text = (
        (result.error_field(field) or b"").decode(errors="replace")
        for field in (DiagnosticField.SQLSTATE, DiagnosticField.MESSAGE_PRIMARY)
    )
    return ServerError(code, text or (result.error_message or b"").decode(errors="replace"))
