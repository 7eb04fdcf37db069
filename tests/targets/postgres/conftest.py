"""A place on a server of ours, filled, and workers' views of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.experiments.kv.experiment import Load
from sqlstress.report.case import Case, Server, Settings
from sqlstress.targets import open_place
from sqlstress.targets.views import Store
from tests.pulses import nothing

if TYPE_CHECKING:  # where there is no psycopg these tests are skipped
    from sqlstress.targets.postgres.place import PostgresPlace

KEYS = 30
Open = Callable[..., Store]


@pytest.fixture
def place(our_server: str, tmp_path: Path) -> Iterator[PostgresPlace]:
    """A place whose buckets hold the keys 0 to 29, each with its negative; operations give up at once."""
    from sqlstress.targets.postgres.place import PostgresPlace

    settings = Settings(synchronous="off", busy_timeout_ms=0)
    load = Load(key_space=KEYS, update_ratio=0.1)
    place = PostgresPlace(
        Case(driver="psycopg", buckets=2, settings=settings, server=Server(), spec=load), tmp_path
    )
    place.table("int", 8, COUNTERS).fill([[(number, -number) for number in range(KEYS)]] * 2, nothing)
    yield place
    place.discard()


@pytest.fixture
def open_view(place: PostgresPlace) -> Iterator[Open]:
    """Open views of one store, each as a worker of its own would."""
    workers = count(1)
    with ExitStack() as opened:

        def open_view(begin: str = "immediate", isolation: str | None = None, timeout_ms: int = 0) -> Store:
            settings = replace(place.case.settings, busy_timeout_ms=timeout_ms)
            server = Server(isolation=isolation) if isolation else place.case.server
            view = open_place(replace(place.case, settings=settings, server=server), place.where)
            store = view.keyvalue(next(workers), begin, 0)
            opened.callback(store.close)
            return store

        yield open_view
