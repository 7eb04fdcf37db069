"""The C extension reaches the SQLite of each driver, or gives a reason why not."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case
from sqlstress.targets import open_place
from sqlstress.targets.native import NativeUnavailable, extension, unavailable_reason
from sqlstress.targets.sqlite import connections as reach
from sqlstress.targets.sqlite.drivers import Connection, load_driver

pytestmark = pytest.mark.skipif(unavailable_reason(extension) is not None, reason="nothing was built here")
DRIVERS = ("sqlite3", "apsw")


def forget() -> None:
    extension.cache_clear()
    reach.native_unavailable.cache_clear()


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pretend that the extension was not built."""
    forget()
    monkeypatch.setitem(sys.modules, "sqlstress.targets.native._native", None)
    yield
    forget()


def test_connections_are_handed_over_with_their_own_library(tmp_path: Path) -> None:
    tables = set()
    for driver in DRIVERS:
        binding = load_driver(driver)
        connections, handles = reach.connect_with_handles(
            driver,
            lambda binding=binding: [binding.connect(tmp_path / f"{n}.db", 0) for n in range(3)],  # type: ignore[misc]
        )
        assert len({handle.connection for handle in handles}) == 3
        (table,) = {handle.functions for handle in handles}
        tables.add(table)
        version = [int(part) for part in binding.versions()[1].split(".")]
        number = extension().version_number(table)
        assert [number // 10**6, number // 10**3 % 10**3, number % 10**3] == version
        for connection in connections:
            connection.close()
        binding.connect(Path(":memory:"), 0).close()
        assert extension().handed_over() == []
    assert len(tables) == len(DRIVERS)


@pytest.mark.parametrize("driver", DRIVERS)
def test_unreachable_driver_leaves_no_connection_open(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    connection = load_driver(driver).connect(Path(":memory:"), 0)
    close = type(connection).close

    def closing(self: Connection) -> None:
        closed.append(self)
        close(self)

    monkeypatch.setattr(type(connection), "close", closing)
    with pytest.raises(NativeUnavailable, match=f"{driver} handed over"):
        # The connection was opened too early, or is closed already: nothing is handed over.
        monkeypatch.setattr(reach, "_load_extension", lambda driver, connection: None)
        reach.connect_with_handles(driver, lambda: [connection])
    assert closed == [connection]


def test_clock_of_the_extension_is_that_of_python() -> None:
    for _ in range(100):
        before = time.perf_counter_ns()
        now = extension().now_ns()
        assert before <= now <= time.perf_counter_ns()


@pytest.mark.usefixtures("absent")
def test_missing_extension_is_the_reason_for_every_driver(tmp_path: Path) -> None:
    for reason in (*map(reach.native_unavailable, DRIVERS), unavailable_reason(extension)):
        assert "the C extension was not built" in (reason or "")
    place = open_place(Case(spec=Load(loop="native")), tmp_path)
    with pytest.raises(EnvironmentFailure, match=r"not available with --driver sqlite3.*Use --loop python"):
        place.native(1, "immediate")


@pytest.mark.usefixtures("absent")
def test_missing_extension_message_depends_on_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "source folder of sqlstress: run it in another folder" in str(unavailable_reason(extension))
    monkeypatch.setattr("sqlstress.targets.native.__file__", str(tmp_path / "__init__.py"))
    assert "install a C compiler" in str(unavailable_reason(extension))
