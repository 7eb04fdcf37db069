"""Large trials work and are verified."""

from pathlib import Path

import pytest

from sqlstress.report import Trial
from tests.engine.processes import saved_report, sqlstress
from tests.rows import fault, thorough

COMMON = ("--synchronous", "off", "--quiet", "-o", "report.json")


def measured(place: Path, *arguments: str) -> Trial:
    """Run a command that must succeed; return its trial."""
    code, _, errors = sqlstress(place, "kv", *arguments, *COMMON)
    assert (code, errors) == (0, "")
    assert [path.name for path in place.iterdir()] == ["report.json"]
    ((trial,),) = (run.trials for run in saved_report(place).runs)
    assert trial.verdict.status == "ok"
    return trial


large = fault("scale", "64 workers; 256 workers; 1,000 buckets; 10 million keys", "all are used and verified")


@large
@pytest.mark.parametrize("workers", [thorough(64), pytest.param(256, marks=pytest.mark.long)])
def test_many_workers_all_work(tmp_path: Path, workers: int) -> None:
    trial = measured(tmp_path, "-c", f"{workers}", "--ops", "20", "--key-space", f"{8 * workers}")
    assert [worker.transactions for worker in trial.workers] == [20] * workers


@large
@pytest.mark.long
def test_thousand_files_are_used_and_verified(tmp_path: Path) -> None:
    trial = measured(
        tmp_path, "-c", "4", "-b", "1000", "--key-space", "100000", "--duration", "1s", "--repeat", "1"
    )
    assert trial.verdict.checks[1].checked == 1000
    assert trial.transactions > 0


@large
@pytest.mark.long
def test_ten_million_keys_are_preloaded_and_verified(tmp_path: Path) -> None:
    trial = measured(tmp_path, "-c", "1", "--key-space", "10000000", "--duration", "1s", "--repeat", "1")
    (last_write,) = (check for check in trial.verdict.checks if check.name == "last write")
    assert last_write.checked == 10_000_000
