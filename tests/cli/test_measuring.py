"""Small real measurements through the command line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sqlstress.engine.study import Observer, Progress
from tests.cli.conftest import Cli, assert_refused, saved

SHORT = ("--repeat", "1", "--duration", "50ms", "--warmup", "100ms", "--key-space", "500")


class Log(Observer):
    """Records every call, and the files of the folder at that moment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[str] = []
        self.databases: dict[str, int] = {}
        self.operations = 0

    def progress(self, progress: Progress) -> None:
        if progress.label not in self.told:
            self.told.append(progress.label)

    def phase(self, name: str) -> None:
        self.told.append(name)
        self.databases[name] = len(list(self.folder.glob("sqlstress-*/kv*.db")))

    def tick(self, operations: int) -> None:
        self.operations = operations


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    """Replace the progress bar by a log."""
    log = Log(tmp_path)

    @contextmanager
    def watcher(*_: object) -> Iterator[Log]:
        yield log

    monkeypatch.setattr("sqlstress.cli.measure.watcher", watcher)
    return log


def test_phases_come_in_order(cli: Cli, log: Log, tmp_path: Path) -> None:
    # By number: a worker may come late to a window and begin it again.
    said = cli("-c", "1,2", "-b", "3", "--ops", "20", "--key-space", "500", "--repeat", "2")
    trial = ["preparing", "starting", "measuring", "verifying"]
    assert (said.code, said.err) == (0, "")
    assert log.told == [
        "[pass 1/2] 3 buckets, 1 process", *trial,
        "[pass 1/2] 3 buckets, 2 processes", *trial,
        "[pass 2/2] 3 buckets, 2 processes", *trial,
        "[pass 2/2] 3 buckets, 1 process", *trial,
    ]  # fmt: skip
    # Files are prepared before the workers start, exist until verified, and are restored for the next trial.
    assert log.databases == {"preparing": 3, "starting": 3, "measuring": 3, "verifying": 3}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_observer_gets_the_number_of_operations_during_the_trial(cli: Cli, log: Log) -> None:
    window = ("--duration=500ms", "--warmup=100ms", "--key-space=500")
    cli("-c2", "--driver=dry", "--repeat=1", *window)
    assert log.operations > 0


def test_published_script_counts_pairs(cli: Cli) -> None:
    said = cli("--preset", "classic", "-c", "1,2", "--driver", "dry", "-o", "report.json", expected=0)
    assert "unit: pair" in said.out
    report = saved()
    assert [run.trials[0].transactions for run in report.runs] == [5_000, 10_000]


@pytest.mark.thorough
def test_kept_databases_are_in_a_folder_per_case(cli: Cli, tmp_path: Path) -> None:
    said = cli("-c", "1,2", "-b", "1,2", "--keep", *SHORT)
    (folder,) = tmp_path.iterdir()
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith(f"The databases are kept in {folder.name}.\n")
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.db")) == [
        "case-1-1-bucket-1-process/kv.db",
        "case-2-1-bucket-2-processes/kv.db",
        "case-3-2-buckets-1-process/kv_0.db",
        "case-3-2-buckets-1-process/kv_1.db",
        "case-4-2-buckets-2-processes/kv_0.db",
        "case-4-2-buckets-2-processes/kv_1.db",
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--pragma", "nonsense=1"), "SQLite does not know PRAGMA nonsense"),
        (("--pragma", "temp_store=7"), r"temp_store=7 was not accepted: SQLite answers \w+\. Choose"),
        (("-b20", "--batch=10", "--key-space=40"), "Raise --key-space, or lower --batch or --buckets"),
    ],
    ids=["an unknown pragma", "a value that was not taken", "too few keys for a batch in every file"],
)
def test_refused_setting_is_reported_and_leaves_no_file(
    cli: Cli, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    assert re.search(told, assert_refused(cli(*SHORT, *options)))
    assert list(tmp_path.iterdir()) == []
