"""What a commit is worth with SQLite, on the scale that all targets share."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS
from sqlstress.report.power_failure import GOOD, LOST, risk
from sqlstress.target import IN_CACHE, LAST_LOST, SYNCED, UNSAFE

_WORTH = {GOOD: SYNCED, LOST: LAST_LOST}


def durability(effective: Mapping[str, str]) -> str:
    """Return it by the settings that were read back; "" where they were not, or differ."""
    journal, level = effective.get("journal_mode", ""), effective.get("synchronous", "")
    if journal not in JOURNAL_MODES or level not in SYNCHRONOUS:
        return ""
    worth = _WORTH.get(risk(journal, level).worst, UNSAFE)
    if worth == SYNCED and sys.platform == "darwin" and effective.get("fullfsync") != "1":
        worth = IN_CACHE
    return f"{worth}: {journal.upper()} journal, synchronous={level.upper()}"
