"""Folders and files that are forbidden, gone or taken."""

import shutil
import stat
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from sqlstress.report import Run
from tests.engine.processes import saved_report, sqlstress
from tests.faults.commands import EXPERIMENTS, SHORT, Held, last_option_wins, left
from tests.faults.surroundings import is_root, posix, read_only
from tests.rows import fault, thorough

DRY = ("kv", "-c", "1", *SHORT, "--driver", "dry", "--quiet")
KV = ("kv", "-c", "1", *SHORT, "--quiet")


# The folder of the databases


@fault("resources", "a `--dir` that is read-only", "exit 4 before anything is measured")
@posix
@pytest.mark.parametrize(
    "experiment", ["kv", thorough("methods"), thorough("crash"), thorough("app"), thorough("ab")]
)
def test_read_only_folder_is_an_error_of_every_command(tmp_path: Path, experiment: str) -> None:
    with read_only(tmp_path):
        code, output, errors = sqlstress(tmp_path, *EXPERIMENTS.get(experiment, KV))
    why = "Read-only file system" if is_root() else "Permission denied"
    assert (code, output) == (4, "")
    assert errors == (
        f"Error: cannot make a folder for the databases in {tmp_path}: {why}. Choose another --dir.\n"
    )
    assert list(tmp_path.iterdir()) == []


@fault(
    "resources",
    "a `--dir` that is a file, is missing, or has too long a name",
    "exit 2 before anything is measured",
)
@pytest.mark.parametrize(
    ("name", "told"),
    [
        thorough("file", "is a file"),
        thorough("file/below", "cannot make a folder"),
        ("missing", "cannot make a folder" if sys.platform == "win32" else "No such file"),
        thorough("x" * 300, "cannot make a folder"),
        ("missing\nnew\x1b[31m", "cannot make a folder"),
    ],
    ids=["a file", "below a file", "missing", "too long", "odd"],
)
def test_path_that_is_no_folder_is_refused(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    code, output, errors = sqlstress(tmp_path, *KV, "--dir", name, program=last_option_wins())
    assert (code, output) == (2, "")
    assert told in errors
    assert len(errors.splitlines()) <= 2
    assert "\x1b" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.thorough
@fault("resources", "the databases' folder removed between two cases", "exit 4; the case before is kept")
@posix
def test_vanished_folder_fails_its_case(tmp_path: Path) -> None:
    place = tmp_path / "databases"
    place.mkdir()
    report = tmp_path / "report.json"
    with Held(place, "preparing", *KV, "-c", "1,2", "-o", str(report), count=2) as command:
        shutil.rmtree(place)
        code, output, errors = command.finish()
    first, second = saved_report(tmp_path).runs
    assert (code, output, len(errors.splitlines())) == (4, "", 1)
    assert (len(first.valid), second.trials) == (1, ())
    assert "No such file or directory. Check that the current folder still exists." in errors
    assert not place.exists()


@fault("resources", "the databases' folder removed before they are verified", "exit 1; no figures")
@posix
@pytest.mark.parametrize("experiment", ["kv", thorough("keys"), thorough("cycles")])
def test_folder_vanished_before_verification_fails_the_verdict(tmp_path: Path, experiment: str) -> None:
    code, errors, run = vanished(tmp_path, "verifying", experiment)
    assert (code, run.valid, run.verdict.status) == (1, (), "failed")
    assert run.error == "kv.db was deleted while it was measured"
    assert errors.startswith("Error: ")


@fault(
    "resources",
    "the databases' folder removed while they are verified",
    "exit 4: the verdict is unknown; no figures",
)
@posix
@pytest.mark.thorough
@pytest.mark.parametrize("experiment", ["kv", "methods", "ab"])
def test_folder_vanished_during_verification_leaves_the_verdict_open(tmp_path: Path, experiment: str) -> None:
    code, errors, run = vanished(tmp_path, "proving", experiment)
    assert (code, run.valid, run.verdict.status) == (4, (), "unknown")
    assert "the data could not be verified: cannot use kv.db: SQLITE_CANTOPEN: " in errors
    assert len(errors.splitlines()) == 1


def vanished(place: Path, moment: str, experiment: str) -> tuple[int, str, Run]:
    """Remove the folder of the databases at a moment; return exit code, errors and the first run."""
    databases = place / "databases"
    databases.mkdir()
    report = place / "report.json"
    with Held(databases, moment, *EXPERIMENTS.get(experiment, KV), "-o", str(report)) as command:
        shutil.rmtree(databases)
        code, _, errors = command.finish()
    assert not databases.exists()
    return code, errors, saved_report(place).runs[0]


@pytest.mark.thorough
@fault("resources", "a path that is longer than SQLite takes", "exit 4: SQLite's code")
@posix
def test_path_beyond_the_limit_of_sqlite_is_an_error(tmp_path: Path) -> None:
    place = tmp_path.joinpath(*["d" * 100] * 6)
    place.mkdir(parents=True)
    code, output, errors = sqlstress(place, *KV)
    assert (code, output) == (4, "")
    assert "SQLITE_CANTOPEN" in errors
    assert list(place.iterdir()) == []


# The report


@pytest.mark.thorough
@fault("resources", "the report's place lost during the run", "exit 4; the report is in the temporary folder")
@posix
@pytest.mark.parametrize("lost", ["removed", "read-only", "taken"])
def test_report_whose_folder_is_gone_is_kept_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    databases, reports = tmp_path / "databases", tmp_path / "reports"
    for folder in (databases, reports):
        folder.mkdir()
    report = reports / "report.json"
    options = (*DRY, "-c", "1,2", "-o", str(report))
    with ExitStack() as fault, Held(databases, "preparing", *options, count=2) as command:
        if lost == "removed":
            shutil.rmtree(reports)
        elif lost == "read-only":
            fault.enter_context(read_only(reports))
        else:
            report.unlink()
            report.mkdir()
        code, _, errors = command.finish()
    (rescued,) = tmp_path.glob("sqlstress-report-*.json")
    rescued.rename(tmp_path / "report.json")
    assert code == 4
    assert errors.startswith(f"Error: cannot write {report}: ")
    assert errors.endswith(f" The report is in {rescued}.\n")
    assert [run.error for run in saved_report(tmp_path).runs] == [None, None]
    assert left(databases) == []


@pytest.mark.thorough
@fault(
    "resources",
    "a report that exists, with rights of its own",
    "it is replaced as a whole, and keeps its rights",
)
@posix
def test_existing_report_is_replaced_and_stays_private(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text("old", encoding="utf-8")
    report.chmod(0o600)
    with Held(tmp_path, "preparing", *DRY, "-o", "report.json") as command:
        assert report.read_text(encoding="utf-8") == "old"
        code, _, errors = command.finish()
    assert (code, errors) == (0, "")
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert len(saved_report(tmp_path).runs) == 1


@pytest.mark.thorough
@fault(
    "resources", "another sqlstress starts in the folder while the report is saved", "both reports are whole"
)
def test_two_commands_that_save_in_one_folder_do_not_interfere(tmp_path: Path) -> None:
    with Held(tmp_path, "saving", *DRY, "-o", "report.json") as command:
        assert sqlstress(tmp_path, *DRY, "-o", "another.json") == (0, "", "")
        assert command.finish() == (0, "", "")
    assert len(saved_report(tmp_path).runs) == 1
    assert left(tmp_path) == ["another.json", "report.json"]
