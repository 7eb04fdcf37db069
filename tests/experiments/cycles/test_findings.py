"""Figures of the `cycles` experiment, and the findings about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.experiments.classics.cycles_show import checkpoints_in, rates, times_of
from sqlstress.experiments.classics.spec import Cycling
from sqlstress.report import Run
from sqlstress.statistics.series import Series
from tests.cycles_report import (
    CYCLES,
    NO_FRAMES,
    ROW_BY_ROW,
    in_ms,
    one,
    published_settings,
    run,
    series_of,
    spiked,
    trial,
    wal,
)
from tests.several import facts, sentences, several

PUBLISHED = facts(*published_settings())


def each_cycle(ms: float, *series: Series, journal: str = "wal", **fields: Any) -> Run:
    """Return a run row by row, in which each cycle took `ms`."""
    return run(journal, "none", trial(in_ms(STATEMENTS, [ms] * CYCLES), *series), **fields)


def test_fastest_of_the_completed_settings_are_named() -> None:
    known = facts(*published_settings(), noise=0.005)
    assert (known["fastest"]["settings"], known["fastest"]["equal"]) == (("wal-tx-off", "wal-tx"), True)
    assert "cannot-tell" not in known
    assert "fastest" not in PUBLISHED
    assert PUBLISHED["cannot-tell"]["advice"]


def test_settings_that_noise_hides_are_not_ranked() -> None:
    known = facts(*published_settings()[1:], noise=0.3)
    assert {*known["fastest"]["settings"]} == {"wal-tx-off", "wal-tx", "delete-tx"}
    assert known["fastest"]["unclear"]
    assert known["cannot-tell"]["noise"]


def test_timed_out_pass_is_not_compared() -> None:
    alone = several(run("wal", "none", trial(in_ms(STATEMENTS, [1.0] * 5))))
    late = replace(alone.trials[0], outcome="timeout", series=())
    assert rates(replace(alone, trials=(late, *alone.trials[1:]))).keys() == {1, 2, 3, 4}


def checkpoint_facts(
    spikes: dict[int, float], *series: Series, autocheckpoint: str = "1000", **fields: Any
) -> Mapping[str, Any]:
    """Return the facts of the finding on checkpoints; empty if there is none."""
    measured = trial(in_ms(STATEMENTS, spiked(14.0, 20.0, spikes)), *series, autocheckpoint=autocheckpoint)
    return facts(run("wal", "none", measured, **fields)).get("checkpoint", {})


def restarted_wal(every: int, frames: int = 11, ever: bool = True) -> tuple[Series, ...]:
    """Return the series of a WAL that restarts after each `every` cycles, or only once."""
    cycles = range(1, CYCLES + 1)
    restarts = [cycle // every if ever else int(cycle >= every) for cycle in cycles]
    return wal([frames * (cycle % every) for cycle in cycles], NO_FRAMES, restarts)


def test_spike_is_a_checkpoint_only_in_the_cycle_of_a_checkpoint() -> None:
    known = checkpoint_facts({91: 4500.0}, *ROW_BY_ROW)
    assert (known["due"], known["seen"].cycle, known["spike"], known["is_it"]) == (91, 91, 91, True)
    known = checkpoint_facts({37: 99.0, 91: 20.0}, *ROW_BY_ROW)
    assert (known["seen"].cycle, known["spike"], known["is_it"]) == (91, 37, False)


def test_missing_or_early_checkpoint_is_reported() -> None:
    measured = trial(
        in_ms(STATEMENTS, spiked(14.0, 20.0, {37: 99.0})), *wal(range(11, 1111, 11), NO_FRAMES, NO_FRAMES)
    )
    sentence = sentences(run("wal", "none", measured))["checkpoint"]
    assert "due in cycle 91 (" in sentence and "). None was seen. The slowest cycle" in sentence
    known = checkpoint_facts({45: 99.0}, *restarted_wal(45, 22, ever=False))
    assert (known["seen"].cycle, known["is_it"]) == (45, True)


@pytest.mark.parametrize(("every", "later"), [(40, (80,)), (30, (60, 90)), (10, (20, 30, 40))])
def test_first_later_checkpoints_are_reported(every: int, later: tuple[int, ...]) -> None:
    known = checkpoint_facts({}, *restarted_wal(every), autocheckpoint=str(11 * every))
    assert (known["due"], known["seen"].cycle, known["later"]) == (every, every, later)


@pytest.mark.parametrize("answer", ["", "0", "many", "9" * 5000, "-5"])
def test_no_checkpoint_is_due_without_autocheckpoint_or_enough_cycles(answer: str) -> None:
    assert checkpoint_facts({}, *ROW_BY_ROW, autocheckpoint=answer) == {}
    assert checkpoint_facts({}, *wal(NO_FRAMES, NO_FRAMES, NO_FRAMES), spec=Cycling(cycles=20, rows=5)) == {}


def test_trial_without_figures_has_no_findings_on_figures() -> None:
    empty = run("wal", "none", trial(latency={"commit": one(5)}))
    assert facts(empty, run("delete", "none")).keys() == {"case-failed"}


# Figures, and the cycles in which the series show a checkpoint.


def cycles_with_checkpoint(*looks: tuple[int, int, int]) -> list[int]:
    """Return the cycles with a checkpoint, for samples of (frames, checkpointed, restarts)."""
    return list(checkpoints_in(*zip(*looks, strict=True)))


@pytest.mark.parametrize(
    ("looks", "cycles"),
    [
        ([(11, 0, 0), (22, 0, 0), (33, 0, 0)], []),
        # In the middle of a cycle: its last commit has already restarted the WAL.
        ([(11, 0, 0), (1, 0, 1), (12, 0, 1)], [2]),
        # After a cycle's last commit: the first commit of the next cycle restarts the WAL.
        ([(11, 0, 0), (22, 22, 0), (11, 0, 1)], [2]),
        # A reader was active: the checkpoint left some frames, and a later checkpoint copied them.
        ([(11, 0, 0), (22, 15, 0), (33, 15, 0), (44, 44, 0), (2, 0, 1)], [2, 4]),
        ([(11, 0, 0), (22, 15, 0), (2, 0, 1)], [2, 3]),
        # A checkpoint at the end of each cycle, and several checkpoints in each cycle.
        ([(7, 7, 0), (7, 7, 1), (7, 7, 2)], [1, 2, 3]),
        ([(2, 2, 0), (1, 0, 1), (2, 2, 1)], [1, 3]),
    ],
)
def test_checkpoint_is_seen_in_its_cycle(looks: list[tuple[int, int, int]], cycles: list[int]) -> None:
    assert cycles_with_checkpoint(*looks) == cycles


class Wal:
    """Model of a WAL after SQLite's documentation: effects of a commit and a checkpoint on its index."""

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
def test_checkpoints_of_any_period_are_seen(commits: int, checkpoint_at: int, cycles: int) -> None:
    wal, looks, done = Wal(), [], []
    for cycle in range(1, cycles + 1):
        if sum(wal.commit(checkpoint_at) for _ in range(commits)):
            done.append(cycle)
        looks.append((wal.frames, wal.checkpointed, wal.restarts))
    if checkpoint_at >= commits:  # several checkpoints in one cycle may be invisible in the samples
        assert cycles_with_checkpoint(*looks) == done
    else:
        assert set(cycles_with_checkpoint(*looks)) <= set(done)


def test_cycle_time_includes_its_own_transaction() -> None:
    measured = trial(series_of(STATEMENTS, [5, 6]), series_of(BEGIN_AND_COMMIT, [100, 7]))
    of_cycle = times_of(run("wal", "cycle").case, measured)
    of_run = times_of(run("wal", "run").case, measured)
    assert of_cycle
    assert of_run
    assert of_cycle.cycles == (105, 13)
    assert of_run.cycles == (5, 6)
    assert of_cycle.total == of_run.total == 118
    assert (sum(of_run.statements), sum(of_run.bounds)) == (11, 107)


def test_report_with_several_processes_shows_no_cycles() -> None:
    measured = trial(in_ms(STATEMENTS, spiked(14.0, 20.0, {91: 99.0})), *ROW_BY_ROW)
    together = run("wal", "none", measured, concurrency=2)
    assert times_of(together.case, measured) is None
    assert "checkpoint" not in facts(together)


def test_first_cycle_is_no_spike() -> None:
    slowest = [
        times_of(run("wal", "none").case, trial(series_of(STATEMENTS, cycles)))
        for cycles in ([1000, 3, 4], [1000])
    ]
    assert [times and times.slowest for times in slowest] == [3, None]


def test_no_figures_are_shown_for_trials_without_cycles() -> None:
    case = run("wal", "none").case
    assert times_of(case, trial()) is None
    assert times_of(case, trial(series_of(STATEMENTS, []))) is None
    assert times_of(case, trial(replace(series_of(STATEMENTS, [5]), worker=None))) is None
