"""Tests of what is said of checkpoints beside the load."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.experiments.kv.experiment import Checkpointing, Load
from sqlstress.experiments.kv.show_wal import wal_of
from sqlstress.report import Run
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINT_TIME,
    CHECKPOINTS,
    LARGEST_WAL,
    LONGEST_CHECKPOINT,
    STUCK_CHECKPOINTS,
    Series,
)
from tests.analysis.hand_made import findings, run, trial

MS = 1_000_000
MB = 1_000_000
NEVER = Settings(wal_autocheckpoint=0)
CODES = {"checkpoint-starvation", "busy-checkpoints", "large-wal"}
CALM: dict[str, tuple[int, ...]] = {
    CHECKPOINTS: (1, 1, 1),
    BUSY_CHECKPOINTS: (0, 0, 0),
    STUCK_CHECKPOINTS: (0, 1, 2),
    CHECKPOINT_TIME: (2 * MS, 4 * MS, 14 * MS),
    LONGEST_CHECKPOINT: (2 * MS, 4 * MS, 14 * MS),
    LARGEST_WAL: (1 * MB, 3 * MB, 16 * MB),
}


def beside(
    mode: str = "passive",
    *,
    pinned: bool = False,
    settings: Settings = NEVER,
    page_size: str = "4096",
    processes: int = 2,
    seen: dict[str, tuple[int, ...]] | None = None,
    **figures: tuple[int, ...],
) -> Run:
    """Return a run of two seconds with these figures beside it; the others are calm."""
    case = Case(settings=settings, spec=Load(checkpointing=Checkpointing(mode, 0.02, pinned)))
    told = (CALM if seen is None else seen) | {
        name.replace("_", " "): values for name, values in figures.items()
    }
    series = tuple(Series(name, "", values, tuple(range(len(values)))) for name, values in told.items())
    return run(1, processes, trial(seconds=2.0, series=series, effective={"page_size": page_size}), case=case)


def told(*runs: Run) -> dict[str, str]:
    return {code: text for code, text in findings(*runs).items() if code in CODES}


def test_the_figures_are_those_of_the_window() -> None:
    one = beside()
    wal = wal_of(one.case, one.trials[0])
    assert wal is not None
    assert (wal.checkpoints, wal.busy, wal.stuck) == (3, 0, 2)
    assert wal.share == pytest.approx(0.01)
    assert (wal.longest_ns, wal.largest_bytes) == (14 * MS, 16 * MB)
    assert wal.limit_bytes == 4 * 1000 * 4096


def test_calm_checkpoints_say_nothing() -> None:
    assert told(beside("passive"), beside("passive", processes=8)) == {}


def test_without_anything_beside_the_load_nothing_is_said() -> None:
    assert wal_of(Case(), beside().trials[0]) is None
    assert told(run(1, 2)) == {}


def test_three_checkpoints_in_a_row_that_got_no_further_are_starvation() -> None:
    found = told(beside(stuck_checkpoints_in_a_row=(1, 2, 3, 0)))
    assert found.keys() == {"checkpoint-starvation"}
    assert found["checkpoint-starvation"].startswith(
        "Checkpoints starved at 2 processes on 1 file: up to 3 in a row left frames in the WAL and got no "
        "further"
    )
    assert "find the long reader" in found["checkpoint-starvation"]


def test_the_pinned_reader_is_named_as_the_one_who_starves_them() -> None:
    found = told(beside(pinned=True, stuck_checkpoints_in_a_row=(40,)))
    assert "The pinned reader holds its snapshot" in found["checkpoint-starvation"]


@pytest.mark.parametrize("mode", ["restart", "truncate"])
def test_a_busy_checkpoint_is_told_with_what_it_costs(mode: str) -> None:
    found = told(beside(mode, busy_checkpoints=(0, 1, 1), longest_checkpoint=(1_000 * MS,)), beside(mode))
    assert found.keys() == {"busy-checkpoints"}
    assert found["busy-checkpoints"].startswith(
        f"Of 3 {mode.upper()} checkpoints 2 answered busy at 2 processes on 1 file, after up to 1.0 s: "
    )


def test_a_passive_checkpoint_that_is_busy_costs_nobody_anything() -> None:
    assert told(beside("passive", busy_checkpoints=(1,))) == {}


LIMIT = 4 * 1000 * 4096


@pytest.mark.parametrize(
    ("largest", "settings", "page_size", "is_large"),
    [
        (LIMIT, Settings(wal_autocheckpoint=0), "4096", False),
        (LIMIT + 1, Settings(wal_autocheckpoint=0), "4096", True),
        (LIMIT + 1, Settings(), "4096", True),
        (LIMIT + 1, Settings(wal_autocheckpoint=2000), "4096", False),
        (LIMIT // 10 + 1, Settings(wal_autocheckpoint=100), "4096", True),
        (LIMIT + 1, Settings(), "8192", False),
        (LIMIT + 1, Settings(), "nonsense", True),
    ],
)
def test_a_wal_is_large_over_four_times_what_sqlite_would_let_it_become(
    largest: int, settings: Settings, page_size: str, is_large: bool
) -> None:
    one = beside(settings=settings, page_size=page_size, largest_WAL=(5, largest, 3))
    assert ("large-wal" in told(one)) == is_large


SNAPSHOT = "It can't begin anew while a snapshot stays open: find the long reader."
OFTEN = "Checkpoint more often (--checkpoint-interval)."
SMALL = "Only a TRUNCATE checkpoint or PRAGMA journal_size_limit makes the file small again."
PASSIVE = "After PASSIVE it begins anew only if nobody has written meanwhile: use RESTART."


@pytest.mark.parametrize(
    ("one", "remedy"),
    [
        (beside("passive", largest_WAL=(900 * MB,)), f"{PASSIVE} {SMALL}"),
        (beside("restart", largest_WAL=(900 * MB,)), f"{OFTEN} {SMALL}"),
        (beside("truncate", largest_WAL=(900 * MB,)), OFTEN),
        (beside("none", pinned=True, largest_WAL=(900 * MB,)), f"{SNAPSHOT} {SMALL}"),
        (
            beside("passive", largest_WAL=(900 * MB,), stuck_checkpoints_in_a_row=(9,)),
            f"{SNAPSHOT} {SMALL}",
        ),
    ],
    ids=["passive", "restart", "truncate", "pinned", "starved"],
)
def test_what_to_do_about_a_large_wal_fits_what_made_it_large(one: Run, remedy: str) -> None:
    assert told(one)["large-wal"] == (
        "A WAL grew to 900 MB at 2 processes on 1 file: over 4 times the 1,000 pages at which SQLite would "
        f"checkpoint by itself. {remedy}"
    )


def test_a_trial_that_is_not_valid_says_nothing() -> None:
    one = beside(largest_WAL=(900 * MB,))
    failed = replace(one, trials=(replace(one.trials[0], error="the checkpointer was killed by SIGKILL"),))
    assert told(failed) == {}


@pytest.mark.parametrize("seen", [{}, dict.fromkeys(CALM, ())], ids=["no series", "empty series"])
def test_missing_figures_say_nothing(seen: dict[str, tuple[int, ...]]) -> None:
    assert told(beside("restart", seen=seen)) == {}


def test_the_figures_of_a_worker_are_not_the_databases() -> None:
    one = beside(seen={})
    series = (Series(LARGEST_WAL, "bytes", (900 * MB,), worker=1),)
    assert told(replace(one, trials=(replace(one.trials[0], series=series),))) == {}
