"""What is said of the experiment with cycles."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.group import group_runs
from sqlstress.experiments.cycles.cycle_findings import rates
from sqlstress.experiments.cycles.experiment import Cycling
from sqlstress.experiments.cycles.moves import STATEMENTS
from sqlstress.report import Latency, Run
from sqlstress.show.phrases import phrase
from sqlstress.statistics.series import Series
from tests.cycles_report import (
    CYCLES,
    NO_FRAMES,
    ROW_BY_ROW,
    in_ms,
    one,
    published_settings,
    run,
    spiked,
    trial,
    wal,
)
from tests.several import several


def told(*runs: Run) -> dict[str, str]:
    (group,) = group_runs(runs)
    return {finding.code: phrase(finding) for finding in advise_group(group)}


PUBLISHED = told(*published_settings())
OVER_PASSES = told(*(several(one, 0.005) for one in published_settings()))


def test_a_setting_that_was_given_up_is_told_with_what_was_done() -> None:
    assert PUBLISHED["timeout"] == "TIMEOUT at delete after 60 s: 2 of 100 cycles were done."


def test_the_fastest_and_the_slowest_of_those_that_came_to_their_end_are_compared() -> None:
    assert OVER_PASSES["fastest"] == (
        "Fastest: wal-tx-off and wal-tx, about 2.3 s in all, which are about equal; slowest: wal, 7.1 s, "
        "3.1 times (3.0 to 3.2) as much."
    )
    assert "cannot-tell" not in OVER_PASSES


def test_of_single_trials_only_what_was_measured_is_told_and_what_it_is_worth() -> None:
    assert PUBLISHED["took-least"] == (
        "Took least: wal-tx-off, 2.3 s in all, and 21 ms for the closing checkpoint; most: wal, 7.1 s, "
        "3.1 times as much."
    )
    assert PUBLISHED["cannot-tell"] == "So few trials tell no difference from noise: measure with --repeat 5."


def test_settings_that_noise_hides_are_neither_the_fastest_nor_the_slowest() -> None:
    found = told(*(several(one, 0.3) for one in published_settings()[1:]))
    assert found["fastest"] == (
        "Fastest: wal-tx-off, wal-tx, delete-tx and wal, about 2.3 s in all, which can't be told apart."
    )
    assert found["checkpoints-off"].startswith(
        "Without checkpoints (wal-tx-off): 2.3 s, against 2.3 s in wal-tx, which can't be told apart."
    )
    assert found["cannot-tell"].startswith("Why something can't be told: 5 passes are too noisy")


def test_a_pass_that_was_given_up_is_none_that_is_compared() -> None:
    alone = several(run("wal", "none", trial(in_ms(STATEMENTS, [1.0] * 5))))
    late = replace(alone.trials[0], outcome="timeout", series=())
    assert rates(replace(alone, trials=(late, *alone.trials[1:]))).keys() == {1, 2, 3, 4}


def test_what_the_sum_leaves_out_of_the_total_is_told() -> None:
    assert PUBLISHED["beyond-the-sum"].startswith(
        "What the sum of the statements leaves out of the total is BEGIN and COMMIT: 2.6 s of 3.5 s (73%; "
        "one COMMIT) in delete-tx, 1.4 s of 2.3 s (60%; one COMMIT) in wal-tx and 1.4 s of"
    )


def test_a_transaction_for_each_cycle_has_as_many_commits() -> None:
    bounds = [20.0] * CYCLES
    commits = Latency(CYCLES, 2e7, 2e7, 2e7, None, 20_000_000)
    measured = trial(
        in_ms(STATEMENTS, [1.0] * CYCLES), in_ms("BEGIN and COMMIT", bounds), latency={"commit": commits}
    )
    assert (
        "2.0 s of 2.1 s (95%; 100 COMMITs) in delete-cycle."
        in told(run("delete", "cycle", measured))["beyond-the-sum"]
    )


def test_turning_off_checkpoints_that_were_never_due_could_change_nothing() -> None:
    assert OVER_PASSES["checkpoints-off"] == (
        "Without checkpoints (wal-tx-off): 2.3 s, against 2.3 s in wal-tx, about as much. It could change "
        "nothing but the noise: the WAL never had the 1,000 frames at which one is due."
    )
    assert PUBLISHED["checkpoints-off"].startswith(
        "Without checkpoints (wal-tx-off): 2.3 s, against 2.3 s in wal-tx. It could change nothing but"
    )


def test_turning_off_checkpoints_is_told_from_noise_where_it_can_be() -> None:
    with_them, without = (
        several(run("wal", "none", trial(in_ms(STATEMENTS, [ms] * CYCLES), *ROW_BY_ROW), off=off))
        for ms, off in ((14.0, False), (7.0, True))
    )
    assert re.fullmatch(
        r"Without checkpoints \(wal-off\): 700 ms, against 1.4 s in wal, 0\.50 times \(0\.4\d to 0\.5\d\) as "
        r"much\.",
        told(with_them, without)["checkpoints-off"],
    )


def test_turning_off_checkpoints_that_there_were_is_told_without_that_excuse() -> None:
    with_them = run("wal", "none", trial(in_ms(STATEMENTS, [14.0] * CYCLES), *ROW_BY_ROW))
    without = run(
        "wal",
        "none",
        trial(in_ms(STATEMENTS, [13.0] * CYCLES), *wal(NO_FRAMES, NO_FRAMES, NO_FRAMES)),
        off=True,
    )
    assert (
        told(with_them, without)["checkpoints-off"]
        == "Without checkpoints (wal-off): 1.3 s, against 1.4 s in wal."
    )


def test_the_spike_in_the_cycle_of_the_checkpoint_is_the_checkpoint() -> None:
    assert PUBLISHED["checkpoint"] == (
        "wal: with 11 commits a cycle, a frame each, the checkpoint at 1,000 frames was due in cycle 91, "
        "and it was seen there (4.5 s). The spike, the slowest cycle but for the first, is cycle 91 (4.5 s; "
        "median 14 ms): the checkpoint."
    )


def of_wal(spikes: dict[int, float], *series: Series, autocheckpoint: str = "1000", **fields: Any) -> str:
    measured = trial(in_ms(STATEMENTS, spiked(14.0, 20.0, spikes)), *series, autocheckpoint=autocheckpoint)
    return told(run("wal", "none", measured, **fields)).get("checkpoint", "")


def test_a_spike_elsewhere_is_no_checkpoint() -> None:
    text = of_wal({37: 99.0, 91: 20.0}, *ROW_BY_ROW)
    assert "it was seen there (20 ms)" in text
    assert text.endswith(
        "is cycle 37 (99 ms; median 14 ms): no checkpoint (cycle 91 was slower than 97% of the cycles)."
    )


def test_a_checkpoint_that_did_not_come_is_told() -> None:
    text = of_wal({37: 99.0}, *wal(range(11, 1111, 11), NO_FRAMES, NO_FRAMES))
    assert "due in cycle 91, and none was seen. The spike" in text


def test_a_checkpoint_that_came_early_has_its_reason() -> None:
    frames = [22 * (cycle % 45) for cycle in range(1, CYCLES + 1)]
    restarts = [int(cycle >= 45) for cycle in range(1, CYCLES + 1)]
    text = of_wal({45: 99.0}, *wal(frames, NO_FRAMES, restarts))
    assert (
        "was due in cycle 91, and it was seen in cycle 45 (99 ms): commits wrote more than a frame." in text
    )
    assert text.endswith("the checkpoint.")


@pytest.mark.parametrize(
    ("every", "later"), [(40, "then in 80"), (30, "then in 60 and 90"), (10, "then in 20 and 8 later ones")]
)
def test_later_checkpoints_are_told_too(every: int, later: str) -> None:
    frames = [11 * (cycle % every) for cycle in range(1, CYCLES + 1)]
    restarts = [cycle // every for cycle in range(1, CYCLES + 1)]
    text = of_wal({}, *wal(frames, NO_FRAMES, restarts), autocheckpoint=str(11 * every))
    assert f"was due in cycle {every}, and it was seen there (14 ms), {later}. The spike" in text


@pytest.mark.parametrize("answer", ["", "0", "many", "9" * 5000, "-5"])
def test_without_an_autocheckpoint_nothing_is_due(answer: str) -> None:
    assert of_wal({}, *ROW_BY_ROW, autocheckpoint=answer) == ""


def test_a_checkpoint_that_was_not_due_in_so_few_cycles_is_not_spoken_of() -> None:
    assert of_wal({}, *wal(NO_FRAMES, NO_FRAMES, NO_FRAMES), spec=Cycling(cycles=20, rows=5)) == ""


def test_with_several_processes_it_is_told_whose_cycles_they_are() -> None:
    text = of_wal({91: 99.0}, *ROW_BY_ROW, concurrency=2)
    assert text == (
        "wal, 2 processes: with 11 commits a cycle of each of 2 processes in step, a frame each, the "
        "checkpoint at 1,000 frames was due in cycle 46, and it was seen in cycle 91 of process 1 (99 ms). "
        "The spike, the slowest cycle but for the first, is cycle 91 of process 1 (99 ms; median 14 ms): "
        "the checkpoint."
    )


def test_a_process_that_is_behind_the_others_sees_a_checkpoint_early_for_no_other_reason() -> None:
    frames = [22 * (cycle % 20) for cycle in range(1, CYCLES + 1)]
    restarts = [int(cycle >= 20) for cycle in range(1, CYCLES + 1)]
    text = of_wal({}, *wal(frames, NO_FRAMES, restarts), concurrency=2)
    assert "was due in cycle 46, and it was seen in cycle 20 of process 1 (14 ms). The spike" in text


def test_settings_are_compared_at_the_fewest_processes() -> None:
    alone, slower = (run("wal", "none", trial(in_ms(STATEMENTS, [ms] * 5))) for ms in (1.0, 3.0))
    together = replace(alone, case=replace(alone.case, concurrency=4))
    delete = replace(
        slower, case=replace(slower.case, settings=replace(slower.case.settings, journal_mode="delete"))
    )
    assert (
        told(alone, together, delete)["took-least"]
        == "Took least: wal, 5.0 ms in all; most: delete, 15 ms, 3.0 times as much."
    )


def test_a_trial_without_figures_says_nothing() -> None:
    empty = run("wal", "none", trial(latency={"commit": one(5)}))
    assert told(empty, run("delete", "none")) == {
        "case-failed": "Not measured at delete, 1 process: No trial was made."
    }
