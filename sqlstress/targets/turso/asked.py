"""What can be asked of Turso."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.errors import UsageError
from sqlstress.report.case import KEPT, Case

LEVELS = ("off", "normal", "full")
"""Of --synchronous; it takes `extra` for `full`."""


def checked(case: Case) -> Case:
    """Return a case as it is carried out with Turso. Raises UsageError."""
    settings = case.settings
    if case.concurrency > 1:
        raise UsageError("Turso lets one process only into a file: use --concurrency 1.")
    check_pragmas(case)
    if settings.synchronous not in (None, *LEVELS):
        raise UsageError(
            f"--synchronous {settings.synchronous} is not to be had with Turso: use {', '.join(LEVELS)}."
        )
    return replace(case, settings=replace(settings, journal_mode=KEPT))


def check_pragmas(case: Case) -> None:
    """Raise UsageError for a PRAGMA that has no option of its own: few of them can be read back."""
    if case.settings.pragmas:
        raise UsageError(f"PRAGMA {case.settings.pragmas[0][0]} is SQLite's here: leave out --pragma.")
