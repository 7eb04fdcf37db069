"""The native loop: a C extension that runs a timed window inside the driver's own SQLite.

Files in C, each of one subject; loop.h says what each is for. Python: `reach` gets at a driver's SQLite,
`store` is a worker's half, `run` hands a plan over.
"""

from __future__ import annotations

from functools import cache


@cache
def lacks(driver: str | None) -> str | None:
    """Say why there is no native loop for a driver here, or for a store that does nothing; None: there is."""
    from sqlstress.targets.sqlite.native.reach import NotToBeHad, try_out

    try:
        try_out(driver)
    except NotToBeHad as reason:
        return str(reason)
    return None
