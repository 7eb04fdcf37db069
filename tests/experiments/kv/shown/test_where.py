"""Tests of the findings on where time is spent, and of their remedies."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.experiments.kv.load_findings import shares
from sqlstress.experiments.kv.show_where import plots
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report import Run, Throttling
from sqlstress.report.case import Arrivals, Case
from sqlstress.report.results import (
    CHECKPOINT,
    COMMIT,
    FREE,
    OWN,
    PROCESSOR,
    SQLITE,
    SYNC,
    TIME_PARTS,
    Held,
    Slowest,
    Where,
)
from sqlstress.show.text import report_text
from tests.analysis.hand_made import findings, group, run, trial
from tests.drawing import examples
from tests.example_report import corpus_report

MS = 1_000_000
where_report = partial(corpus_report, "where")
"""One process, and three that wait for each other."""
ALONE, TOGETHER = (where for each in where_report().runs if (where := each.trials[0].where))
assert TOGETHER.slowest
SLOWEST = TOGETHER.slowest


def run_with_time_shares(*wheres: Where, processes: int = 3, checkpointer: str = "", **settings: Any) -> Run:
    """Return a run whose passes have these times by cause."""
    own = Load(where=True, checkpointing=Checkpointing(checkpointer) if checkpointer else None)
    case = Case(spec=own)
    case = replace(case, settings=replace(case.settings, **settings))
    return run(1, processes, *(trial(where=where) for where in wheres), case=case)


CODE = "slowest-operations"


def changed(**parts: int) -> Where:
    """Return the time recording of three processes; `parts` are thousandths of their slowest operations'
    time.
    """
    own = {name: ns * MS for name, ns in parts.items()}
    return replace(TOGETHER, slowest=replace(SLOWEST, parts=own, behind={}))


def test_process_is_numbered_within_one_pass_and_a_companion_is_named() -> None:
    assert (
        "50% waiting for checkpoints of process 3, 22% asleep"
        in findings(run_with_time_shares(TOGETHER))[CODE]
    )
    assert "50% waiting for checkpoints of others" in findings(run_with_time_shares(TOGETHER, TOGETHER))[CODE]
    said = findings(run_with_time_shares(TOGETHER, processes=2, checkpointer="restart"))[CODE]
    assert "50% waiting for checkpoints of the checkpointer" in said


@pytest.mark.parametrize(
    ("account", "settings", "remedy"),
    [
        (changed(**{FREE: 200, OWN: 800}), {}, "To sleep less, use more buckets (--buckets 20) or fewer"),
        (changed(**{CHECKPOINT: 200, OWN: 800}), {}, "--checkpointer passive"),
        (changed(**{SYNC: 200, OWN: 800}), {}, "--synchronous normal"),
        (changed(**{SYNC: 200, OWN: 800}), {"synchronous": "normal"}, "(--batch)"),
    ],
)
def test_remedy_is_given_if_each_pass_supports_it(
    account: Where, settings: dict[str, Any], remedy: str
) -> None:
    calm = changed(**{OWN: 1000})
    assert remedy in findings(run_with_time_shares(account, account, **settings))[CODE]
    assert remedy not in findings(run_with_time_shares(account, calm, **settings))[CODE]


@pytest.mark.parametrize(
    ("part", "settings", "remedy"),
    [
        (FREE, {"processes": 1}, "To sleep less"),
        (CHECKPOINT, {"journal_mode": "delete"}, "--checkpointer"),
        (SYNC, {"synchronous": "normal"}, "--synchronous"),
        (SYNC, {"journal_mode": "delete"}, "--synchronous"),
    ],
)
def test_remedy_in_use_or_without_effect_is_not_named(
    part: str, settings: dict[str, Any], remedy: str
) -> None:
    assert remedy not in findings(run_with_time_shares(changed(**{part: 900, OWN: 100}), **settings))[CODE]


def waited(processor: int) -> Where:
    """Return a time recording with `processor` thousandths of waiting for a processor; the rest is SQLite's
    work.
    """
    return Where(time_ns=1000 * MS, parts={PROCESSOR: processor * MS, SQLITE: (1000 - processor) * MS})


def test_fewer_processes_are_advised_if_each_pass_waits_for_a_processor() -> None:
    said = findings(run_with_time_shares(waited(600), waited(700)))["processor-wait"]
    assert said.startswith("At 3 processes on 1 bucket, operations wait for a processor 65% of their time")
    assert "processor-wait" not in findings(run_with_time_shares(waited(600), waited(400)))
    assert "processor-wait" not in findings(run_with_time_shares(TOGETHER))
    few, many = run_with_time_shares(waited(600)), run_with_time_shares(waited(800), processes=16)
    assert "wait for a processor 80% of their time" in findings(few, many)["processor-wait"]


def test_fewer_processes_are_not_advised_if_they_would_not_help() -> None:
    crowd = run_with_time_shares(waited(900))
    busy = replace(crowd, trials=tuple(replace(x, foreign_share=0.3) for x in crowd.trials))
    fixed = replace(crowd, case=replace(crowd.case, arrivals=Arrivals(100)))
    for x in (run_with_time_shares(waited(900), processes=1), busy, fixed):
        assert "processor-wait" not in findings(x)


def test_throttled_run_shows_no_cause_of_its_slowest_operations() -> None:
    quota = Throttling(cores=0.5, periods=20, throttled=18, stopped_s=0.9)
    for calm, code in (
        (run_with_time_shares(waited(900)), "processor-wait"),
        (run_with_time_shares(TOGETHER), CODE),
    ):
        throttled = replace(calm, trials=tuple(replace(trial, quota=quota) for trial in calm.trials))
        assert code in findings(calm)
        assert code not in findings(throttled)


def test_shares_are_of_all_passes_and_their_common_parts() -> None:
    untold = replace(ALONE, parts={name: ns for name, ns in ALONE.parts.items() if name != PROCESSOR})
    found = shares(run_with_time_shares(ALONE, untold))
    assert found[SYNC] == pytest.approx(0.7)
    assert PROCESSOR not in found
    text = report_text(replace(where_report(), runs=(run_with_time_shares(untold),)))
    assert "Waits for a processor cannot be measured here" in " ".join(text.split())


def test_contradictory_recording_is_reported_as_unknown() -> None:
    silent = run_with_time_shares(ALONE)
    silent = replace(silent, trials=tuple(replace(trial, where=None) for trial in silent.trials))
    text = report_text(replace(where_report(), runs=(silent,)))
    assert "Cannot tell where the time goes" in text
    assert "Where the time" not in report_text(replace(where_report(), runs=(run(1, 1),)))


def test_plots_have_a_bar_per_case_and_the_slowest_operation() -> None:
    split, moment = plots(group(run_with_time_shares(TOGETHER, TOGETHER)))
    bars = split.views[0].data
    assert [bar["name"] for bar in bars][:2] == ["lock held", "asleep, free"]
    assert sum(bar["x"][0] for bar in bars) == pytest.approx(100)
    (view,) = moment.views
    assert view.label == "3 processes on 1 bucket: 90 ms"
    lines = {trace["name"]: (trace["x"], trace["y"]) for trace in view.data}
    assert lines["waits for the lock"] == ([0.0, 80.0, None], ["process 2", "process 2", None])
    assert lines["checkpoints"] == ([20.0, 80.0, None], ["process 3", "process 3", None])
    assert view.data[0]["y"][0] == "process 2"  # first the process of the operation


def test_run_without_a_recording_has_no_plots() -> None:
    assert list(plots(group(run(1, 1)))) == []


amounts = st.integers(0, 10**12)
holders = st.builds(Held, st.integers(0, 99), st.just(COMMIT), amounts)
accounts = st.builds(
    Where,
    time_ns=amounts,
    parts=st.dictionaries(st.sampled_from(TIME_PARTS), amounts),
    told=st.floats(0, 1),
    slowest=st.none()
    | st.builds(
        Slowest,
        operations=st.integers(1, 10**6),
        of=st.integers(1, 10**8),
        fastest_ns=amounts,
        total_ns=amounts,
        parts=st.dictionaries(st.sampled_from((FREE, CHECKPOINT, SYNC, OWN, "new")), amounts),
        behind=st.dictionaries(st.sampled_from((COMMIT, SYNC, "new")), amounts),
        held_by=st.lists(holders, max_size=3).map(tuple),
    ),
    moment=st.none() | st.just(TOGETHER.moment),
)  # fmt: skip


@settings(max_examples=examples(0.4))
@given(st.lists(accounts, min_size=1, max_size=3), st.sampled_from(["", "passive"]))
def test_any_recording_is_shown(found: list[Where], checkpointer: str) -> None:
    own = run_with_time_shares(*found, checkpointer=checkpointer)
    assert report_text(replace(where_report(), runs=(own,)))
    for plot in plots(group(own)):
        assert all(value >= 0 for trace in plot.views[0].data for value in trace["x"] if value is not None)
