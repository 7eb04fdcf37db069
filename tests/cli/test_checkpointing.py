"""Small real measurements with a checkpointer or a pinned reader next to the workers."""

from pathlib import Path

import pytest

from sqlstress.analysis.wal_growth import SNAPSHOT, growth_in_trial
from sqlstress.report import Trial
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINTED_FRAMES,
    CHECKPOINTS,
    LARGEST_WAL,
    STUCK_CHECKPOINTS,
    WAL_FRAMES,
    WAL_SIZE,
)
from tests.cli.conftest import Cli, saved

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = (
    "kv", "-c", "1", "--repeat", "1", "--duration", "500ms", "--warmup", "100ms", "--key-space", "500",
    "--synchronous", "off", "--read-ratio", "0", "--verify", "full", "-o", "report.json",
)  # fmt: skip


def measured(cli: Cli, place: Path, *options: str) -> Trial:
    """Return the trial of a short measurement, whose data is verified."""
    said = cli(*SHORT, *options)
    (run,) = saved().runs
    (trial,) = run.trials
    assert (said.code, said.err, run.error, run.verdict.status) == (0, "", None, "ok")
    assert not list(place.glob("sqlstress-*"))
    return trial


def values(trial: Trial, name: str) -> tuple[int, ...]:
    (found,) = (series for series in trial.series if series.name == name)
    assert found.values
    assert all(0 <= at_ns < 500_000_000 for at_ns in found.times_ns)
    return found.values


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["passive", "restart", "truncate"])
def test_checkpointer_reports_its_checkpoints_and_the_wal(cli: Cli, tmp_path: Path, mode: str) -> None:
    # A process that only writes seldom leaves the lock free, so a checkpointer might not get it in each
    # window.
    options = ("--checkpointer", mode, "--checkpoint-interval", "10ms", "--read-ratio", "0.8")
    trial = measured(cli, tmp_path, *options)
    assert trial.effective["wal_autocheckpoint"] == "0"
    assert sum(values(trial, CHECKPOINTS)) >= 1
    assert max(values(trial, STUCK_CHECKPOINTS)) < 10
    assert values(trial, WAL_SIZE) == values(trial, LARGEST_WAL)
    assert max(values(trial, WAL_FRAMES)) > 0
    if mode == "truncate":
        assert min(values(trial, WAL_SIZE)) < max(values(trial, WAL_SIZE))
    else:
        assert list(values(trial, WAL_SIZE)) == sorted(values(trial, WAL_SIZE))


@pytest.mark.thorough
def test_pinned_reader_starves_passive_checkpoints_that_report_no_busy(cli: Cli, tmp_path: Path) -> None:
    options = ("--checkpointer", "passive", "--checkpoint-interval", "10ms", "--pinned-reader", "-b", "2")
    trial = measured(cli, tmp_path, *options)
    assert max(values(trial, STUCK_CHECKPOINTS)) >= 3
    # A checkpoint that reads the header of the wal-index while a commit rewrites it is busy; the reader
    # causes no busy checkpoint.
    assert sum(values(trial, BUSY_CHECKPOINTS)) <= len(values(trial, BUSY_CHECKPOINTS)) / 10
    assert max(values(trial, CHECKPOINTED_FRAMES)) < 10 < min(values(trial, WAL_FRAMES))
    assert max(values(trial, LARGEST_WAL)) < max(values(trial, WAL_SIZE))


@pytest.mark.thorough
def test_pinned_reader_alone_gets_a_wal_watcher(cli: Cli, tmp_path: Path) -> None:
    trial = measured(cli, tmp_path, "--pinned-reader", "--wal-autocheckpoint", "50")
    assert {series.name for series in trial.series} == {
        WAL_FRAMES,
        CHECKPOINTED_FRAMES,
        WAL_SIZE,
        LARGEST_WAL,
    }
    assert max(values(trial, WAL_FRAMES)) > 200
    assert max(values(trial, CHECKPOINTED_FRAMES)) < 50
    assert trial.wal and growth_in_trial(trial.wal, 50) == SNAPSHOT


@pytest.mark.parametrize(
    "load",
    [
        ("kv",),
        ("sql", f"{EXAMPLES}/transfer/right.sql", "--setup", f"{EXAMPLES}/transfer/schema.sql"),
        ("app", f"{EXAMPLES}/app/bank.py"),
    ],
    ids=lambda load: load[0],
)
def test_use_of_the_wal_is_reported(cli: Cli, load: tuple[str, ...]) -> None:
    said = cli(*load, "-c", "2", "--repeat", "1", "--duration", "200ms", "-o", "report.json")
    ((trial,),) = [run.trials for run in saved().runs]
    assert said.code == 0
    assert trial.wal and trial.wal.most_frames >= trial.wal.frames > 0
    assert trial.wal.largest_bytes >= trial.wal.end_bytes > trial.wal.frames * trial.wal.page_size


@pytest.mark.thorough
def test_fixed_number_of_operations_is_watched_to_its_end(cli: Cli) -> None:
    window = ("--duration", "500ms", "--warmup", "100ms")
    arguments = [word for word in SHORT if word not in window]
    cli(*arguments, "--ops", "2000", "--checkpointer", "restart", "--checkpoint-interval", "1ms")
    (run,) = saved().runs
    (trial,) = run.trials
    assert run.verdict.status == "ok"
    assert {CHECKPOINTS, WAL_SIZE} <= {series.name for series in trial.series if series.values}
