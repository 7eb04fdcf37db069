"""The command `sqlstress hunt`, and `doctor --hunt`: real hunts, through the real command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sqlstress.experiments.hunt.result import WAL_RESET
from sqlstress.machine.warnings import has_wal_reset_bug
from sqlstress.targets.sqlite.connections import native_unavailable
from sqlstress.targets.sqlite.drivers.sqlite3_driver import versions

pytestmark = pytest.mark.skipif(
    native_unavailable("sqlite3") is not None, reason="there is no C extension here"
)


def sqlstress(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sqlstress", *map(str, words)], capture_output=True, text=True, check=False
    )


def test_hunt_reports_its_rounds_and_leaves_no_file(tmp_path: Path) -> None:
    pytest.importorskip("apsw")
    report = tmp_path / "hunt.json"
    done = sqlstress(
        "hunt", "--driver", "apsw", "--max-time", "1s", "--dir", tmp_path, "-o", report, "-o", "txt:-"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Nothing found." in done.stdout
    hunt = json.loads(report.read_text(encoding="utf-8"))["hunt"]["found"]
    assert hunt["rounds"] >= 1 and hunt["operations"]["writer"] > 0 and hunt["found"] is None
    assert [path.name for path in tmp_path.iterdir()] == ["hunt.json"]


@pytest.mark.thorough
@pytest.mark.skipif(not has_wal_reset_bug(versions()[1]), reason="this SQLite has no known bug")
def test_wal_reset_bug_is_found_and_named(tmp_path: Path) -> None:
    """SQLite may be patched here; if so, the hunt may find nothing."""
    report = tmp_path / "hunt.json"
    done = sqlstress("hunt", "--max-time", "60s", "--shrink-time", "1s", "--dir", tmp_path, "-o", report)
    assert done.returncode in (0, 1) and done.stderr == ""
    hunt = json.loads(report.read_text(encoding="utf-8"))["hunt"]["found"]
    assert bool(hunt["found"]) == bool(done.returncode)
    if hunt["found"]:
        assert hunt["known"] == WAL_RESET
        assert hunt["found"]["command"][:3] == ["sqlstress", "hunt", "--as-given"]


@pytest.mark.thorough
def test_doctor_hunts_in_the_folder_of_dir(tmp_path: Path) -> None:
    pytest.importorskip("apsw")
    done = sqlstress("doctor", "--hunt", "--driver", "apsw", "--dir", tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "Hunt         Nothing found." in done.stdout
    assert [*tmp_path.iterdir()] == []
