"""What is asked for where settings are searched."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.options.option import option
from sqlstress.options.parsing import duration, switch

SEARCH = "The search"


@dataclass(frozen=True, slots=True)
class Nothing:
    """A search says nothing in a case: those that it measures are of the load."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is searched."""

    max_time: float = option(
        duration(5.0), "3m", SEARCH, "How long is searched, the fresh pairs included.", metavar="DURATION"
    )
    strict: bool = option(switch, None, SEARCH, "Exit 3 when it can't be told what is better.", flag=True)
