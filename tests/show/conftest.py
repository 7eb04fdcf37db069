"""Views are tested with a driver that another package brings."""

from __future__ import annotations

import pytest

from sqlstress.target import DRIVERS, Known

LMDB = Known(
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
    """Make the driver lmdb known, as examples/lmdb does."""
    monkeypatch.setitem(DRIVERS, "lmdb", LMDB)
