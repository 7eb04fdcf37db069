"""How a case's server is found and a session of ours is set up, and what the server's refusals mean.

Without psycopg: who shows or expects what a server said needs it not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from hashlib import blake2s
from typing import TYPE_CHECKING

from sqlstress.errors import EnvironmentFailure
from sqlstress.target import AS_SET
from sqlstress.targets import views
from sqlstress.targets.views import Answer

if TYPE_CHECKING:
    from pathlib import Path

    from sqlstress.report.case import Case

OURS = "SQLSTRESS_OWN_SERVER"
"""The environment variable that tells our processes where the server is that runs for this measurement."""
PREFIX = "sqlstress_"
NO_NATIVE = "the native loop drives SQLite only"


def dsn_of(case: Case) -> str:
    """Return the whole connection string of a case. Raises EnvironmentFailure where there is no server."""
    from sqlstress.options.dsn import Dsn

    address = case.server.address if case.server else None
    whole = address.whole if isinstance(address, Dsn) else os.environ.get(OURS)
    if not whole:
        raise EnvironmentFailure("no server runs for this case. Give --dsn.")
    return whole


def schema_of(where: Path) -> str:
    """Return the name of our schema for a folder: every process of a case makes the same of it."""
    return PREFIX + blake2s(os.fsencode(where.absolute()), digest_size=6).hexdigest()


def key_of(schema: str) -> int:
    """Return the number of the advisory lock that a schema's owner holds."""
    return int.from_bytes(blake2s(schema.encode(), digest_size=8).digest(), "big", signed=True)


# Settings are set for each session, then read back; what was read back is what is reported.


REPORTED = (
    "server_version",
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "wal_sync_method",
    "transaction_isolation",
    "lock_timeout",
    "shared_buffers",
    "max_wal_size",
)
_COMMITS = {"full": "on", "normal": "off", "off": "off"}


def _wanted(case: Case) -> Iterator[tuple[str, str]]:
    if case.settings.synchronous is not None:
        yield "synchronous_commit", _COMMITS[case.settings.synchronous]
    if case.server and case.server.isolation != AS_SET:
        yield "default_transaction_isolation", case.server.isolation.replace("-", " ")


def set_up(case: Case, schema: str) -> str:
    timeout_ms = max(1, case.settings.busy_timeout_ms)  # 0 would be none at all
    values = (*_wanted(case), ("lock_timeout", str(timeout_ms)), ("application_name", schema))
    settings = [f"SET {name} = '{value}'" for name, value in values]
    return "; ".join((*settings, f'SET search_path = "{schema}", pg_catalog'))


def differences(case: Case, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for setting, value in _wanted(case):
        name = setting.removeprefix("default_")
        if effective.get(name) not in (None, value):
            yield name, value, effective[name]


# What the server refuses, as a stress test has to tell it apart.
#
# Source: PostgreSQL's documentation, appendix A, "PostgreSQL Error Codes".


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


def _known(error: BaseException) -> tuple[str, str, str] | None:
    """Return the SQLSTATE of an error of the server's, its words, and advice in brackets."""
    if not hasattr(error, "sqlstate"):
        return None
    code: str = error.sqlstate or ""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return code, one_line(primary or str(error)), f" ({_ADVICE[code]})" if code in _ADVICE else ""


def explained(error: BaseException) -> str | None:
    """Return what went wrong, with the server's name for it; None of an error that is not a server's."""
    if (known := _known(error)) is None:
        return None
    code, text, advice = known
    name = _NAMES.get(code, f"SQLSTATE {code}" if code else "PostgreSQL")
    return f"{name}: {text}{advice}"


def answer(error: BaseException) -> Answer | None:
    """Return what an error of the server's says; None of one that is not a server's."""
    if (known := _known(error)) is None:
        return None
    code, text, advice = known
    if code in BUSY or code == SERIALIZATION_FAILURE:
        return Answer(views.BUSY, text)
    if code == CANCELLED:
        return Answer(views.INTERRUPTED, text)
    if not code or code.startswith(_LACKING):
        return Answer(views.LACKING, f"{text}{advice}")
    return Answer(views.REFUSED, text)


def one_line(text: str) -> str:
    """Return a message of libpq's, which may have several lines, in one."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "; ".join(filter(None, lines))[:_LONGEST].removesuffix(".")
