"""What a measurement needs of servers before its first trial: that they are there, and have room."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from psycopg.pq import Conninfo

from sqlstress.errors import EnvironmentFailure
from sqlstress.report.case import Case
from sqlstress.targets.postgres import embedded
from sqlstress.targets.postgres.address import OURS, dsn_of
from sqlstress.targets.postgres.owner import drop_abandoned
from sqlstress.targets.postgres.sessions import opened

OWN = 3
"""Connections of the parent, at once."""
EACH = 4
"""Connections that a server of ours has for each process: an application of the user's may have several."""
_FREE = (
    "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
    " - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
)


@contextmanager
def serving(cases: Sequence[Case], folder: Path) -> Iterator[None]:
    """Have a server of ours for the cases that name none, and look at those that are named.

    Raises EnvironmentFailure.
    """
    own = [case for case in cases if not (case.server and case.server.address)]
    others = {dsn_of(case): case for case in sorted(cases, key=_processes) if case not in own}
    for dsn, case in others.items():
        _look(dsn, case.concurrency)
    if not own:
        yield
        return
    # A server that is named may need them.
    alone = nullcontext() if others else variables_hidden()
    with alone, embedded.running(folder, EACH * max(map(_processes, own)) + OWN) as dsn:
        os.environ[OURS] = dsn
        try:
            yield
        finally:
            del os.environ[OURS]


@contextmanager
def variables_hidden() -> Iterator[None]:
    """Hide what libpq takes from the environment: it is of another server, and would lead there."""
    names = {one.envvar.decode() for one in Conninfo.get_defaults() if one.envvar} | {"PGSERVICE"}
    hidden = {name: os.environ.pop(name) for name in names & os.environ.keys()}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _processes(case: Case) -> int:
    return case.concurrency


def _look(dsn: str, processes: int) -> None:
    """See that a server answers and has room; drop what killed runs of ours have left there."""
    drop_abandoned(dsn)
    with opened(dsn, "the server can't be used") as connection:
        row = connection.execute(_FREE).fetchone()
    free = row[0] if row else 0
    if free < processes + OWN - 1:
        raise EnvironmentFailure(
            f"the server has room for {free} connections more, and {processes + OWN - 1} are needed: "
            "lower --concurrency, or raise its max_connections."
        )
