"""The registry of drivers: to which target each belongs, and where it is.

A target is one package, which has the places for the data of a case: below `sqlstress.targets`, or one that
is installed beside us and names its driver by an entry point. Nothing else names a driver or a target but
who expressly needs SQLite.
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
"""What a commit is worth, on the scale that all targets share: it stands before the colon of `durability`."""
AS_SET = "as set"
"""In place of a level, of programs of the user's: nobody asked for one, and sessions begin as they do."""


class Known(NamedTuple):
    """What is known of a driver before it is imported."""

    target: str
    """Its target, by name."""
    module: str
    """Where it is; "" where its target needs no driver."""
    words: str
    """What it is, for help."""
    everywhere: bool = True
    """Whether every experiment can use it."""
    stores: bool = True
    """Whether what it is given is kept; else its figures are the harness's own ceiling."""
    keyvalue: bool = False
    """Whether the key-value experiment can use it, although not every one can."""
    scripts: bool = False
    """Whether the experiment with SQL scripts can use it, although not every one can."""
    programs: bool = False
    """Whether programs of the user's can be told where the data lies, and open it with what they have."""
    takes: frozenset[str] | None = None
    """The options of a connection's settings that mean something to it; None: all of them, as with SQLite."""
    product: str = "SQLite"
    """What it speaks to, by its own name."""
    bare_call: str = "SELECT 1, of no table"
    """What its places' `bare_call` does, in words."""
    apart: str = ""
    """What it works on that its neighbours don't, in a sentence without its full stop, for who sets them side
    by side."""
    serves: bool = False
    """Whether that is a server: what it was told to do goes on there when who told it has died."""
    package: str = ""
    """Where its target is imported from; "": below `sqlstress.targets`, by its name."""


_SQLITE = "sqlstress.targets.sqlite.drivers"

DRIVERS = {
    "sqlite3": Known("sqlite", f"{_SQLITE}.sqlite3_driver", "standard library", programs=True),
    "apsw": Known("sqlite", f"{_SQLITE}.apsw_driver", "optional"),
    "peewee": Known("sqlite", f"{_SQLITE}.peewee_driver", "the mapper", everywhere=False),
    "psycopg": Known(
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
    "dry": Known("dry", "", "stores nothing: shows the limit of the harness", stores=False),
}
"""Name, as cases and reports have it → what is known of it. The first one is used if none is named."""

DEFAULT = next(iter(DRIVERS))

GROUP = "sqlstress.targets"
"""The entry points of drivers that lie in other packages: name → a Known."""


class Installed(NamedTuple):
    """What is installed beside us."""

    drivers: dict[str, Known]
    broken: dict[str, str]
    """Name → why it can't be used."""


@cache
def installed() -> Installed:
    """Return the drivers that other packages bring. A name of ours stays ours."""
    beside = Installed({}, {})
    # Every command asks for them, and importlib.metadata takes 20 ms to import: so the files are seen first.
    named = False
    for path in (path for folder in sys.path for path in Path(folder).glob("*-info/entry_points.txt")):
        with suppress(OSError):
            named = named or GROUP.encode() in path.read_bytes()
    if not named:
        return beside
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        try:
            known = entry.load()
        except Exception as error:  # it is somebody else's code
            beside.broken[entry.name] = f"{type(error).__name__}: {error}"
            continue
        if not isinstance(known, Known):
            beside.broken[entry.name] = f"{entry.value} is no sqlstress.target.Known"
        elif entry.name in DRIVERS:
            beside.broken[entry.name] = "sqlstress has a driver of that name"
        else:
            beside.drivers[entry.name] = known
    return beside


def drivers() -> dict[str, Known]:
    """Return all drivers that can be chosen.

    A process of ours is told which one it has to use: it does not look what else there is.
    """
    process = sys.modules.get("multiprocessing.process")
    child = process is not None and process.parent_process() is not None
    return dict(DRIVERS) if child else {**DRIVERS, **installed().drivers}


def known_as(driver: str) -> Known:
    """Return what is known of a driver that can be chosen. Raises KeyError."""
    return DRIVERS[driver] if driver in DRIVERS else installed().drivers[driver]


def usual() -> dict[str, Known]:
    """Return the drivers that every experiment can use."""
    return {name: known for name, known in DRIVERS.items() if known.everywhere}


def for_keyvalue() -> dict[str, Known]:
    """Return the drivers that the key-value experiment can use."""
    return {name: known for name, known in drivers().items() if known.everywhere or known.keyvalue}


def for_scripts() -> dict[str, Known]:
    """Return the drivers that the experiment with SQL scripts can use."""
    return {name: known for name, known in drivers().items() if known.everywhere or known.scripts}


def for_programs() -> dict[str, Known]:
    """Return a driver of each target that programs of the user's can be told of: we look through it."""
    return {name: known for name, known in drivers().items() if known.programs}


def driver_help(drivers: Mapping[str, Known]) -> str:
    """Return what drivers are, for help."""
    return f"Driver: {', '.join(f'{name} ({known.words})' for name, known in drivers.items())}."


def target_names(drivers: Mapping[str, Known]) -> tuple[str, ...]:
    """Return the targets of these drivers that keep what they are given."""
    return tuple(dict.fromkeys(known.target for known in drivers.values() if known.stores))


# What is said of a driver in a report, which may be one that is not here (any more).


def _reported(driver: str) -> Known:
    known = DRIVERS.get(driver) or installed().drivers.get(driver)
    return known or Known(driver, "", "", bare_call="")


def target_name(driver: str) -> str:
    """Return the target of a driver; of one that is not known, what it is called itself."""
    return _reported(driver).target


def takes(driver: str, setting: str) -> bool:
    """Say whether an option of a connection's settings means something to a driver."""
    known = _reported(driver)
    return known.takes is None or setting in known.takes


def product(driver: str) -> str:
    """Return what a driver speaks to, by its own name."""
    return _reported(driver).product


def bare_call(driver: str) -> str:
    """Return what a driver's cheapest call does, in words; "" where the driver is not known."""
    return _reported(driver).bare_call


def apart(driver: str) -> str:
    """Return what a driver works on that its neighbours don't, in a sentence; "" where that is nothing."""
    return _reported(driver).apart


def serves(driver: str) -> bool:
    """Return whether what a process had told it to do may be done after the process has died."""
    return _reported(driver).serves


def stores_nothing(driver: str) -> bool:
    """Return whether the figures of a driver are the harness's own ceiling."""
    return not _reported(driver).stores


def commit_class(durability: str) -> str:
    """Return what a commit is worth, of what a target says of it: it can be compared with another's."""
    return durability.partition(":")[0].strip()
