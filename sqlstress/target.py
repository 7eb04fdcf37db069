"""Registry of drivers and their properties.

A target stores the data of a case, such as SQLite or PostgreSQL. A driver is a way to use a target from
Python, such as sqlite3 or apsw. A target's code is a package in `sqlstress.targets`, or a separate package
that registers its driver with an entry point. Of all other modules, only those that work with SQLite alone
name a driver or target.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

# Levels of durability of a commit. In a report, a colon and details may follow a level.
SYNCED = "every commit synced"
IN_CACHE = "every commit left in the drive's cache"
LAST_LOST = "a power cut can lose the last commits"
UNSAFE = "a power cut can corrupt the data"
NOTHING_STORED = "nothing stored"
AS_SET = "as set"
"""Value for the isolation level if sqlstress sets none: the user's program or the server sets it."""
OTHER_SQLITE = "other SQLite"
"""Topic of an observation: the user's code used an SQLite library other than the driver's.

The observation's `what` is the library, and `example` the version of its SQLite.
"""


class DriverInfo(NamedTuple):
    """Properties of a driver, known before its module is imported."""

    target: str
    """Name of the driver's target, such as sqlite."""
    module: str
    """Module of the driver; empty if none is needed."""
    words: str
    """Short description for `--help`."""
    everywhere: bool = True
    """Whether every experiment can use the driver."""
    stores: bool = True
    """Whether the driver stores data. The driver `dry` does not: it measures sqlstress."""
    keyvalue: bool = False
    """Whether the key-value experiment can use the driver, even if `everywhere` is False."""
    scripts: bool = False
    """Whether the SQL script experiment can use the driver, even if `everywhere` is False."""
    programs: bool = False
    """Whether the user's programs can open the data with their own library."""
    takes: frozenset[str] | None = None
    """Connection options, such as synchronous, that the driver supports; None means all."""
    product: str = "SQLite"
    """Name of the database product."""
    bare_call: str = "SELECT 1, of no table"
    """Description of the driver's cheapest call. A report shows its time as the minimum of an operation."""
    difference: str = ""
    """Sentence for tables, without full stop, if the driver uses other data than most drivers; else empty."""
    serves: bool = False
    """Whether the product is a server. If so, a commit may succeed although the worker has died."""
    package: str = ""
    """Package of the target; empty for the package in `sqlstress.targets` with the target's name."""


_SQLITE = "sqlstress.targets.sqlite.drivers"

DRIVERS = {
    "sqlite3": DriverInfo("sqlite", f"{_SQLITE}.sqlite3_driver", "standard library", programs=True),
    "apsw": DriverInfo("sqlite", f"{_SQLITE}.apsw_driver", "optional"),
    "peewee": DriverInfo("sqlite", f"{_SQLITE}.peewee_driver", "the mapper", everywhere=False),
    "psycopg": DriverInfo(
        "postgres",
        "sqlstress.targets.postgres.place",
        "PostgreSQL, optional",
        everywhere=False,
        keyvalue=True,
        scripts=True,
        programs=True,
        takes=frozenset({"synchronous", "busy-timeout", "begin"}),
        product="PostgreSQL",
        bare_call="SELECT 1, of no table; the way to the server and back is in it",
        serves=True,
    ),
    "dry": DriverInfo("dry", "", "stores nothing: shows the limit of the harness", stores=False),
}
"""Built-in drivers, by name in cases and reports. The first is the default."""

DEFAULT = next(iter(DRIVERS))

ENTRY_POINT_GROUP = "sqlstress.targets"
"""Entry point group for drivers of other packages, each a `DriverInfo`."""


class InstalledDrivers(NamedTuple):
    """Installed drivers of other packages."""

    drivers: dict[str, DriverInfo]
    """Usable drivers, by name."""
    broken: dict[str, str]
    """Reasons why drivers cannot be used, by driver."""


@cache
def installed() -> InstalledDrivers:
    """Return the drivers of other packages, which cannot replace built-in drivers."""
    result = InstalledDrivers({}, {})
    # Each command calls this function, and importing importlib.metadata takes 20 ms. So files with entry
    # points are searched first, and the module is imported only if a file names a driver.
    has_entry_point = False
    for path in (path for folder in sys.path for path in Path(folder).glob("*-info/entry_points.txt")):
        with suppress(OSError):
            has_entry_point = has_entry_point or ENTRY_POINT_GROUP.encode() in path.read_bytes()
    if not has_entry_point:
        return result
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            driver = entry.load()
        except Exception as error:  # code of another package can raise any exception
            result.broken[entry.name] = f"{type(error).__name__}: {error}"
            continue
        if not isinstance(driver, DriverInfo):
            result.broken[entry.name] = f"{entry.value} is no sqlstress.target.DriverInfo"
        elif entry.name in DRIVERS:
            result.broken[entry.name] = "sqlstress has a driver of that name"
        else:
            result.drivers[entry.name] = driver
    return result


def drivers() -> dict[str, DriverInfo]:
    """Return all drivers that the user can choose, by name.

    In a child process, return only built-in drivers: the parent process has already chosen the driver.
    """
    process = sys.modules.get("multiprocessing.process")
    child = process is not None and process.parent_process() is not None
    return dict(DRIVERS) if child else {**DRIVERS, **installed().drivers}


def driver_info(driver: str) -> DriverInfo:
    """Return a driver's properties. Raises KeyError for an unknown driver."""
    return DRIVERS[driver] if driver in DRIVERS else installed().drivers[driver]


def usual() -> dict[str, DriverInfo]:
    """Return the built-in drivers that every experiment can use, by name."""
    return {name: driver for name, driver in DRIVERS.items() if driver.everywhere}


def keyvalue_drivers() -> dict[str, DriverInfo]:
    """Return the drivers for the key-value experiment, by name."""
    return {name: driver for name, driver in drivers().items() if driver.everywhere or driver.keyvalue}


def script_drivers() -> dict[str, DriverInfo]:
    """Return the drivers for SQL scripts, by name."""
    return {name: driver for name, driver in drivers().items() if driver.everywhere or driver.scripts}


def program_drivers() -> dict[str, DriverInfo]:
    """Return the drivers, by name, whose data the user's programs can open themselves."""
    return {name: driver for name, driver in drivers().items() if driver.programs}


def driver_help(drivers: Mapping[str, DriverInfo]) -> str:
    """Return the help text of an option with these drivers as values."""
    return f"Driver: {', '.join(f'{name} ({driver.words})' for name, driver in drivers.items())}."


def target_names(drivers: Mapping[str, DriverInfo]) -> tuple[str, ...]:
    """Return the distinct targets of drivers that store data, in order."""
    return tuple(dict.fromkeys(driver.target for driver in drivers.values() if driver.stores))


# A report may name a driver that is not installed here, or no longer exists.


def reported(driver: str) -> DriverInfo:
    """Return a driver's properties; default properties if this sqlstress does not know the driver."""
    properties = DRIVERS.get(driver) or installed().drivers.get(driver)
    return properties or DriverInfo(driver, "", "", bare_call="")


def target_name(driver: str) -> str:
    """Return the name of a driver's target; for an unknown driver, the driver's name."""
    return reported(driver).target


def takes(driver: str, setting: str) -> bool:
    """Return whether a driver supports the connection option `setting`."""
    properties = reported(driver)
    return properties.takes is None or setting in properties.takes


def serves(driver: str) -> bool:
    return reported(driver).serves


def stores_nothing(driver: str) -> bool:
    """Return whether a driver stores nothing, to show the highest rate of sqlstress itself."""
    return not reported(driver).stores


def durability_level(durability: str) -> str:
    """Return the level in a text on durability, such as "nothing stored": the part before a colon."""
    return durability.partition(":")[0].strip()
