"""Option: the name of one setting of a case, how its value is read, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlstress.options.parsing import Parse

SWEEP, LOAD, SQLITE, TRUST = "What is swept", "The load", "SQLite", "Trust"
COMPARED = "What is compared"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a case."""

    name: str
    """Its long name, without dashes: the key in a plan."""
    parse: Parse
    default: Any
    """What stands for it when it is not given, unparsed; None: unset."""
    group: str
    """Under which heading `--help` shows it."""
    help: str
    short: str = ""
    metavar: str = "N"
    multiple: bool = False
    flag: bool = False
    """Whether naming it on the command line means yes."""


def either(names: Sequence[str]) -> str:
    """Write the values of an option into its help: "int, text or blob"."""
    *others, last = names
    return f"{', '.join(others)} or {last}"
