"""How a process of a case finds its server: the user's, or one of ours that runs for the measurement."""

from __future__ import annotations

import os
from hashlib import blake2s
from typing import TYPE_CHECKING

from sqlstress.errors import EnvironmentFailure
from sqlstress.options.dsn import Dsn

if TYPE_CHECKING:
    from pathlib import Path

    from sqlstress.report.case import Case

OURS = "SQLSTRESS_OWN_SERVER"
"""The environment variable that tells our processes where the server is that runs for this measurement."""
PREFIX = "sqlstress_"
PATIENCE_S = 10
"""So long a server may take to answer at all."""


def dsn_of(case: Case) -> str:
    """Return the whole connection string of a case. Raises EnvironmentFailure where there is no server."""
    address = case.server.address if case.server else None
    whole = address.whole if isinstance(address, Dsn) else os.environ.get(OURS)
    if not whole:
        raise EnvironmentFailure("no server runs for this case: give --dsn.")
    return whole


def schema_of(where: Path) -> str:
    """Return the name of our schema for a folder: every process of a case makes the same of it."""
    return PREFIX + blake2s(os.fsencode(where.absolute()), digest_size=6).hexdigest()


def key_of(schema: str) -> int:
    """Return the number of the advisory lock that a schema's owner holds."""
    return int.from_bytes(blake2s(schema.encode(), digest_size=8).digest(), "big", signed=True)
