"""The extension in C gets at the SQLite of each driver, or it is said why not."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case
from sqlstress.targets import open_place
from sqlstress.targets.native import NotToBeHad, extension, lacking
from sqlstress.targets.sqlite import connections as reach
from sqlstress.targets.sqlite.drivers import Connection, load_driver

pytestmark = pytest.mark.skipif(lacking(extension) is not None, reason="nothing was built here")
DRIVERS = ("sqlite3", "apsw")


def forget() -> None:
    extension.cache_clear()
    reach.lacks.cache_clear()


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make it as if nothing had been built."""
    forget()
    monkeypatch.setitem(sys.modules, "sqlstress.targets.native._native", None)
    yield
    forget()


def test_every_connection_is_handed_over_with_its_own_library_and_no_other_one_is(tmp_path: Path) -> None:
    tables = set()
    for driver in DRIVERS:
        binding = load_driver(driver)
        connections, handles = reach.reached(
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
def test_a_driver_that_can_t_be_reached_has_no_connection_left_open(
    driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    connection = load_driver(driver).connect(Path(":memory:"), 0)
    close = type(connection).close

    def closing(self: Connection) -> None:
        closed.append(self)
        close(self)

    monkeypatch.setattr(type(connection), "close", closing)
    with pytest.raises(NotToBeHad, match=f"{driver} handed over"):
        # It was opened before anybody could see it, or is closed already: nothing is handed over.
        monkeypatch.setattr(reach, "_load_extension", lambda driver, connection: None)
        reach.reached(driver, lambda: [connection])
    assert closed == [connection]


def test_its_clock_is_python_s() -> None:
    for _ in range(100):
        before = time.perf_counter_ns()
        now = extension().now_ns()
        assert before <= now <= time.perf_counter_ns()


@pytest.mark.usefixtures("absent")
def test_without_it_every_driver_says_why_and_a_worker_what_to_do(tmp_path: Path) -> None:
    for why in (*map(reach.lacks, DRIVERS), lacking(extension)):
        assert "the C extension was not built" in (why or "")
    place = open_place(Case(spec=Load(loop="native")), tmp_path)
    with pytest.raises(EnvironmentFailure, match=r"not available with --driver sqlite3.*Use --loop python"):
        place.native(1, "immediate")


@pytest.mark.usefixtures("absent")
def test_in_the_source_folder_it_says_that_it_may_be_installed_and_elsewhere_to_install_a_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "source folder of sqlstress: run it in another folder" in str(lacking(extension))
    monkeypatch.setattr("sqlstress.targets.native.__file__", str(tmp_path / "__init__.py"))
    assert "install a C compiler" in str(lacking(extension))
