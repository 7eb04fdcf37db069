"""A disk that is full, or a limit on the size of files, at every moment."""

import re
import sys
from pathlib import Path

import psutil
import pytest

from sqlstress.report import Report
from tests.engine.processes import saved_report, sqlstress
from tests.faults.commands import Held, left
from tests.faults.surroundings import BALLAST, bounded, fill, linux, posix, small_disk
from tests.rows import fault, thorough

LIMITED_FILES = fault(
    "resources", "a limit on file sizes (`ulimit -f`)", "exit 4, SQLite's code and what to do"
)
FULL_UNDER_LOAD = fault(
    "resources",
    "the disk full while workers write, or during a checkpoint",
    "exit 4; what SQLite can read is still verified",
)

SLICE = ("--warmup", "50ms", "--duration", "100ms")
LONGER = ("--warmup", "50ms", "--duration", "500ms")
"""Long enough to complete something on the slowest disk."""
ONCE = ("--repeat=1", "--quiet")
KV = ("kv", *SLICE, *ONCE)
FULL = "SQLITE_FULL: database or disk is full (free some disk space, or choose another --dir)"
SHM_BYTES = 32_768
NO_SHM = "SQLITE_IOERR_SHMSIZE: disk I/O error (the disk failed or is full"
"""SQLite's message if the disk is full when it makes its -shm file."""
TOO_LARGE = "SQLITE_IOERR_WRITE: disk I/O error (the disk failed or is full, or the file"


def struck(
    place: Path, moment: str, count: int, *arguments: str, spare_bytes: int = 0
) -> tuple[int, str, Report]:
    """Fill the disk when a moment comes for the `count`-th time; return the exit code, the errors and the
    report.
    """
    report = place.parent / "report.json"
    with Held(place, moment, *arguments, "-o", str(report), count=count) as command:
        fill(place, spare_bytes)
        code, output, errors = command.finish()
    assert (output, left(place)) == ("", [BALLAST])
    return code, errors, saved_report(place.parent)


@pytest.mark.thorough
@fault("resources", "the disk full while the second case is preloaded", "exit 4; the first case is kept")
def test_full_disk_at_preloading_keeps_the_cases_before(tmp_path: Path) -> None:
    with small_disk(tmp_path, 12_000) as place:
        code, errors, report = struck(place, "preparing", 2, *KV, "-c", "1,2", "--key-space", "20000")
    first, second = report.runs
    assert (code, first.error, first.verdict.status) == (4, None, "ok")
    assert second.trials == ()
    assert FULL in (second.error or "") or NO_SHM in (second.error or "")
    assert errors == f"Error: 1 bucket, 2 processes could not be measured: {second.error}".rstrip(".") + ".\n"


@fault(
    "resources",
    "the disk full in the third slice of `ab`",
    "exit 4; the slices before are kept, nothing is concluded",
)
@pytest.mark.parametrize("moment", [thorough("measuring"), thorough("preparing")])
def test_full_disk_in_a_slice_keeps_the_earlier_slices(tmp_path: Path, moment: str) -> None:
    # Every transaction needs space for its journal, and a disk of this size is full before the slice ends.
    arms = ("ab", "--a=--synchronous=full", "--b=--synchronous=off", "-c", "2", "--journal-mode", "delete")
    size = ("--key-space", "50", "--value-size", "100", *LONGER, "--quiet")
    with small_disk(tmp_path, 2_000) as place:
        code, errors, report = struck(place, moment, 3, *arms, *size)
    a, b = report.runs
    assert (code, len(errors.splitlines())) == (4, 1)
    assert re.match(r"Error: [AB], 1 bucket, 2 processes, could not be measured: ", errors)
    assert FULL in errors
    assert report.ab is not None
    assert (report.ab.verdict, [len(run.valid) for run in (a, b)]) == ("undecided", [1, 1])


@pytest.mark.thorough
@fault(
    "resources",
    "a limit on file sizes that the checkpointing process meets",
    "exit 4; the workers' figures are kept and verified",
)
@linux
def test_checkpointer_at_a_size_limit_is_reported_and_figures_are_kept(tmp_path: Path) -> None:
    options = ("kv", *LONGER, "--duration", "1s", *ONCE, "-c", "2", "--checkpointer", "restart")
    with Held(tmp_path, "measuring", *options, "-o", "report.json") as command:
        _, _, checkpointer, _ = sorted(command.workers(), key=lambda process: process.pid)
        if sys.platform == "linux":
            checkpointer.rlimit(psutil.RLIMIT_FSIZE, (0, 0))
        code, output, errors = command.finish()
    (run,) = saved_report(tmp_path).runs
    assert (code, output) == (4, "")
    assert f"the checkpointer failed: {TOO_LARGE}" in errors
    assert errors.endswith("; the workers' figures are kept.\n")
    assert run.trials[0].transactions > 0
    assert run.verdict.status == "ok"
    assert left(tmp_path) == ["report.json"]


@FULL_UNDER_LOAD
@pytest.mark.thorough
def test_full_disk_with_a_checkpointer_is_reported(tmp_path: Path) -> None:
    options = ("--update-ratio", "1", "--read-ratio", "0", "--checkpointer", "restart", "-c", "2")
    with small_disk(tmp_path, 12_000) as place:
        code, errors, report = struck(place, "connected", 1, *KV, "--key-space", "5000", *options)
    (run,) = report.runs
    assert code == 4
    assert FULL in errors
    assert (run.valid, run.verdict.status) == ((), "ok")


@FULL_UNDER_LOAD
@pytest.mark.parametrize("driver", ["sqlite3", thorough("apsw")])
def test_full_disk_in_the_window_is_reported_and_data_verified(tmp_path: Path, driver: str) -> None:
    options = ("--wal-autocheckpoint", "0", "--driver", driver, "--key-space", "100", "-c", "2")
    with small_disk(tmp_path, 8000) as place:
        code, errors, report = struck(place, "connected", 1, *KV, *options)
    (run,) = report.runs
    (trial,) = run.trials
    assert code == 4
    assert f"worker 1 failed: {FULL}, and 1 more." in errors
    assert [worker.error for worker in trial.workers] == [FULL, FULL]
    assert run.valid == ()
    # It depends on chance whether the index of a long WAL, for which the disk has no space, must grow once
    # more.
    unread = [check.note for check in run.verdict.checks if check.status == "unknown"]
    assert all(check.status != "failed" for check in run.verdict.checks)
    assert all(note.startswith("SQLITE_IOERR") for note in unread)


@pytest.mark.thorough
@FULL_UNDER_LOAD
def test_full_disk_at_checkpoints_loses_no_acknowledged_write(tmp_path: Path) -> None:
    size = ("--users", "2000", "--picks", "50", "--items", "1000", "--synchronous", "off", "--quiet")
    options = ("keys", "--schema=no-key", "--id-type=int", "-c2", "--repeat=1", "--wal-autocheckpoint=50")
    with small_disk(tmp_path, 1500) as place:
        # The proof opens the database, which takes the space of a -shm file.
        code, errors, report = struck(place, "measuring", 1, *options, *size, spare_bytes=2 * SHM_BYTES)
    (run,) = report.runs
    assert code == 4
    assert FULL in errors
    assert run.verdict.status == "ok", run.verdict.checks[0].note


@pytest.mark.thorough
@fault(
    "resources", "the disk full while the data is verified", "exit 4; the verdict is unknown, never failed"
)
def test_full_disk_at_verifying_fails_no_check_and_keeps_the_figures(tmp_path: Path) -> None:
    options = ("keys", "--schema=no-key", "--id-type=int", "-c1", "--repeat=1", "--quiet")
    with small_disk(tmp_path, 12_000) as place:
        code, errors, report = struck(place, "verifying", 1, *options)
    (run,) = report.runs
    (trial,) = run.trials
    assert code == 4
    assert "the data could not be verified: " in errors
    assert (run.verdict.status, run.valid) == ("unknown", ())
    assert trial.transactions > 0


@fault(
    "resources",
    "the disk full while the report is saved",
    "exit 4; the old report stays whole, the new one is in the temporary folder",
)
def test_full_disk_at_saving_keeps_the_report_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    databases = tmp_path / "databases"
    databases.mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with small_disk(tmp_path, 100) as disk:
        options = (*KV, "--driver", "dry", "-c", "1,2", "-o", str(disk / "report.json"))
        with Held(databases, "preparing", *options, count=2) as command:
            fill(disk)
            code, _, errors = command.finish()
        old = saved_report(disk)
        assert sorted(path.name for path in disk.iterdir()) == [BALLAST, "report.json"]
    (rescued,) = tmp_path.glob("sqlstress-report-*.json")
    assert code == 4
    assert errors == (
        f"Error: cannot write {disk}/report.json: No space left on device. Choose another file with -o. "
        f"The report is in {rescued}.\n"
    )
    rescued.rename(tmp_path / "report.json")
    assert (len(old.runs), len(saved_report(tmp_path).runs)) == (1, 2)
    assert left(databases) == []


@LIMITED_FILES
@pytest.mark.thorough
@posix
@pytest.mark.parametrize(
    "options",
    [
        (*KV, "--key-space", "30000", "--value-size", "40", "--journal-mode", "delete", "--driver", "apsw"),
        ("methods", "--phase", "query", "--scale", "10", "--method", "1b1", "--quiet"),
        ("keys", "--schema", "no-key", "--id-type", "int", "--users", "60000", "--quiet"),
    ],
    ids=lambda options: options[0],
)
def test_file_size_limit_at_preloading_is_reported(tmp_path: Path, options: tuple[str, ...]) -> None:
    code, output, errors = sqlstress(tmp_path, *options, program=bounded("-f 1000"))
    assert (code, output, len(errors.splitlines())) == (4, "", 1)
    assert errors.startswith("Error: cannot use ")
    assert TOO_LARGE in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
@LIMITED_FILES
@posix
@pytest.mark.parametrize(
    "options",
    [
        ("kv", "-c2", "--key-space=100", "--ops=1000", "--read-ratio=0", "--wal-autocheckpoint=0", "--quiet"),
        ("methods", "--phase=insert", "--scale=50000", "--method=BLK", "--driver=sqlite3", *ONCE),
        ("keys", "--schema=no-key", "--id-type=int", "--users=500", "--items=1000", *ONCE),
    ],
    ids=lambda options: options[0],
)
def test_file_size_limit_in_the_window_is_reported(tmp_path: Path, options: tuple[str, ...]) -> None:
    arguments = (*options, "-o", "report.json")
    code, output, errors = sqlstress(tmp_path, *arguments, program=bounded("-f 1000"))
    report = saved_report(tmp_path)
    assert (code, output) == (4, "")
    assert TOO_LARGE in errors
    assert [run.valid for run in report.runs if run.error] != []
    assert "failed" not in {run.verdict.status for run in report.runs}
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
