"""What can be asked of LMDB."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.errors import UsageError
from sqlstress.report.case import KEPT, Case
from sqlstress.targets.lmdb.settings import FLAGS


def checked(case: Case) -> Case:
    """Return a case as it is carried out with LMDB. Raises UsageError."""
    settings = case.settings
    if settings.pragmas:
        raise UsageError(
            f"PRAGMA {settings.pragmas[0][0]} is SQLite's, and LMDB has none: leave out --pragma."
        )
    if settings.synchronous not in (None, *FLAGS):
        raise UsageError(
            f"--synchronous {settings.synchronous} is not to be had with LMDB: use {', '.join(FLAGS)}."
        )
    return replace(case, settings=replace(settings, journal_mode=KEPT))
