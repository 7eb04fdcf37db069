"""The tried programs, if they are installed: the results in their README can be reproduced."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sqlstress
from sqlstress.report import Run
from sqlstress.user_work import AFTER
from tests.pages import ROOT

pytestmark = pytest.mark.usefixtures("brief_runs")

TRIED = ROOT / "examples" / "tried"
PAGE = TRIED / "README.md"
ONCE: dict[str, Any] = {"concurrency": 2, "repeat": 1, "duration": "500ms"}


def run_tried(name: str, library: str, folder: Path) -> Run:
    """Measure a tried program of a library briefly; return its only run."""
    pytest.importorskip(library)
    report = sqlstress.measure(
        "app", file=str(TRIED / f"{name}.py"), directory=folder, max_failed=1.0, **ONCE
    )
    (run,) = report.runs
    (trial,) = run.trials
    assert trial.error is None and trial.transactions > 0
    return run


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "library"),
    [("queue_huey", "huey"), ("queue_lite", "litequeue"), ("queue_persist", "persistqueue")],
)
def test_queue_can_be_tried(name: str, library: str, tmp_path: Path) -> None:
    assert {check.name for check in run_tried(name, library, tmp_path).case.spec.data.checks} >= {
        {
            "huey": "no_task_is_lost",
            "litequeue": "no_message_is_popped_twice",
            "persistqueue": "no_item_is_got_twice",
        }[library]
    }


LIBRARIES = {
    "trials_optuna": "optuna",
    "limiter_pyrate": "pyrate_limiter",
    "queue_simplebroker": "simplebroker",
    "queue_gigq": "gigq",
    "queue_localqueue": "localqueue",
    "queue_django_tasks": "django_tasks_db",
    "queue_django_q2": "django_q",
    "queue_django_db_queue": "django_dbq",
    "cache_lytecache": "lytecache",
    "dict_sqlitekvstore": "sqlitekvstore",
    "dict_kvsqlite": "kvsqlite",
    "dict_tinykv": "tinykv",
    "scheduler_apscheduler": "apscheduler",
    "events_eventsourcing": "eventsourcing",
    "numbers_django_sequences": "sequences",
    "order_django_ordered_model": "ordered_model",
    "tree_django_treebeard": "treebeard",
    "lock_monlite": "monlite",
    "lock_lockmyresource": "lockmyresource",
    "counter_purr": "purr",
    "limiter_tbucket": "tbucket",
    "queue_cairnq": "cairnq",
    "queue_tc_queue": "tc_queue_system",
    "counter_pyekv": "pyekv",
}


@pytest.mark.long
@pytest.mark.parametrize("name", LIBRARIES)
def test_library_can_be_tried(name: str, tmp_path: Path) -> None:
    (trial,) = run_tried(name, LIBRARIES[name], tmp_path).trials
    assert any(check.name == AFTER for check in trial.verdict.checks)


@pytest.fixture
def trac(tmp_path: Path) -> Path:
    """Return an environment of Trac's, made as its manual says."""
    pytest.importorskip("trac")
    command = [sys.executable, "-m", "trac.admin.console", str(tmp_path / "trac")]
    subprocess.run([*command, "initenv", "Project", "sqlite:db/trac.db"], check=True, capture_output=True)
    return tmp_path / "trac"


@pytest.mark.thorough
def test_tickets_can_be_tried_by_its_code_and_by_sql(trac: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = trac / "db" / "trac.db"
    before = database.read_bytes()
    monkeypatch.setenv("TRAC_ENV", str(trac))
    by_code = sqlstress.measure(
        "app", file=str(TRIED / "tickets_trac.py"), database=str(database), directory=trac, **ONCE
    )
    by_sql = sqlstress.measure(
        "sql",
        script=[str(TRIED / "comment.sql"), str(TRIED / "changelog.sql")],
        database=str(database),
        setup=str(TRIED / "tickets.sql"),
        check=[str(TRIED / "comments.sql")],
        directory=trac,
        **ONCE,
    )
    for report in (by_code, by_sql):
        (trial,) = report.runs[0].trials
        assert trial.error is None and trial.transactions > 0
    assert by_sql.ok, by_sql.problems
    assert database.read_bytes() == before


def test_page_names_every_file() -> None:
    text = PAGE.read_text(encoding="utf-8")
    paths = [path for path in TRIED.rglob("*.*") if "__pycache__" not in path.parts and path != PAGE]
    files = [path.relative_to(TRIED) for path in paths]
    folders = [path.parent.as_posix() if path.parent.name else path.name for path in files]
    assert files and [name for name in folders if f"]({name})" not in text] == []
