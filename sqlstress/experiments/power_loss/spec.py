"""What is asked for where power is cut."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.options.option import option
from sqlstress.options.parsing import choice, switch, whole

POWER = "Power cuts"
MOST_IMAGES = 1_000_000


@dataclass(frozen=True, slots=True)
class Nothing:
    """A configuration says nothing beside what all cases say."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that stand in no case."""

    power: bool = option(
        switch,
        False,
        POWER,
        "Cut the power, instead of killing: images of the disk as it could be are checked (needs apsw).",
        flag=True,
    )
    matrix: bool = option(
        switch,
        False,
        POWER,
        "The same for every journal mode with every level of synchronous, as a table.",
        flag=True,
    )
    images: int = option(whole(100, MOST_IMAGES), 2000, POWER, "Images of each configuration.")
    disk: str = option(
        choice("powersafe", "spoiling"),
        "powersafe",
        POWER,
        "spoiling: a sector that was being written at the cut may hold anything.",
        metavar="KIND",
    )
    psow: bool = option(
        switch,
        "on",
        POWER,
        "Whether SQLite is told that the disk is powersafe; it is, if you don't open with psow=0.",
        metavar="on|off",
    )
