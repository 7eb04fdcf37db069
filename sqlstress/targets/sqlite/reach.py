"""How the C extension gets at a driver's SQLite, and at the connections that the driver has opened.

It is a loadable extension of SQLite as well as a module of Python, so a driver's SQLite calls it for a
connection, and hands over its table of functions. A second SQLite in the process is never an option: two
libraries that work on one file break each other's POSIX locks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sqlstress.targets.native.extension import NotToBeHad, extension, lacking
from sqlstress.targets.sqlite.drivers import Connection, load_driver

ENTRY = "sqlite3_native_init"


class Handle(NamedTuple):
    """A connection as C knows it."""

    connection: int
    """Address of the sqlite3."""
    functions: int
    """Address of its library's table of functions."""


def reached(
    driver: str, connect: Callable[[], Sequence[Connection]]
) -> tuple[list[Connection], list[Handle]]:
    """Open connections, and return them with their handles; closes them where it raises NotToBeHad."""
    native = extension()
    native.handed_over()
    with _watched(driver):
        connections = list(connect())
    try:
        for connection in connections:
            _hand_over(driver, connection)
        handles = [Handle(*one) for one in native.handed_over()]
        _check(driver, native, len(connections), handles)
    except BaseException:
        for connection in connections:
            connection.close()
        raise
    return connections, handles


def _check(driver: str, native: Any, count: int, handles: Sequence[Handle]) -> None:
    """Raise NotToBeHad where what was handed over is not what was opened."""
    if len(handles) != count:
        raise NotToBeHad(f"{driver} handed over {len(handles)} of {count} connections")
    number = sum(
        part * scale
        for part, scale in zip(
            map(int, load_driver(driver).versions()[1].split(".")), (10**6, 10**3, 1), strict=False
        )
    )
    for handle in handles:
        if native.version_number(handle.functions) != number:
            raise NotToBeHad(f"the functions that {driver} handed over are not those of its SQLite")


@cache
def lacks(driver: str) -> str | None:
    """Say why there is no native loop for a driver here; None: there is."""
    return lacking(lambda: reached_once(driver))


def reached_once(driver: str) -> Handle:
    """Return how a driver's SQLite is reached; the connection is closed again. Raises NotToBeHad."""
    extension()
    binding = load_driver(driver)
    (connection,), (handle,) = reached(driver, lambda: [binding.connect(Path(":memory:"), 0, None)])
    connection.close()
    return handle


def loads_extensions(driver: str) -> bool:
    """Return whether a driver's connections can be told to load an extension."""
    if driver == "apsw":
        import apsw

        return "OMIT_LOAD_EXTENSION" not in apsw.compile_options
    import sqlite3

    return hasattr(sqlite3.Connection, "enable_load_extension")


@contextmanager
def _watched(driver: str) -> Iterator[None]:
    """Let every connection that is opened hand itself over, where it can't be asked to later."""
    if loads_extensions(driver):
        yield
        return
    library, entry = _binding(), _entry()
    if library.sqlite3_auto_extension(entry) != 0:
        raise NotToBeHad("SQLite does not take the extension")
    try:
        yield
    finally:
        library.sqlite3_cancel_auto_extension(entry)


def _hand_over(driver: str, connection: Connection) -> None:
    if not loads_extensions(driver):
        return
    own: Any = connection._connection  # type: ignore[attr-defined]
    own.enable_load_extension(True)
    try:
        own.load_extension(str(Path(str(extension().__file__))))
    except Exception as error:
        raise NotToBeHad(f"{driver} does not load the extension ({error})") from error
    finally:
        own.enable_load_extension(False)


@cache
def _binding() -> ctypes.CDLL:
    """Return Python's own binding, through which the functions of its SQLite are found."""
    import _sqlite3

    try:
        library = ctypes.CDLL(str(_sqlite3.__file__))
        library.sqlite3_auto_extension, library.sqlite3_cancel_auto_extension  # noqa: B018
    except (AttributeError, OSError) as error:
        raise NotToBeHad(
            f"this Python's sqlite3 loads no extensions and hides its SQLite ({error})"
        ) from error
    return library


def _entry() -> ctypes.c_void_p:
    return ctypes.cast(getattr(ctypes.CDLL(str(extension().__file__)), ENTRY), ctypes.c_void_p)
