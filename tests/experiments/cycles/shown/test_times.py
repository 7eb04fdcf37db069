"""The figures of the experiment with cycles, and where in its series a checkpoint is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.cycles.cycle_findings import checkpoints_in, times_of
from sqlstress.experiments.cycles.moves import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.report import Latency
from tests.cycles_report import run, series_of, trial


def seen(*looks: tuple[int, int, int]) -> list[int]:
    """Return the cycles with a checkpoint, of looks at (frames, checkpointed, restarts)."""
    return list(checkpoints_in(*zip(*looks, strict=True)))


@pytest.mark.parametrize(
    ("looks", "cycles"),
    [
        ([(11, 0, 0), (22, 0, 0), (33, 0, 0)], []),
        # In the middle of a cycle: its last commit has begun the WAL anew already.
        ([(11, 0, 0), (1, 0, 1), (12, 0, 1)], [2]),
        # After a cycle's last commit: the next cycle's first one begins the WAL anew.
        ([(11, 0, 0), (22, 22, 0), (11, 0, 1)], [2]),
        # Somebody still read: it could not copy all frames, and copied the rest later.
        ([(11, 0, 0), (22, 15, 0), (33, 15, 0), (44, 44, 0), (2, 0, 1)], [2, 4]),
        ([(11, 0, 0), (22, 15, 0), (2, 0, 1)], [2, 3]),
        # One at the end of each cycle, and several in each.
        ([(7, 7, 0), (7, 7, 1), (7, 7, 2)], [1, 2, 3]),
        ([(2, 2, 0), (1, 0, 1), (2, 2, 1)], [1, 3]),
    ],
)
def test_a_checkpoint_is_seen_in_the_cycle_in_which_it_was_done(
    looks: list[tuple[int, int, int]], cycles: list[int]
) -> None:
    assert seen(*looks) == cycles


class Wal:
    """A WAL as SQLite's documentation describes it: what a commit and a checkpoint make of the index."""

    def __init__(self) -> None:
        self.frames = self.checkpointed = self.restarts = 0

    def commit(self, checkpoint_at: int) -> bool:
        """Write a frame; return whether a checkpoint followed."""
        if self.frames and self.checkpointed == self.frames:
            self.frames = self.checkpointed = 0
            self.restarts += 1
        self.frames += 1
        if self.frames >= checkpoint_at:
            self.checkpointed = self.frames
            return True
        return False


@given(st.integers(1, 20), st.integers(1, 30), st.integers(1, 60))
def test_every_checkpoint_is_seen_whatever_its_period(commits: int, checkpoint_at: int, cycles: int) -> None:
    wal, looks, done = Wal(), [], []
    for cycle in range(1, cycles + 1):
        if sum(wal.commit(checkpoint_at) for _ in range(commits)):
            done.append(cycle)
        looks.append((wal.frames, wal.checkpointed, wal.restarts))
    if checkpoint_at >= commits:  # several in one cycle may look like none: they are not waited for
        assert seen(*looks) == done
    else:
        assert set(seen(*looks)) <= set(done)


def test_a_cycle_that_has_a_transaction_of_its_own_includes_it() -> None:
    measured = trial(series_of(STATEMENTS, [5, 6]), series_of(BEGIN_AND_COMMIT, [100, 7]))
    of_cycle = times_of(run("wal", "cycle").case, measured)
    of_run = times_of(run("wal", "run").case, measured)
    assert of_cycle
    assert of_run
    assert of_cycle.processes[0].cycles == (105, 13)
    assert of_run.processes[0].cycles == (5, 6)
    assert of_cycle.total == of_run.total == 118
    assert (of_run.statements, of_run.bounds) == (11, 107)


def test_figures_of_several_processes_are_means_and_extremes() -> None:
    measured = trial(series_of(STATEMENTS, [10, 20, 30], 1), series_of(STATEMENTS, [40, 50, 20], 2))
    times = times_of(run("wal", "none").case, measured)
    assert times
    assert (times.total, times.statements, times.bounds) == (85, 85, None)
    assert (times.first, times.median) == (40, 25)
    assert times.slowest
    assert (times.slowest[0], times.slowest[1], times.slowest[2].worker) == (50, 2, 2)
    assert times.pace == (40, 50, 30)


def test_a_first_cycle_is_no_spike() -> None:
    times = times_of(run("wal", "none").case, trial(series_of(STATEMENTS, [1000, 3, 4])))
    assert times
    assert times.slowest
    assert times.slowest[:2] == (4, 3)
    alone = times_of(run("wal", "none").case, trial(series_of(STATEMENTS, [1000])))
    assert alone
    assert alone.slowest is None


def test_the_closing_checkpoint_is_apart() -> None:
    closing = Latency(1, 9.0, 9.0, 9.0, None, 9)
    measured = trial(series_of(STATEMENTS, [1]), latency={"checkpoint": closing})
    times = times_of(run("wal", "none").case, measured)
    assert times
    assert (times.total, times.closing) == (1, 9)


def test_without_a_cycle_there_are_no_figures() -> None:
    case = run("wal", "none").case
    assert times_of(case, trial()) is None
    assert times_of(case, trial(series_of(STATEMENTS, []))) is None
    assert times_of(case, trial(replace(series_of(STATEMENTS, [5]), worker=None))) is None
