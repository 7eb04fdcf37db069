"""A worker's view of a schema from C: psycopg's own connection, and what is prepared on it, handed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlstress.targets.native.extension import extension, needed
from sqlstress.targets.native.run import carry_out
from sqlstress.targets.postgres.errors import ServerError, explained
from sqlstress.targets.postgres.keyvalue import PostgresStore
from sqlstress.targets.postgres.libpq import functions

if TYPE_CHECKING:
    from sqlstress.report.case import Case

KINDS = ("get", "pair", "put", "count", "set")
"""The statements of a bucket, in the order of Prepared in postgres.h."""
_STATE = 5
"""Characters of an SQLSTATE."""


class PostgresNativeStore:
    """Opens the tables of a schema. Raises EnvironmentFailure, with the server's words."""

    def __init__(self, case: Case, schema: str, begin: str) -> None:
        """`begin` is how transactions of several statements begin: "immediate" takes their locks first."""
        with needed(case.driver):
            self._native, addresses = extension(), functions()
        self._store = PostgresStore(case, schema, begin)
        names = [f"{kind}_{bucket}".encode() for bucket in range(case.buckets) for kind in KINDS]
        self._plan: dict[str, Any] = {
            "stores": True,
            "server": (self._store.address, dict(addresses), names, begin == "immediate"),
        }

    def run(self, plan: dict[str, Any]) -> dict[str, Any]:
        return carry_out(self._native, {**plan, **self._plan}, _said)

    def effective(self) -> dict[str, str]:
        return self._store.effective()

    def close(self) -> None:
        self._store.close()


def _said(_code: int, said: str) -> str:
    """Return the server's words for what stopped the loop."""
    error = ServerError(said[:_STATE].strip(), said[_STATE:])
    return explained(error) or str(error)
