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
from sqlstress.experiments.classics.findings import (
    FAILED,
    LIMIT,
    SPACE,
    TIMEOUT,
    WRONG,
    MethodsCells,
    best,
    checkpoints_in,
    cycle_rates,
    space_figure,
    times_of,
)
from sqlstress.experiments.classics.spec import ID_TYPES, Cycling
from sqlstress.report import Check, Run, Space, TreeSpace, Verdict
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


def cells(*runs: Run) -> MethodsCells:
    (group,) = group_runs(runs)
    return MethodsCells(group)


def insert(tricks: str, rate: float | str, scale: int = 100, **fields: Any) -> Run:
    return methods_run("insert", tricks, scale, rate, **fields)


def lead(known: dict[str, Mapping[str, Any]], phase: int = 0, which: str = "fastest") -> Mapping[str, Any]:
    """Return the facts of the fastest methods of a phase."""
    leading: Mapping[str, Any] = getattr(known["methods-fastest"]["phases"][phase], which)._asdict()
    return leading


def test_example_names_the_fastest_methods_and_the_cost_of_others() -> None:
    known = facts(*methods_report().runs, noise=0.01)
    assert known.keys() == {"methods-fastest", "transaction", "wal", "method-limit"}
    assert [lead(known, phase)["methods"] for phase in range(3)] == [("JSON",), ("SPC",), ("SPC",)]
    assert known["methods-fastest"]["phases"][0].others is None
    assert [lead(known, phase, "others")["methods"] for phase in (1, 2)] == [("JSON",), ("JSON",)]
    assert lead(known)["ratio"].estimate == pytest.approx(375_267 / 181.8)
    gains = known["transaction"]["gains"]
    assert [gain.ratio.estimate for gain in gains] == pytest.approx([9515 / 181.8, 3845.6 / 138.7])
    refused = [each.facts["instead"] for each in findings(*methods_report().runs)["method-limit"]]
    assert refused == ["BLK/n or JSON", "VALUES or JSON"]


def test_methods_that_noise_hides_are_not_ranked() -> None:
    runs = [insert("1b1", 100.0), insert("1b1 + WAL", 110.0), insert("1b1 + TSC", 9e3), insert("JSON", 9.5e3)]
    known = facts(*runs, noise=0.2)
    assert (lead(known)["methods"], lead(known)["unclear"]) == (("1b1 + TSC", "JSON"), True)
    assert known["wal"]["unclear"] == ("inserting",)
    assert known["cannot-tell"]["noise"]


def test_methods_that_hardly_differ_are_about_equal() -> None:
    runs = [insert("1b1", 100.0), insert("1b1 + WAL", 101.0), insert("1b1 + TSC", 100.5)]
    known = facts(*runs, noise=0.004)
    assert (len(lead(known)["methods"]), lead(known)["equal"], lead(known)["unclear"]) == (3, True, False)
    assert sentences(*runs, noise=0.004)["wal"].endswith("inserting about as fast.")
    assert "transaction" not in known


def test_series_loses_only_if_it_loses_at_all_scales() -> None:
    runs = [
        *(insert("BLK", rate, scale) for scale, rate in ((100, 1000.0), (10_000, 9000.0))),
        *(insert("JSON", rate, scale) for scale, rate in ((100, 100.0), (10_000, 9500.0))),
    ]
    known = lead(facts(*runs, noise=0.1))
    assert (known["methods"], known["rate"], known["unclear"]) == (("BLK", "JSON"), 9500.0, True)


def test_cell_with_fewer_passes_does_not_affect_conclusions() -> None:
    runs = [several(insert(tricks, rate)) for tricks, rate in (("1b1", 100.0), ("JSON", 900.0))]
    short = several(insert("BLK", 5000.0))
    assert lead(facts(*runs, replace(short, trials=short.trials[:2])))["methods"] == ("JSON",)


def test_no_advice_is_given_without_a_comparison_or_a_gain() -> None:
    assert facts(insert("JSON", 1000.0), noise=0.01).keys() == {"methods-fastest"}
    assert facts(insert("1b1", "timeout")) == {}
    base, slightly = insert("1b1", 5000.0), insert("1b1 + TSC", 5100.0)
    assert "transaction" not in facts(base, slightly, noise=0.003)
    assert "transaction" not in facts(base, slightly, noise=0.3)
    assert "transaction" in facts(base, insert("1b1 + TSC", 9100.0), noise=0.01)


def test_methods_are_compared_at_their_largest_common_scale() -> None:
    runs = [
        *(insert("1b1", rate, scale) for scale, rate in ((100, 50.0), (1000, "timeout"))),
        *(insert("1b1 + TSC", rate, scale) for scale, rate in ((100, 100.0), (1000, 9000.0))),
    ]
    (gain,) = facts(*runs, noise=0.01)["transaction"]["gains"]
    assert gain.ratio.estimate == pytest.approx(2.0)


def test_limit_is_reported_once_for_all_its_drivers_and_journal_modes() -> None:
    series = (("BLK", "peewee"), ("BLK + WAL", "peewee"), ("BLK", "sqlite3"))
    known = findings(
        *(methods_run("query", tricks, 100, "limit", driver=driver) for tricks, driver in series)
    )
    (limit,) = known["method-limit"]
    assert limit.facts["drivers"] == ("peewee", "sqlite3")


def test_skipped_cell_has_the_outcome_of_its_smaller_scale() -> None:
    known = cells(
        *(methods_run("query", "BLK", *each) for each in ((80, 500.0), (100, "limit"), (4000, "skipped")))
    )
    series = known.series("query", "BLK")
    assert [cell.outcome for cell in series] == ["done", LIMIT, LIMIT]
    assert best(series) is series[0]
    other = cells(insert("1b1", "timeout", 10), insert("1b1", "skipped", 100))
    assert [cell.outcome for cell in other.all] == [TIMEOUT, TIMEOUT]
    assert [cell.outcome for cell in cells(insert("1b1", "skipped")).all] == [FAILED]


TRIAL = insert("1b1", 1000.0, 5).trials[0]


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({"error": "worker 1 was killed", "trials": ()}, FAILED),
        ({"trials": (replace(TRIAL, verdict=WRONG_DATA),)}, WRONG),
        ({"trials": (replace(TRIAL, error="late"),)}, FAILED),
        ({"trials": (replace(TRIAL, rows_per_s=float("nan")),)}, FAILED),
        ({"trials": (replace(TRIAL, rows_per_s=0.0),)}, FAILED),
        ({"trials": (replace(TRIAL, outcome="of another version"),)}, FAILED),
        # One trial of several that timed out makes the cell a time-out.
        ({"trials": (TRIAL, insert("1b1", "timeout").trials[0], TRIAL)}, TIMEOUT),
    ],
    ids=["killed", "wrong", "invalid", "nan", "zero", "unknown", "late"],
)
def test_invalid_figures_count_as_failures(change: dict[str, Any], outcome: str) -> None:
    changed = replace(insert("1b1", 1000.0), **change)
    (cell,) = cells(changed).all
    assert (cell.outcome, cell.rows_per_s) == (outcome, 0.0)
    assert "methods-fastest" not in facts(changed)


# Keys.


WRONG_PICKS = Verdict((Check("picks", "failed", 5, 1, ("user 1's pick of item 2 is gone",)),))


def advice(*runs: Run, noise: float | None = 0.01) -> dict[str, Mapping[str, Any]]:
    """Return the facts of the recommended type, by schema."""
    return {each.facts["schema"]: each.facts for each in findings(*runs, noise=noise)["id-type"]}


def advice_on_types(noise: float = 0.01, **seconds: float) -> Mapping[str, Any]:
    """Return the facts of the recommended type among types with these times over five passes."""
    runs = [keys_run("id-rowid", name.replace("_", "-"), took) for name, took in seconds.items()]
    return advice(*runs, noise=noise)["id-rowid"]


def type_of(facts: Mapping[str, Any]) -> str | None:
    """Return the chosen type; None if uuid4 may stay."""
    chosen: str | None = facts["chosen"]
    return chosen


def test_example_recommends_a_type_per_schema_with_its_cost() -> None:
    runs = keys_report().runs
    known = advice(*runs)
    assert {schema: (type_of(each), bool(each["int_cost"])) for schema, each in known.items()} == {
        "id-rowid": ("uuid7", True),
        "no-key": ("uuid7", True),
    }
    cost = known["id-rowid"]["int_cost"]
    assert cost.ratio.estimate == pytest.approx(2.1 / 8.4)
    assert cost.file == pytest.approx(0.35, abs=0.005)
    assert "cannot-tell" not in facts(*runs, noise=0.01)


def test_noisy_types_are_chosen_by_stable_traits_and_listed_as_unclear() -> None:
    runs = [each for each in keys_report().runs if each.case.spec.schema == "no-key"]
    known = advice(*runs, noise=0.1)["no-key"]
    assert (known["chosen"], known["dated"]) == ("uuid7", True)
    assert known["cost"].unclear
    assert known["unclear"] == ("ulid",)
    assert facts(*runs, noise=0.1)["cannot-tell"]["noise"]
    for seed in range(40):
        noisy_ones = [several(each, 0.08, seed=str(seed)) for each in runs]
        assert type_of(advice(*noisy_ones, noise=None)["no-key"]) == "uuid7"


def test_equal_types_are_rarely_reported_as_different() -> None:
    draw, wrong, count = Random(5), 0, 60
    for _ in range(count):
        runs = [noisy(keys_run("no-key", id_type, 3.0), 0.15, draw) for id_type in ID_TYPES]
        wrong += " of uuid4's time" in sentences(*runs)["id-type"]
    assert wrong <= 2 * ERROR * count


def test_standard_type_is_recommended_unless_another_is_clearly_better() -> None:
    assert type_of(advice_on_types(uuid4=10.0, ulid=5.0, uuid7=5.1, noise=0.002)) == "uuid7"
    assert type_of(advice_on_types(uuid4=10.0, ulid=5.0, uuid7=6.9)) == "ulid"
    assert type_of(advice_on_types(uuid4=5.0, ulid=7.0, uuid7=7.0)) is None
    assert not advice_on_types(int=9.0, uuid4=6.0, ulid=5.0)["int_cost"]
    large = keys_run("no-key", "uuid7", 3.0, space=Space(10**9, 4096, 1, 0, ()))
    known = advice(large, *(keys_run("no-key", name, 3.0) for name in ("uuid4", "ulid")))["no-key"]
    assert (type_of(known), known["dated"]) == ("ulid", True)


def test_types_are_not_compared_without_uuid4_and_another_type() -> None:
    assert "id-type" not in facts(keys_run("no-key", "int"), keys_run("no-key", "uuid7"), noise=0.01)
    assert "id-type" not in facts(keys_run("no-key", "uuid4"), keys_run("id-rowid", "uuid7"), noise=0.01)


def test_cases_with_the_most_processes_are_compared() -> None:
    runs = [
        keys_run("id-rowid", "uuid4", 8.0),
        keys_run("id-rowid", "ulid", 4.0),
        *(keys_run("id-rowid", id_type, 1.0, concurrency=1) for id_type in ("uuid4", "ulid")),
    ]
    cost = advice(*runs)["id-rowid"]["cost"]
    assert cost.ratio.estimate == pytest.approx(0.5)


def test_wrong_data_is_reported_and_excluded_from_conclusions() -> None:
    known = sentences(keys_run("no-key", "uuid4"), keys_run("no-key", "ulid", verdict=WRONG_PICKS))
    assert "picks, 1 of 5 wrong (user 1's pick of item 2 is gone)" in known["data-wrong"]
    assert "id-type" not in known
    assert (
        len(group_runs((keys_run("no-key", "uuid4"), keys_run("no-key", "ulid", users=2000, picks=200)))) == 2
    )


def test_missing_space_leaves_only_times_in_the_advice() -> None:
    runs = [keys_run("no-key", id_type, space=None) for id_type in ("int", "uuid4", "uuid7")]
    runs.append(keys_run("id-rowid", "uuid4"))
    known = advice(*runs)["no-key"]
    assert (known["int_cost"].file, known["cost"].file) == (None, None)
    assert sentences(*runs).keys() == {"cannot-tell"}


@pytest.mark.parametrize("name", SPACE)
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
def test_inconsistent_space_has_no_figure(space: Space | None, name: str) -> None:
    assert not space_figure(space, name)


# Cycles.


PUBLISHED = facts(*published_settings())


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
    alone = several(cycles_run("wal", "none", trial(in_ms(STATEMENTS, [1.0] * 5))))
    late = replace(alone.trials[0], outcome="timeout", series=())
    assert cycle_rates(replace(alone, trials=(late, *alone.trials[1:]))).keys() == {1, 2, 3, 4}


def checkpoint_facts(
    spikes: dict[int, float], *series: Series, autocheckpoint: str = "1000", **fields: Any
) -> Mapping[str, Any]:
    """Return the facts of the finding on checkpoints; empty if there is none."""
    measured = trial(in_ms(STATEMENTS, spiked(14.0, 20.0, spikes)), *series, autocheckpoint=autocheckpoint)
    return facts(cycles_run("wal", "none", measured, **fields)).get("checkpoint", {})


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
    sentence = sentences(cycles_run("wal", "none", measured))["checkpoint"]
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
    times = times_of(trial(series_of(STATEMENTS, [5, 6]), series_of(BEGIN_AND_COMMIT, [100, 7])))
    assert times
    assert (times.cycles, sum(times.bounds), times.total) == ((5, 6), 107, 118)


def test_first_cycle_is_no_spike() -> None:
    slowest = [times_of(trial(series_of(STATEMENTS, cycles))) for cycles in ([1000, 3, 4], [1000])]
    assert [times and times.slowest for times in slowest] == [3, None]


def test_no_figures_are_shown_for_trials_without_cycles() -> None:
    assert times_of(trial()) is None
    assert times_of(trial(series_of(STATEMENTS, []))) is None
