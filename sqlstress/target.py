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
    bucket: str = "file"
    """What one of the buckets is over which keys are partitioned."""
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
    "apsw": Known("sqlite", f"{_SQLITE}.apsw_driver", "extra"),
    "peewee": Known("sqlite", f"{_SQLITE}.peewee_driver", "the mapper", everywhere=False),
    "psycopg": Known(
        "postgres",
        "sqlstress.targets.postgres.client",
        "PostgreSQL, extra",
        everywhere=False,
        keyvalue=True,
        scripts=True,
        programs=True,
        takes=frozenset({"synchronous", "busy-timeout", "begin"}),
        product="PostgreSQL",
        bucket="table",
        bare_call="SELECT 1, of no table; the way to the server and back is in it",
        serves=True,
    ),
    "dry": Known("dry", "", "does nothing: the harness's own ceiling", stores=False),
}
"""Name, as cases and reports have it → what is known of it. The first one is used if none is named."""

DEFAULT = next(iter(DRIVERS))

_RETIRED = {
    "lmdb": Known(
        "lmdb",
        "",
        "no SQL, one writer",
        takes=frozenset({"synchronous"}),
        product="LMDB",
        bare_call="a read transaction without a look-up",
    ),
    "libsql": Known("sqlite", "", "libSQL, a fork"),
    "turso": Known(
        "turso",
        "",
        "SQLite rewritten, one process",
        takes=frozenset({"synchronous", "page-size", "cache-size", "begin"}),
        product="Turso",
        bare_call="SELECT 1, of no table and no file",
        apart="Turso's table has rowids, since it writes no other: SQLite's has none",
    ),
}
"""Drivers that are not here any more: reports that were written with them say what they were."""


GROUP = "sqlstress.targets"
"""The entry points of drivers that lie in other packages: name → a Known."""


class Installed(NamedTuple):
    """What is installed beside us."""

    drivers: dict[str, Known]
    broken: dict[str, str]
    """Name → why it can't be used."""


def _named_anywhere() -> bool:
    """Return whether a package that is installed names our entry points.

    Every command asks for it, and importlib.metadata takes 20 ms to import: so this is seen first.
    """
    from pathlib import Path

    for folder in sys.path:
        for path in Path(folder).glob("*-info/entry_points.txt"):
            with suppress(OSError):
                if GROUP.encode() in path.read_bytes():
                    return True
    return False


@cache
def installed() -> Installed:
    """Return the drivers that other packages bring. A name of ours stays ours."""
    found = Installed({}, {})
    if not _named_anywhere():
        return found
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        try:
            known = entry.load()
        except Exception as error:  # it is somebody else's code
            found.broken[entry.name] = f"{type(error).__name__}: {error}"
            continue
        if not isinstance(known, Known):
            found.broken[entry.name] = f"{entry.value} is no sqlstress.target.Known"
        elif entry.name in DRIVERS:
            found.broken[entry.name] = "sqlstress has a driver of that name"
        else:
            found.drivers[entry.name] = known
    return found


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


def _known(driver: str) -> Known | None:
    return DRIVERS.get(driver) or installed().drivers.get(driver) or _RETIRED.get(driver)


def drivers_of(target: str) -> dict[str, str]:
    """Return the drivers of a target: name → module."""
    return {name: known.module for name, known in DRIVERS.items() if known.target == target}


def for_keyvalue() -> dict[str, Known]:
    """Return the drivers that the key-value experiment can use."""
    return {name: known for name, known in drivers().items() if known.everywhere or known.keyvalue}


def for_scripts() -> dict[str, Known]:
    """Return the drivers that the experiment with SQL scripts can use."""
    return {name: known for name, known in drivers().items() if known.everywhere or known.scripts}


def for_programs() -> dict[str, Known]:
    """Return a driver of each target that programs of the user's can be told of: we look through it."""
    return {name: known for name, known in drivers().items() if known.programs}


def target_names(drivers: Mapping[str, Known]) -> tuple[str, ...]:
    """Return the targets of these drivers that keep what they are given."""
    return tuple(dict.fromkeys(known.target for known in drivers.values() if known.stores))


def driver_for(drivers: Mapping[str, Known], target: str, wanted: str) -> str:
    """Return which of these drivers of a target is meant: the wanted one if it is one, else the first."""
    own = [name for name, known in drivers.items() if known.target == target]
    return wanted if wanted in own else own[0]


def target_name(driver: str) -> str:
    """Return the target of a driver; of one that is not known, what it is called itself."""
    known = _known(driver)
    return known.target if known else driver


def takes(driver: str, setting: str) -> bool:
    """Say whether an option of a connection's settings means something to a driver."""
    known = _known(driver)
    return known is None or known.takes is None or setting in known.takes


def worth(durability: str) -> str:
    """Return what a commit is worth, of what a target says of it: it can be compared with another's."""
    return durability.partition(":")[0].strip()


def usual() -> dict[str, Known]:
    """Return the drivers that every experiment can use."""
    return {name: known for name, known in DRIVERS.items() if known.everywhere}


def told(drivers: Mapping[str, Known]) -> str:
    """Return what drivers are, for help."""
    return f"{', '.join(f'{name} ({known.words})' for name, known in drivers.items())}."


def product(driver: str) -> str:
    """Return what a driver speaks to, by its own name."""
    known = _known(driver)
    return known.product if known else "SQLite"


def bucket(driver: str) -> str:
    """Return what a bucket is with a driver: "file", "table"."""
    known = _known(driver)
    return known.bucket if known else "file"


def bare_call(driver: str) -> str:
    """Return what a driver's cheapest call does, in words; "" where the driver is not known."""
    known = _known(driver)
    return known.bare_call if known else ""


def apart(driver: str) -> str:
    """Return what a driver works on that its neighbours don't, in a sentence; "" where that is nothing."""
    known = _known(driver)
    return known.apart if known else ""


def serves(driver: str) -> bool:
    """Return whether what a process had told it to do may be done after the process has died."""
    known = _known(driver)
    return known is not None and known.serves


def stores_nothing(driver: str) -> bool:
    """Return whether the figures of a driver are the harness's own ceiling."""
    known = _known(driver)
    return known is not None and not known.stores
