"""A worker's view of SQLite files from C: the driver's own connections, handed over."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.native.extension import extension, needed
from sqlstress.targets.native.run import carry_out
from sqlstress.targets.sqlite.drivers.codes import explained
from sqlstress.targets.sqlite.keyvalue import COUNT, GET, PAIR, PUT, SET_COUNT
from sqlstress.targets.sqlite.reach import reached

if TYPE_CHECKING:
    from sqlstress.targets.sqlite.client import Client

_JITTER_BITS = 62


class SqliteNativeStore:
    """Opens every bucket of a client's place. Raises EnvironmentFailure, with SQLite's code."""

    def __init__(self, client: Client, begin: str) -> None:
        """`begin` is how transactions of several statements begin."""
        self._client = client
        case = client.case
        with needed(case.driver):
            _, handles = reached(case.driver, client.connect_all)
            self._native = extension()
        waiting = client.waiting
        self._plan: dict[str, Any] = {
            "stores": True,
            "connections": [tuple(handle) for handle in handles],
            # In the order of Sql in loop.h.
            "statements": (GET, PAIR, PUT, f"BEGIN {begin}", "COMMIT", "ROLLBACK", COUNT, SET_COUNT),
            "fair": case.settings.busy == "fair",
            "turn_ns": int(waiting.turn_s * NS_PER_S),
            "mean_wait_ns": int(waiting.mean_s * NS_PER_S),
            "least_wait_ns": int(waiting.least_s * NS_PER_S),
            "jitter": Random(f"{case.seed}:waiting:{client.worker}").getrandbits(_JITTER_BITS),
        }

    def run(self, plan: dict[str, Any]) -> dict[str, Any]:
        return carry_out(self._native, {**plan, **self._plan}, explained)

    def effective(self) -> dict[str, str]:
        return self._client.effective()

    def close(self) -> None:
        self._client.close()
