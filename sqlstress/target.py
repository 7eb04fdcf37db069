"""Registry of drivers, with the properties of each driver.

A target stores the data of a case, such as SQLite or PostgreSQL. A driver is a way to use a target from
Python, such as sqlite3 or apsw. The code of a target is a package in `sqlstress.targets`, or a separate
package that registers its driver with an entry point. Other modules name no driver and no target, except for
modules that require SQLite.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

SYNCED = "every commit synced"
IN_CACHE = "every commit left in the drive's cache"
LAST_LOST = "a power cut can lose the last commits"
UNSAFE = "a power cut can corrupt the data"
NOTHING_STORED = "nothing stored"
"""Levels of a commit's durability, on a scale that all targets share.

A target describes the durability of a trial by a level, a colon and details.
"""
AS_SET = "as set"
"""Isolation level of transactions that the user's programs run: the default of the server."""
OTHER_SQLITE = "other SQLite"
"""Topic of an observation: the user's code used another SQLite library, and never that of the driver.

The observation's `what` is the library, and `example` the version of its SQLite.
"""


class DriverInfo(NamedTuple):
    """Properties of a driver. They are known before the module of the driver is imported."""

    target: str
    """Name of the target that the driver uses."""
    module: str
    """Name of the module of the driver; empty if the target needs no module for it."""
    words: str
    """Short description of the driver for `--help`."""
    everywhere: bool = True
    """Whether every experiment can use the driver."""
    stores: bool = True
    """Whether the driver stores data. If not, it shows the highest rate that sqlstress itself reaches."""
    keyvalue: bool = False
    """Whether the key-value experiment can use the driver although `everywhere` is False."""
    scripts: bool = False
    """Whether the experiment with SQL scripts can use the driver although `everywhere` is False."""
    programs: bool = False
    """Whether the user's programs can open the data with their own library, given its location."""
    takes: frozenset[str] | None = None
    """Names of the connection options that the driver supports; None means all options, as with SQLite."""
    product: str = "SQLite"
    """Name of the database product."""
    bare_call: str = "SELECT 1, of no table"
    """Description of the driver's cheapest call, whose time is measured."""
    difference: str = ""
    """Sentence, without full stop, on data that only this driver reads or writes; may be empty."""
    serves: bool = False
    """Whether the product is a server, which completes a request even if the requesting process has died."""
    package: str = ""
    """Name of the target's package; empty means the package in `sqlstress.targets` with the target's name."""


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
"""Built-in drivers, by their name in cases and reports. The first is the default."""

DEFAULT = next(iter(DRIVERS))

ENTRY_POINT_GROUP = "sqlstress.targets"
"""Group of the entry points for drivers of other packages. Each entry point refers to a `DriverInfo`."""


class InstalledDrivers(NamedTuple):
    """Drivers of other packages that are installed."""

    drivers: dict[str, DriverInfo]
    """Usable drivers, by name."""
    broken: dict[str, str]
    """Reasons why drivers cannot be used, by name of the driver."""


@cache
def installed() -> InstalledDrivers:
    """Return the drivers of other packages. They cannot replace a built-in driver of the same name."""
    result = InstalledDrivers({}, {})
    # Each command calls this function, and the import of importlib.metadata takes 20 ms. So the files with
    # entry points are searched first, and the module is imported only if one of them names a driver.
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
    """Return the properties of a driver that the user can choose. Raises KeyError for an unknown driver."""
    return DRIVERS[driver] if driver in DRIVERS else installed().drivers[driver]


def usual() -> dict[str, DriverInfo]:
    """Return the built-in drivers that every experiment can use, by name."""
    return {name: driver for name, driver in DRIVERS.items() if driver.everywhere}


def keyvalue_drivers() -> dict[str, DriverInfo]:
    """Return the drivers that the key-value experiment can use, by name."""
    return {name: driver for name, driver in drivers().items() if driver.everywhere or driver.keyvalue}


def script_drivers() -> dict[str, DriverInfo]:
    """Return the drivers that the experiment with SQL scripts can use, by name."""
    return {name: driver for name, driver in drivers().items() if driver.everywhere or driver.scripts}


def program_drivers() -> dict[str, DriverInfo]:
    """Return the drivers, by name, whose data the user's programs can open with their own library."""
    return {name: driver for name, driver in drivers().items() if driver.programs}


def driver_help(drivers: Mapping[str, DriverInfo]) -> str:
    """Return the help text of an option whose value is one of these drivers."""
    return f"Driver: {', '.join(f'{name} ({driver.words})' for name, driver in drivers.items())}."


def target_names(drivers: Mapping[str, DriverInfo]) -> tuple[str, ...]:
    """Return the names of the targets of the drivers that store data, each once, in order."""
    return tuple(dict.fromkeys(driver.target for driver in drivers.values() if driver.stores))


# Properties of a driver that a report names. This machine may lack the driver, or it may no longer exist.


def reported(driver: str) -> DriverInfo:
    """Return the properties of a driver that a report names; default properties for an unknown driver."""
    properties = DRIVERS.get(driver) or installed().drivers.get(driver)
    return properties or DriverInfo(driver, "", "", bare_call="")


def target_name(driver: str) -> str:
    """Return the name of a driver's target; for an unknown driver, the name of the driver."""
    return reported(driver).target


def takes(driver: str, setting: str) -> bool:
    """Return whether a driver supports a connection option, given by its name."""
    properties = reported(driver)
    return properties.takes is None or setting in properties.takes


def serves(driver: str) -> bool:
    return reported(driver).serves


def stores_nothing(driver: str) -> bool:
    """Return whether a driver stores nothing, and shows the highest rate of sqlstress itself."""
    return not reported(driver).stores


def durability_level(durability: str) -> str:
    """Return the level with which a target's description of durability begins, such as NOTHING_STORED."""
    return durability.partition(":")[0].strip()
