"""The registry of drivers: to which target each belongs, and where it is.

A target is one package below `sqlstress.targets`, which has the places for the data of a case. Nothing else
names a driver or a target but who expressly needs SQLite.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Known(NamedTuple):
    """What is known of a driver before it is imported."""

    target: str
    """The package of its target."""
    module: str
    """Where it is; "" where its target needs no driver."""
    words: str
    """What it is, for help."""
    everywhere: bool = True
    """Whether every experiment can use it."""
    stores: bool = True
    """Whether what it is given is kept; else its figures are the harness's own ceiling."""
    keyvalue: bool = False
    """Whether an experiment that speaks no SQL of SQLite's can use it, where not every one can."""
    product: str = "SQLite"
    """What it speaks to, by its own name."""
    serves: bool = False
    """Whether that is a server: what it was told to do goes on there when who told it has died."""


_SQLITE = "sqlstress.targets.sqlite.drivers"

DRIVERS = {
    "sqlite3": Known("sqlite", f"{_SQLITE}.sqlite3_driver", "standard library"),
    "apsw": Known("sqlite", f"{_SQLITE}.apsw_driver", "extra"),
    "peewee": Known("sqlite", f"{_SQLITE}.peewee_driver", "the mapper", everywhere=False),
    "psycopg": Known(
        "postgres",
        "sqlstress.targets.postgres.client",
        "PostgreSQL, extra",
        everywhere=False,
        keyvalue=True,
        product="PostgreSQL",
        serves=True,
    ),
    "dry": Known("dry", "", "does nothing: the harness's own ceiling", stores=False),
}
"""Name, as cases and reports have it → what is known of it. The first one is used if none is named."""

DEFAULT = next(iter(DRIVERS))


def drivers_of(target: str) -> dict[str, str]:
    """Return the drivers of a target: name → module."""
    return {name: known.module for name, known in DRIVERS.items() if known.target == target}


def usual() -> dict[str, Known]:
    """Return the drivers that every experiment can use."""
    return {name: known for name, known in DRIVERS.items() if known.everywhere}


def without_sql() -> dict[str, Known]:
    """Return the drivers that an experiment can use which needs no more than keys and values."""
    return {name: known for name, known in DRIVERS.items() if known.everywhere or known.keyvalue}


def told(drivers: Mapping[str, Known]) -> str:
    """Return what drivers are, for help."""
    return f"{', '.join(f'{name} ({known.words})' for name, known in drivers.items())}."


def product(driver: str) -> str:
    """Return what a driver speaks to, by its own name."""
    return DRIVERS[driver].product if driver in DRIVERS else "SQLite"


def serves(driver: str) -> bool:
    """Return whether what a process had told it to do may be done after the process has died."""
    return driver in DRIVERS and DRIVERS[driver].serves


def stores_nothing(driver: str) -> bool:
    """Return whether the figures of a driver are the harness's own ceiling."""
    return driver in DRIVERS and not DRIVERS[driver].stores
