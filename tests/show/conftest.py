"""Views are tested with a driver from another package."""

import pytest

from sqlstress.target import DRIVERS, DriverInfo

LMDB = DriverInfo(
    "lmdb",
    "",
    "no SQL, one writer",
    everywhere=False,
    keyvalue=True,
    takes=frozenset({"synchronous"}),
    product="LMDB",
    bare_call="a read transaction without a look-up",
)


@pytest.fixture(autouse=True)
def lmdb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the driver lmdb, as examples/lmdb does."""
    monkeypatch.setitem(DRIVERS, "lmdb", LMDB)
