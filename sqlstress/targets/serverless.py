"""What targets have in common that need no server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlstress.errors import UsageError
from sqlstress.target import DRIVERS

if TYPE_CHECKING:
    from sqlstress.report.case import Case

OF_SERVERS = ("dsn", "isolation", "anyway")
"""The options that say something of a server."""


def checked(case: Case, given: frozenset[str]) -> Case:
    """Return a case as it is. Raises UsageError when something was said of a server."""
    for name in OF_SERVERS:
        if name in given:
            servers = " or ".join(driver for driver, known in DRIVERS.items() if known.serves)
            raise UsageError(
                f"--{name} is for a server, and {case.driver} speaks to none: add --driver {servers}, "
                "or leave it out."
            )
    return case
