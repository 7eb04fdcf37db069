"""Where the functions of psycopg's own libpq lie, for the loop in C: a second libpq is never an option."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlstress.targets.native.extension import NotToBeHad, extension, lacking

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = (
    "PQexec",
    "PQexecPrepared",
    "PQresultStatus",
    "PQresultErrorField",
    "PQerrorMessage",
    "PQtransactionStatus",
    "PQntuples",
    "PQgetisnull",
    "PQgetlength",
    "PQgetvalue",
    "PQclear",
)
"""What the loop in C calls, as postgres.h has it."""


@cache
def lacks() -> str | None:
    """Say why there is no native loop for psycopg here; None: there is."""
    try:
        return lacking(extension) or lacking(functions)
    except ImportError as error:
        return f"psycopg can't be imported ({error})"


@cache
def functions() -> Mapping[str, int]:
    """Return the address of each function. Raises NotToBeHad."""
    from psycopg import pq

    try:
        library = ctypes.CDLL(_library(pq))
        found = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in NAMES}
        version = library.PQlibVersion()
    except (AttributeError, OSError) as error:
        raise NotToBeHad(f"psycopg hides its libpq ({error})") from error
    if version != pq.version():
        raise NotToBeHad(f"libpq {version} was found, and psycopg's is {pq.version()}")
    return MappingProxyType(found)


def _library(pq: Any) -> str:
    """Return the file through which psycopg's libpq is found: its binding, or where that is none, itself."""
    if pq.__impl__ == "python":
        from psycopg.pq.misc import find_libpq_full_path

        return _there(find_libpq_full_path())
    binding = Path(str(sys.modules[pq.PGconn.__module__].__file__))
    if sys.platform != "win32":
        return str(binding)
    # There a library does not show what those have that it needs.
    beside = binding.parent.with_name(f"{binding.parent.name}.libs")
    return _there(next(map(str, beside.glob("libpq*.dll")), None))


def _there(library: str | None) -> str:
    if library is None:
        raise NotToBeHad("the library that psycopg uses was not found")
    return library
