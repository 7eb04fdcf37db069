"""Cases on a server of ours, in each layout and with each type of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.experiments.kv.experiment import Load
from sqlstress.experiments.kv.keys import encoder
from sqlstress.report.case import Case, Settings
from sqlstress.report.server import Server
from sqlstress.targets import open_place
from sqlstress.targets.postgres.place import PostgresPlace
from sqlstress.targets.views import Store
from tests.pulses import nothing

KEYS = 30
Open = Callable[..., Store]


@pytest.fixture(
    params=[
        (2, "int"),
        pytest.param((1, "text"), marks=pytest.mark.thorough),
        pytest.param((3, "blob"), marks=pytest.mark.thorough),
    ],
    ids=str,
)
def case(request: pytest.FixtureRequest, our_server: str) -> Case:
    buckets, key_type = request.param
    return case_of(buckets=buckets, key_type=key_type)


def case_of(buckets: int = 1, key_type: str = "int", isolation: str = "read-committed") -> Case:
    """Return a case whose operations give up at once."""
    return Case(
        driver="psycopg",
        buckets=buckets,
        settings=Settings(synchronous="off", busy_timeout_ms=0),
        server=Server(isolation=isolation),
        spec=Load(key_space=KEYS, key_type=key_type, update_ratio=0.1),
    )


@pytest.fixture
def place(case: Case, tmp_path: Path) -> Iterator[PostgresPlace]:
    """A place whose every bucket holds the keys 0 to 29, each with its negative."""
    yield from filled(case, tmp_path)


def filled(case: Case, where: Path) -> Iterator[PostgresPlace]:
    """Yield a filled place; its schema is dropped afterwards."""
    place = open_place(case, where)
    assert isinstance(place, PostgresPlace)
    encode = encoder(case.spec.key_type)
    rows = [[(encode(number), -number) for number in range(KEYS)]] * case.buckets
    place.table(case.spec.key_type, 8, COUNTERS).fill(rows, nothing)
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
            own = open_place(replace(place.case, settings=settings, server=server), place.where)
            store = own.keyvalue(next(workers), begin, 0)
            opened.callback(store.close)
            return store

        yield open_view
