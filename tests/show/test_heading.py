"""Tests of the heading: what was measured, how durable it was, and what must be known first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.group import group_runs
from sqlstress.experiments.kv.experiment import Load
from sqlstress.experiments.kv.show import KeyValueShown
from sqlstress.report import Report, Warning
from sqlstress.report.case import Case, Settings
from sqlstress.show import heading
from sqlstress.show.text import report_text
from tests.show.variants import EXAMPLE, UNKNOWN, each_run, each_trial, with_case, with_one


def described(report: Report) -> str:
    (group,) = group_runs(report.runs)
    return heading.describe(KeyValueShown().what(group), group, report)


def durable(report: Report) -> tuple[str, ...]:
    (group,) = group_runs(report.runs)
    return heading.durability(group, report.environment)


def warned(report: Report) -> tuple[str, ...]:
    (group,) = group_runs(report.runs)
    return heading.warnings(group, report.environment, advise_group(group))


def test_the_origin_says_what_measured_when_and_where() -> None:
    assert heading.origin(EXAMPLE) == (
        "sqlstress 0.1.0, 2026-01-15 09:30 UTC: Linux 6.8.0, x86_64, 4 cores, ext4, CPython 3.12.7"
    )
    assert ", in spring: " in heading.origin(replace(EXAMPLE, created="in spring"))


def test_of_published_figures_it_says_whose_they_are_and_what_is_known() -> None:
    report = replace(EXAMPLE, published="somebody's figures, on a laptop", environment=UNKNOWN)
    assert heading.origin(report) == (
        "Published figures, not measured or verified by sqlstress: somebody's figures, on a laptop. "
        "System: Darwin."
    )
    assert described(report).endswith("driver sqlite3, SQLite unknown.")


def test_surroundings_of_which_nothing_is_known_are_unknown() -> None:
    nothing = replace(UNKNOWN, host=replace(UNKNOWN.host, system=""))
    assert heading.origin(replace(EXAMPLE, environment=nothing)).endswith(" UTC: system unknown")


@pytest.mark.parametrize(
    ("load", "mix"),
    [
        (Load(read_ratio=1), "100% gets; "),
        (Load(read_ratio=0), "100% replaces; "),
        (Load(read_ratio=0.995), "99.5% gets, 0.5% replaces; "),
        (Load(batch=2), "50% gets, 50% replaces (transactions of 2), BEGIN IMMEDIATE; "),
        (
            Load(read_ratio=0.6, update_ratio=0.3, begin="deferred"),
            "60% gets, 10% replaces, 30% updates, BEGIN DEFERRED; ",
        ),
        (Load(read_ratio=0.7, update_ratio=0.3), "70% gets, 30% updates, BEGIN IMMEDIATE; "),
    ],
)
def test_the_mix_names_what_there_is_and_how_transactions_begin(load: Load, mix: str) -> None:
    assert described(with_case(spec=load)).startswith(mix)


def test_settings_that_were_chosen_are_named_and_others_are_not() -> None:
    chosen = Settings(busy="fair", busy_timeout_ms=500, cache_size=-2000, pragmas=(("temp_store", "memory"),))
    text = described(with_case(settings=chosen))
    assert "lock waits up to 500ms (fair); cache_size=-2000 temp_store=memory; " in text
    assert "page_size" not in text


def passes(count: int, repeat: int) -> Report:
    """Return a report of which so many passes were made, of those that were asked for."""
    runs = (replace(run, trials=run.trials[:1] * count) for run in with_case(ops=700, repeat=repeat).runs)
    return replace(EXAMPLE, runs=tuple(runs))


def test_a_fixed_count_and_repeats_are_told() -> None:
    text = described(passes(2, repeat=2))
    assert "700 transactions per process; median of 2 passes; " in text
    assert "windows" not in text


def test_seeds_that_differ_are_not_shown_as_one() -> None:
    other = replace(EXAMPLE.runs[0], case=replace(EXAMPLE.runs[0].case, seed=8))
    assert described(with_one(other)).endswith("seeds differ.")


def test_settings_that_were_read_back_differently_are_all_told() -> None:
    run = EXAMPLE.runs[0]
    normal = replace(run.trials[0], effective={**run.trials[0].effective, "synchronous": "normal"})
    assert len(durable(EXAMPLE)) == 1
    assert len(durable(with_one(replace(run, trials=(normal,))))) == 2


def test_without_anything_read_back_the_heading_says_what_was_asked_for() -> None:
    nothing = each_trial(lambda trial: replace(trial, effective={}))
    assert durable(nothing) == (
        "Durability unknown: the run asked for a wal journal and synchronous full, but nothing was read "
        "back.",
    )


def test_the_dry_driver_is_not_called_durable() -> None:
    assert durable(with_case(driver="dry")) == (
        "The dry driver stores nothing: these figures are the upper limit of the harness.",
    )


def test_serious_warnings_of_the_surroundings_are_shown_and_others_are_not() -> None:
    known = (Warning("a", "The sync does nothing.", serious=True), Warning("b", "Few cores."))
    report = replace(EXAMPLE, environment=replace(EXAMPLE.environment, warnings=known))
    assert warned(report) == ("Warning: The sync does nothing.",)


def test_warnings_of_runs_say_which_once() -> None:
    late = Warning("late", "A worker came late.")
    report = each_run(lambda run: replace(run, warnings=(late,) if run.case.concurrency > 2 else ()))
    assert warned(report) == ("Warning: A worker came late. (At 4 and 8 processes on 1 and 20 files.)",)


def test_a_warning_that_a_finding_repeats_is_left_to_the_finding() -> None:
    assert [warning.code for warning in EXAMPLE.runs[3].warnings] == ["starvation"]
    assert warned(EXAMPLE) == ()


def test_a_warning_of_the_library_is_of_those_connections_that_it_opens_with_a_wal() -> None:
    bug = Warning("sqlite-wal-reset-bug", "SQLite 3.40.1 can corrupt a WAL database.", True)
    report = replace(EXAMPLE, environment=replace(EXAMPLE.environment, warnings=(bug,)))
    assert warned(report) == (f"Warning: {bug.text}",)
    no_wal = each_trial(lambda one: replace(one, effective={"journal_mode": "delete"}), report)
    assert warned(no_wal) == ()
    commands = replace(report, runs=(replace(report.runs[0], case=Case("exec")),))
    (said, *_) = warned(commands)
    assert said.startswith(f"Warning: {bug.text} This is sqlstress's own SQLite; ")
    longer = tuple(replace(run, case=replace(run.case, duration_s=9.0)) for run in EXAMPLE.runs)
    text = report_text(replace(report, runs=(*EXAMPLE.runs, *longer)))
    assert text.count("can corrupt a WAL database") == 1


def test_a_sweep_that_was_stopped_says_how_many_passes_it_made() -> None:
    assert "median of 2 passes" in described(passes(2, repeat=5))
    assert "median" not in described(passes(1, repeat=5))
    report = passes(3, repeat=5)
    last = replace(report.runs[-1], trials=report.runs[-1].trials[:2])
    assert "median of 2 to 3 passes" in described(replace(report, runs=(*report.runs[:-1], last)))
