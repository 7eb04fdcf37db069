"""Registry of drivers: the target and module of each.

A target is a package that stores the data of a case. It lies in `sqlstress.targets`, or is installed
separately and registers its driver with an entry point. Other modules name no driver and no target, except
those that require SQLite.
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
"""Durability of a commit, on a scale shared by all targets: the part of `durability` before the colon."""
AS_SET = "as set"
"""Used instead of an isolation level for the user's programs: their sessions keep the server's default."""


class DriverInfo(NamedTuple):
    """Properties of a driver that are known before it is imported."""

    target: str
    """Name of the target."""
    module: str
    """Module of the driver; empty if its target needs no driver."""
    words: str
    """Short description for `--help`."""
    everywhere: bool = True
    """Whether every experiment can use it."""
    stores: bool = True
    """Whether the driver stores data; if not, its figures are the limit of the harness."""
    keyvalue: bool = False
    """Whether the key-value experiment can use the driver although not every experiment can."""
    scripts: bool = False
    """Whether the experiment with SQL scripts can use the driver although not every experiment can."""
    programs: bool = False
    """Whether the user's programs can open the data with their own library, given its location."""
    takes: frozenset[str] | None = None
    """Connection options that the driver supports; None means all of them, as with SQLite."""
    product: str = "SQLite"
    """Name of the database product."""
    bare_call: str = "SELECT 1, of no table"
    """Description of the driver's cheapest call (`Place.bare_call`)."""
    difference: str = ""
    """Sentence, without its full stop, on data that only this driver works on; empty if there is none.

    Comparisons with other drivers show it."""
    serves: bool = False
    """Whether the product is a server: it continues a request even if the requesting process has died."""
    package: str = ""
    """Package of the target; empty means the package of that name in `sqlstress.targets`."""


_SQLITE = "sqlstress.targets.sqlite.drivers"

DRIVERS = {
    "sqlite3": DriverInfo("sqlite", f"{_SQLITE}.sqlite3_driver", "standard library", programs=True),
    "apsw": DriverInfo("sqlite", f"{_SQLITE}.apsw_driver", "optional"),
    "peewee": DriverInfo("sqlite", f"{_SQLITE}.peewee_driver", "the mapper", everywhere=False),
    "psycopg": DriverInfo(
        "postgres",
        "sqlstress.targets.postgres.client",
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
"""Drivers by name, as in cases and reports. The first is the default."""

DEFAULT = next(iter(DRIVERS))

ENTRY_POINT_GROUP = "sqlstress.targets"
"""Group of entry points for drivers of other packages. Each entry point refers to a `Known`."""


class InstalledDrivers(NamedTuple):
    """Drivers of other packages, by name."""

    drivers: dict[str, DriverInfo]
    broken: dict[str, str]
    """Reason why a driver cannot be used, by its name."""


@cache
def installed() -> InstalledDrivers:
    """Return the drivers of other packages. They cannot replace a built-in driver of the same name."""
    result = InstalledDrivers({}, {})
    # Every command calls this function, and importing importlib.metadata takes 20 ms. So the entry points
    # are searched as files first.
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
        except Exception as error:  # code of another package can raise anything
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

    Child processes get only the built-in ones: the parent tells them which driver to use.
    """
    process = sys.modules.get("multiprocessing.process")
    child = process is not None and process.parent_process() is not None
    return dict(DRIVERS) if child else {**DRIVERS, **installed().drivers}


def driver_info(driver: str) -> DriverInfo:
    """Return the properties of a driver that the user can choose. Raises KeyError."""
    return DRIVERS[driver] if driver in DRIVERS else installed().drivers[driver]


def usual() -> dict[str, DriverInfo]:
    """Return the drivers that every experiment can use."""
    return {name: driver for name, driver in DRIVERS.items() if driver.everywhere}


def keyvalue_drivers() -> dict[str, DriverInfo]:
    """Return the drivers that the key-value experiment can use."""
    return {name: driver for name, driver in drivers().items() if driver.everywhere or driver.keyvalue}


def script_drivers() -> dict[str, DriverInfo]:
    """Return the drivers that the experiment with SQL scripts can use."""
    return {name: driver for name, driver in drivers().items() if driver.everywhere or driver.scripts}


def program_drivers() -> dict[str, DriverInfo]:
    """Return the drivers that can store data for the user's programs, by name. sqlstress uses them, too."""
    return {name: driver for name, driver in drivers().items() if driver.programs}


def driver_help(drivers: Mapping[str, DriverInfo]) -> str:
    """Return the help text of an option that selects one of these drivers."""
    return f"Driver: {', '.join(f'{name} ({driver.words})' for name, driver in drivers.items())}."


def target_names(drivers: Mapping[str, DriverInfo]) -> tuple[str, ...]:
    """Return the targets of the drivers that store data, in their order."""
    return tuple(dict.fromkeys(driver.target for driver in drivers.values() if driver.stores))


# Properties of a driver named in a report: it may be unknown here, or no longer exist.


def _reported(driver: str) -> DriverInfo:
    properties = DRIVERS.get(driver) or installed().drivers.get(driver)
    return properties or DriverInfo(driver, "", "", bare_call="")


def target_name(driver: str) -> str:
    """Return the name of the driver's target; for an unknown driver, its own name."""
    return _reported(driver).target


def takes(driver: str, setting: str) -> bool:
    """Return whether the driver supports a connection option."""
    properties = _reported(driver)
    return properties.takes is None or setting in properties.takes


def product(driver: str) -> str:
    """Return the name of the driver's database product."""
    return _reported(driver).product


def bare_call(driver: str) -> str:
    """Return a description of the driver's cheapest call; empty for an unknown driver."""
    return _reported(driver).bare_call


def driver_difference(driver: str) -> str:
    """Return a sentence on data that only this driver works on; empty if there is no such data."""
    return _reported(driver).difference


def serves(driver: str) -> bool:
    """Return whether the driver's server may complete a request after the requesting process has died."""
    return _reported(driver).serves


def stores_nothing(driver: str) -> bool:
    """Return whether the driver stores nothing, so that its figures are the limit of the harness."""
    return not _reported(driver).stores


def durability_level(durability: str) -> str:
    """Return the durability of a commit on the shared scale, from a target's description of it."""
    return durability.partition(":")[0].strip()
