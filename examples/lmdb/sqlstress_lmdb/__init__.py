"""LMDB for sqlstress: one writer at a time, a memory map, a file for each bucket. Keys and values, no SQL."""

from __future__ import annotations

from sqlstress.target import DriverInfo

LMDB = DriverInfo(
    "lmdb",
    "",
    "no SQL, one writer",
    everywhere=False,
    keyvalue=True,
    takes=frozenset({"synchronous"}),
    product="LMDB",
    bare_call="a read transaction without a look-up",
    package="sqlstress_lmdb.target",
)
"""Description of the driver, known before it is imported; pyproject.toml names it."""
