"""Pauses inside SQLite: their points and lengths, and no pauses elsewhere."""

import re
import time
from pathlib import Path
from random import Random

import pytest

from sqlstress.experiments.hunt.spec import POINTS
from sqlstress.system.processes import call_in_subprocess
from sqlstress.targets import native
from sqlstress.targets.sqlite import shim
from sqlstress.targets.sqlite.connections import native_unavailable
from sqlstress.targets.sqlite.drivers import load_driver
from tests.pulses import nothing

NATIVE = Path(str(native.__file__)).parent

pytestmark = pytest.mark.skipif(
    native_unavailable("sqlite3") is not None, reason="there is no C extension here"
)


def at(point: str, one_in: int) -> list[int]:
    """Return the rates of a schedule that pauses only at this point."""
    return [one_in * (point == other_point) for other_point in POINTS]


def paused(driver: str, file: Path, journal: str) -> dict[str, list[float]]:
    """Return by point the pauses and seconds of an INSERT, then the pauses and seconds of a SELECT.

    Call it in a separate process, because that process pauses from then on.
    """

    def follow(point: str) -> None:
        shim.begin_pauses(driver, shim.schedule(Random(1), at(point, 1), 2_000_000, 2_000_001))

    def pauses_of(sql: str) -> tuple[int, float]:
        before, began = shim.pause_count(), time.perf_counter()
        connection.rows(sql)
        return shim.pause_count() - before, time.perf_counter() - began

    follow("none")
    connection = load_driver(driver).connect(file, 1000)
    connection.rows(f"PRAGMA journal_mode={journal}")
    connection.rows("CREATE TABLE t (x)")
    results: dict[str, list[float]] = {}
    for point in ("none", *POINTS):
        follow(point)
        results[point] = [*pauses_of("INSERT INTO t VALUES (1)"), *pauses_of("SELECT * FROM t")]
    return results


def test_points_equal_those_of_the_shim_in_order() -> None:
    listed = re.search(
        r"enum \{\s*(PAUSE_OPEN.*?)PAUSE_POINTS", (NATIVE / "pauses.h").read_text("utf-8"), re.DOTALL
    )
    assert listed
    names = re.findall(r"PAUSE_(\w+),", re.sub(r"/\*.*?\*/", "", listed[1]))
    assert tuple(name.lower().replace("_", "-") for name in names) == POINTS


@pytest.mark.parametrize(
    ("driver", "journal", "writing", "reading"),
    [
        (
            "sqlite3",
            "wal",
            {"write", "barrier", "shm-lock", "shm-unlock", "write-lock"},
            {"barrier", "shm-lock", "shm-unlock"},
        ),
        (
            "sqlite3",
            "delete",
            {"write", "lock", "unlock", "write-lock", "delete", "open"},
            {"lock", "unlock"},
        ),
        ("apsw", "wal", {"write", "write-lock"}, {"shm-lock"}),
    ],
)
def test_process_pauses_only_at_the_named_calls(
    tmp_path: Path, driver: str, journal: str, writing: set[str], reading: set[str]
) -> None:
    if driver == "apsw":
        pytest.importorskip("apsw")
    results = call_in_subprocess(nothing, paused, driver, tmp_path / "paused.db", journal)
    assert writing <= {point for point, (count, *_) in results.items() if count}
    assert reading <= {point for point, (_, _, count, _) in results.items() if count}
    assert not {"none", "truncate"} & {point for point, (count, *_) in results.items() if count}
    assert {"write", "write-lock", "delete", "sync"}.isdisjoint(
        point for point, (_, _, count, _) in results.items() if count
    )
    # There is a pause on both sides of the call.
    count, seconds = results["write-lock"][:2]
    assert count >= 2 and seconds >= 0.002 * count


def test_lengths_lie_between_the_shortest_and_the_longest() -> None:
    words = shim.schedule(Random(1), at("read", 5), 1000, 1_000_000)
    assert words[2 : 2 + 2 * len(POINTS)] == [5 * (point == "read") for point in POINTS for _ in range(2)]
    lengths = sorted(words[2 + 2 * len(POINTS) :])
    assert len(lengths) == words[1] == shim.LENGTH_COUNT
    assert lengths[0] >= 1000 and lengths[-1] <= 1_000_000
    assert 10_000 < lengths[len(lengths) // 2] < 100_000
