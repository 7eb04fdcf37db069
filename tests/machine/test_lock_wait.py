"""The warning about coarse waits for a lock: which drivers are timed, and how often."""

from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.folder import RunFolder
from sqlstress.engine.session import waiting_drivers
from sqlstress.machine import lock_wait
from sqlstress.machine.lock_wait import TRIES, wait_warnings
from sqlstress.report.case import Case, Settings
from sqlstress.sqlite_codes import BUSY


@pytest.mark.parametrize(
    ("waits_s", "warnings", "measured"),
    [([0.05], 0, 1), ([1.0, 1.1, 1.2], 1, TRIES), ([1.0, 0.06], 0, 2), ([OSError(BUSY)], 0, 1)],
)
def test_long_wait_is_repeated_before_the_warning(
    waits_s: list[float | OSError],
    warnings: int,
    measured: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    calls: list[str] = []

    def measure(driver: str, folder: Path) -> float:
        assert folder == tmp_path
        calls.append(driver)
        wait_s = waits_s[len(calls) - 1]
        if isinstance(wait_s, OSError):
            raise wait_s
        return wait_s

    monkeypatch.setattr(lock_wait, "measure_wait", measure)
    found = [*wait_warnings(["apsw", "dry"], tmp_path)]
    assert [warning.code for warning in found] == warnings * ["coarse-busy-wait"]
    assert all("apsw waits" in warning.text and "after 1.00 s" in warning.text for warning in found)
    assert calls == measured * ["apsw"]


def test_this_sqlite_waits_in_short_steps(tmp_path: Path) -> None:
    assert [*wait_warnings(["sqlite3", "apsw"], tmp_path)] == [] == [*tmp_path.iterdir()]


def test_case_without_a_timeout_or_a_database_is_not_timed() -> None:
    case = Case()
    assert waiting_drivers([case, case]) == [case.driver]
    assert waiting_drivers([replace(case, settings=Settings(busy_timeout_ms=0))]) == []
    assert waiting_drivers([Case(workload="exec")]) == []


def test_file_of_a_killed_run_is_removed_by_the_next(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, keep=False)
    with folder:
        (folder.path / "wait.db").touch()
    assert [*tmp_path.iterdir()] == []
