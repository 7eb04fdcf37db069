"""Findings of methods, keys and cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.analysis.group import ERROR, group_runs
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.experiments.classics import sentences as sentence
from sqlstress.experiments.classics import show as declared
from sqlstress.experiments.classics.compared import DONE, FAILED, LIMIT, TIMEOUT, WRONG
from sqlstress.experiments.classics.sentences import Fastest
from sqlstress.experiments.classics.show import METHODS, SPACE_COLUMNS, checkpoints_in, times_of, total_ns
from sqlstress.experiments.classics.spec import ID_TYPES
from sqlstress.report import Check, Run, Space, TreeSpace, Verdict
from sqlstress.show.blocks import Column
from sqlstress.show.case_table import Row
from sqlstress.statistics.series import Series
from tests.cycles_report import (
    CYCLES,
    NO_FRAMES,
    ROW_BY_ROW,
    in_ms,
    one,
    published_settings,
    series_of,
    spiked,
    trial,
    wal,
)
from tests.cycles_report import run as cycles_run
from tests.example_keys import keys_report
from tests.example_keys import run as keys_run
from tests.example_methods import methods_report
from tests.example_methods import run as methods_run
from tests.several import facts, findings, noisy, sentences, several

# Methods.


WRONG_DATA = Verdict((Check("samples", "failed", 5, 1, ("row 3 should not be there",)),))


def insert(tricks: str, rate: float | str, scale: int = 100, **fields: Any) -> Run:
    return methods_run("insert", tricks, scale, rate, **fields)


def leads(*runs: Run, noise: float | None = 0.01) -> dict[str, tuple[Fastest, ...]]:
    """Return the fastest cases of each part of the table."""
    return {
        each.facts["part"]: each.facts["leads"] for each in findings(*runs, noise=noise).get("fastest", ())
    }


def names(lead: Fastest) -> set[str]:
    return {*lead.names}


def test_method_without_a_name_in_an_edited_report_is_compared() -> None:
    nameless = insert("1b1", 500)
    case = replace(nameless.case, spec=replace(nameless.case.spec, name=""))
    known = leads(replace(nameless, case=case), insert("BLK", 100))
    assert [[names(lead) for lead in found] for found in known.values()] == [[{""}]]


def test_example_names_the_fastest_methods() -> None:
    runs = methods_report().runs
    assert facts(*runs, noise=0.01).keys() == {"fastest", "method-limit"}
    known = leads(*runs)
    assert [names(lead) for lead in known["insert with peewee"]] == [{"JSON"}]
    for phase in ("allocate", "query"):
        assert [(names(lead), lead.without) for lead in known[f"{phase} with peewee"]] == [
            ({"SPC"}, ""),
            ({"JSON"}, "SPC"),
        ]
    ratio = known["insert with peewee"][0].ratio
    assert ratio and ratio.estimate == pytest.approx(375_267 / 181.8)
    refused = [each.facts["instead"] for each in findings(*runs)["method-limit"]]
    assert refused == ["BLK/n or JSON", "JSON"]


def test_methods_that_noise_hides_are_not_ranked() -> None:
    runs = [insert("1b1", 100.0), insert("1b1 + WAL", 110.0), insert("1b1 + TSC", 9e3), insert("JSON", 9.5e3)]
    ((lead,),) = leads(*runs, noise=0.2).values()
    assert (names(lead), lead.unclear) == ({"1b1 + TSC", "JSON"}, True)
    known = facts(*runs, noise=0.2)
    assert known["cannot-tell"]["noise"]


def test_methods_that_hardly_differ_are_about_equal() -> None:
    runs = [insert("1b1", 100.0), insert("1b1 + WAL", 101.0), insert("1b1 + TSC", 100.5)]
    ((lead,),) = leads(*runs, noise=0.004).values()
    assert (len(lead.names), lead.equal, lead.unclear, lead.ratio) == (3, True, False, None)


def test_methods_are_compared_at_their_fastest_scales() -> None:
    runs = [
        *(insert("BLK", rate, scale) for scale, rate in ((100, 1000.0), (10_000, 9000.0))),
        *(insert("JSON", rate, scale) for scale, rate in ((100, 100.0), (10_000, 9500.0))),
        *(insert("1b1", rate, scale) for scale, rate in ((100, 50.0), (1000, "timeout"))),
        insert("1b1 + TSC", 500.0),
    ]
    ((lead,),) = leads(*runs, noise=0.1).values()
    assert (names(lead), lead.unclear) == ({"BLK", "JSON"}, True)
    ((lead,),) = leads(*runs, noise=0.01).values()
    assert lead.ratio and lead.ratio.estimate == pytest.approx(190.0)


def test_cell_with_fewer_passes_does_not_affect_conclusions() -> None:
    runs = [several(insert(tricks, rate)) for tricks, rate in (("1b1", 100.0), ("JSON", 900.0))]
    short = several(insert("BLK", 5000.0))
    ((lead,),) = leads(*runs, replace(short, trials=short.trials[:2]), noise=None).values()
    assert names(lead) == {"JSON"}


def test_single_case_is_not_compared() -> None:
    assert facts(insert("JSON", 1000.0), noise=0.01) == {}
    assert facts(insert("1b1", "timeout")) == {}


def test_limit_is_reported_once_for_all_its_drivers_and_journal_modes() -> None:
    series = (("BLK", "peewee"), ("BLK + WAL", "peewee"), ("BLK", "sqlite3"))
    known = findings(
        *(methods_run("query", tricks, 100, "limit", driver=driver) for tricks, driver in series)
    )
    (limit,) = known["method-limit"]
    assert limit.facts["drivers"] == ("peewee", "sqlite3")


def test_skipped_run_has_the_outcome_of_a_smaller_scale() -> None:
    skipped = insert("1b1", "skipped")
    assert METHODS.outcome(skipped) == LIMIT
    assert METHODS.outcome(replace(skipped, skipped="1b1 timed out at 10 already")) == TIMEOUT
    assert METHODS.outcome(replace(skipped, skipped="the run was stopped")) == FAILED


TRIAL = insert("1b1", 1000.0, 5).trials[0]


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, DONE),
        ({"error": "worker 1 was killed", "trials": ()}, FAILED),
        ({"trials": (replace(TRIAL, verdict=WRONG_DATA),)}, WRONG),
        ({"trials": (replace(TRIAL, error="late"),)}, FAILED),
        ({"trials": (replace(TRIAL, rows_per_s=float("nan")),)}, FAILED),
        ({"trials": (replace(TRIAL, rows_per_s=0.0),)}, FAILED),
        ({"trials": (replace(TRIAL, outcome="of another version"),)}, FAILED),
        # One trial of several that timed out makes the run a time-out.
        ({"trials": (TRIAL, insert("1b1", "timeout").trials[0], TRIAL)}, TIMEOUT),
    ],
    ids=["done", "killed", "wrong", "invalid", "nan", "zero", "unknown", "late"],
)
def test_invalid_figures_count_as_failures(change: dict[str, Any], outcome: str) -> None:
    changed = replace(insert("1b1", 1000.0), **change)
    assert METHODS.outcome(changed) == outcome
    assert "fastest" not in facts(changed)


# Keys.


WRONG_PICKS = Verdict((Check("picks", "failed", 5, 1, ("user 1's pick of item 2 is gone",)),))


def test_example_names_the_fastest_types_of_each_schema() -> None:
    known = leads(*keys_report().runs)
    assert known.keys() == {"id-rowid", "no-key"}
    (fastest, others) = known["id-rowid"]
    assert (names(fastest), names(others), others.without) == ({"int"}, {"uuid7"}, "int")
    assert fastest.ratio and fastest.ratio.estimate == pytest.approx(8.4 / 2.1)
    assert "cannot-tell" not in facts(*keys_report().runs, noise=0.01)


def test_equal_types_are_rarely_reported_as_different() -> None:
    draw, wrong, count = Random(5), 0, 60
    for _ in range(count):
        runs = [noisy(keys_run("no-key", id_type, 3.0), 0.15, draw) for id_type in ID_TYPES]
        wrong += any(lead.ratio and not lead.equal for lead in leads(*runs, noise=None)["no-key"])
    assert wrong <= 2 * ERROR * count


def test_cases_with_the_most_processes_are_compared() -> None:
    runs = [
        keys_run("id-rowid", "uuid4", 8.0),
        keys_run("id-rowid", "ulid", 4.0),
        *(keys_run("id-rowid", id_type, 1.0, concurrency=1) for id_type in ("uuid4", "ulid")),
    ]
    (lead,) = leads(*runs)["id-rowid"]
    assert lead.ratio and lead.ratio.estimate == pytest.approx(2.0)


def test_wrong_data_is_reported_and_excluded_from_conclusions() -> None:
    known = sentences(keys_run("no-key", "uuid4"), keys_run("no-key", "ulid", verdict=WRONG_PICKS))
    assert "picks, 1 of 5 wrong (user 1's pick of item 2 is gone)" in known["data-wrong"]
    assert "fastest" not in known
    assert (
        len(group_runs((keys_run("no-key", "uuid4"), keys_run("no-key", "ulid", users=2000, picks=200)))) == 2
    )


@pytest.mark.parametrize("column", SPACE_COLUMNS, ids=lambda column: column.csv)
@pytest.mark.parametrize(
    "space",
    [
        Space(0, 4096, 0, 0, ()),
        Space(0, 4096, 1, 0, (TreeSpace("other", "other", False, 0, 1, 0),)),
        Space(0, 0, 0, 0, (TreeSpace("picks", "picks", False, 0, 0, 0),)),
        None,
    ],
    ids=["nothing", "no picks", "no pages", "not measured"],
)
def test_inconsistent_space_has_no_figure(space: Space | None, column: Column[Row]) -> None:
    (trial,) = keys_run("no-key", "int", space=space).trials
    assert not column.value(trial)


# Cycles.


PUBLISHED = facts(*published_settings())


def test_fastest_of_the_completed_settings_are_named() -> None:
    ((lead,),) = leads(*published_settings(), noise=0.005).values()
    assert (lead.names, lead.equal) == (("wal-tx-off", "wal-tx"), True)
    known = facts(*published_settings(), noise=0.005)
    assert "cannot-tell" not in known
    assert "fastest" not in PUBLISHED
    assert PUBLISHED["cannot-tell"]["advice"]


def test_settings_that_noise_hides_are_not_ranked() -> None:
    ((lead,),) = leads(*published_settings()[1:], noise=0.3).values()
    assert names(lead) == {"wal-tx-off", "wal-tx", "delete-tx"}
    assert lead.unclear
    assert facts(*published_settings()[1:], noise=0.3)["cannot-tell"]["noise"]


def test_setting_with_a_timed_out_pass_is_not_compared() -> None:
    alone = several(cycles_run("wal", "none", trial(in_ms(STATEMENTS, [1.0] * 5))))
    late = replace(alone.trials[0], outcome="timeout", series=())
    assert declared.CYCLES.outcome(alone) == DONE
    assert declared.CYCLES.outcome(replace(alone, trials=(late, *alone.trials[1:]))) == TIMEOUT


def checkpoint_facts(spikes: dict[int, float], *series: Series) -> Mapping[str, Any]:
    """Return the facts of the finding on checkpoints; empty if there is none."""
    measured = trial(in_ms(STATEMENTS, spiked(14.0, 20.0, spikes)), *series)
    return facts(cycles_run("wal", "none", measured)).get("checkpoint", {})


def restarted_wal(every: int, frames: int = 11) -> tuple[Series, ...]:
    """Return the series of a WAL that restarts after each `every` cycles."""
    cycles = range(1, CYCLES + 1)
    restarts = [cycle // every for cycle in cycles]
    return wal([frames * (cycle % every) for cycle in cycles], NO_FRAMES, restarts)


@pytest.mark.parametrize(("spikes", "slowest"), [({91: 4500.0}, 91), ({37: 99.0, 91: 20.0}, 37)])
def test_spike_is_a_checkpoint_only_in_the_cycle_of_a_checkpoint(
    spikes: dict[int, float], slowest: int
) -> None:
    known = checkpoint_facts(spikes, *ROW_BY_ROW)
    assert (known["cycles"], known["slowest"]) == ((91,), slowest)
    text = sentence.checkpoint(**known)
    assert "a checkpoint was seen in cycle 91. The slowest cycle" in text
    assert text.endswith("): a checkpoint." if slowest == 91 else "): not a checkpoint.")


def test_missing_and_repeated_checkpoints_are_reported() -> None:
    known = checkpoint_facts({37: 99.0}, *wal(range(11, 1111, 11), NO_FRAMES, NO_FRAMES))
    assert sentence.checkpoint(**known).startswith("wal: no checkpoint was seen. The slowest cycle")
    assert checkpoint_facts({}, *restarted_wal(30))["cycles"] == (30, 60, 90)


def test_transaction_over_the_run_has_no_finding_on_checkpoints() -> None:
    measured = trial(in_ms(STATEMENTS, spiked(14.0, 20.0, {})), *ROW_BY_ROW)
    assert "checkpoint" not in facts(cycles_run("wal", "run", measured))


def test_trial_without_figures_has_no_findings_on_figures() -> None:
    empty = cycles_run("wal", "none", trial(latency={"commit": one(5)}))
    assert facts(empty, cycles_run("delete", "none")).keys() == {"case-failed"}


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


def test_total_includes_begin_and_commit() -> None:
    done = trial(series_of(STATEMENTS, [5, 6]), series_of(BEGIN_AND_COMMIT, [100, 7]))
    times = times_of(done)
    assert times
    assert (times.cycles, sum(times.bounds), total_ns(done)) == ((5, 6), 107, 118)


def test_first_cycle_is_no_spike() -> None:
    slowest = [times_of(trial(series_of(STATEMENTS, cycles))) for cycles in ([1000, 3, 4], [1000])]
    assert [times and times.slowest for times in slowest] == [(3, 4), None]


def test_no_figures_are_shown_for_trials_without_cycles() -> None:
    assert times_of(trial()) is None
    assert times_of(trial(series_of(STATEMENTS, []))) is None
