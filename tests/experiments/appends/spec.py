"""What a case says beside what all cases say."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.options.option import LOAD, option
from sqlstress.options.parsing import whole


@dataclass(frozen=True, slots=True)
class Appending:
    """What each process appends."""

    rows: int = option(whole(1, 1000), 100, LOAD, "Rows of each process, a transaction each.")
