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
from tests.render.variants import EXAMPLE, UNKNOWN, classic_report, each_run, each_trial, with_case, with_one


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
        "Published figures, neither measured nor verified by sqlstress: somebody's figures, on a laptop. "
        "Known of the surroundings: Darwin."
    )
    assert described(report).endswith("driver sqlite3, SQLite unknown; seed unknown.")


def test_surroundings_of_which_nothing_is_known_are_unknown() -> None:
    nothing = replace(UNKNOWN, host=replace(UNKNOWN.host, system=""))
    assert heading.origin(replace(EXAMPLE, environment=nothing)).endswith(" UTC: surroundings unknown")


def test_one_core_is_one_core() -> None:
    host = replace(EXAMPLE.environment.host, cores=1)
    report = replace(EXAMPLE, environment=replace(EXAMPLE.environment, host=host))
    assert ", 1 core, " in heading.origin(report)


def test_the_load_the_library_and_the_seed_are_described() -> None:
    text = described(EXAMPLE)
    for part in (
        "50% gets, 50% replaces; 100,000 int keys, uniform; 8-byte values; ",
        "2s windows after 500ms of warm-up; ",
        "SQLite's busy handler up to 60s; ",
        "driver sqlite3, SQLite 3.51.3; seed 7.",
    ):
        assert part in text


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
    assert "fair waits up to 500ms; cache_size=-2000 temp_store=memory; " in text
    assert "page_size" not in text


def passes(count: int, repeat: int) -> Report:
    """Return a report of which so many passes were made, of those that were asked for."""
    runs = (replace(run, trials=run.trials[:1] * count) for run in with_case(ops=700, repeat=repeat).runs)
    return replace(EXAMPLE, runs=tuple(runs))


def test_a_fixed_count_and_repeats_are_told() -> None:
    text = described(passes(2, repeat=2))
    assert "700 transactions a process; median of 2 passes; " in text
    assert "windows" not in text


def test_a_window_without_warm_up_has_none_in_its_heading() -> None:
    assert "2s windows; SQLite's busy handler" in described(with_case(warmup_s=0.0))


def test_the_published_script_says_that_its_unit_is_a_pair() -> None:
    text = described(classic_report())
    assert text.startswith("The published script: each process sets 5,000 random integer keys")
    assert "(unit: pair)" in text and "windows" not in text


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
        "Durability unknown: asked for were a wal journal and synchronous full; nothing was read back.",
    )


def test_the_dry_driver_is_not_called_durable() -> None:
    assert durable(with_case(driver="dry")) == (
        "The dry driver stores nothing: these figures are the harness's own ceiling.",
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


def test_a_warning_of_the_library_is_not_of_what_commands_open_the_database_with() -> None:
    bug = Warning("sqlite-wal-reset-bug", "SQLite 3.40.1 can corrupt a WAL database.", True)
    environment = replace(EXAMPLE.environment, warnings=(bug,))
    report = replace(EXAMPLE, environment=environment, runs=EXAMPLE.runs[:1])
    (said, *_) = warned(report)
    assert said == f"Warning: {bug.text}"
    commands = replace(report, runs=(replace(report.runs[0], case=Case("exec")),))
    (said, *_) = warned(commands)
    assert said.startswith(f"Warning: {bug.text} That is the one which looks at the data; ")


def test_a_sweep_that_was_stopped_says_how_many_passes_it_made() -> None:
    assert "median of 2 passes" in described(passes(2, repeat=5))
    assert "median" not in described(passes(1, repeat=5))


def test_a_warning_of_the_wal_is_left_out_where_no_connection_had_one() -> None:
    bug = Warning("sqlite-wal-reset-bug", "SQLite 3.40.1 can corrupt a WAL database.", True)
    report = replace(EXAMPLE, environment=replace(EXAMPLE.environment, warnings=(bug,)))
    assert warned(report) == ("Warning: SQLite 3.40.1 can corrupt a WAL database.",)
    trials = [
        tuple(replace(trial, effective={**trial.effective, "journal_mode": "delete"}) for trial in run.trials)
        for run in report.runs
    ]
    runs = tuple(replace(run, trials=own) for run, own in zip(report.runs, trials, strict=True))
    assert warned(replace(report, runs=runs)) == ()


def test_a_warning_of_the_surroundings_stands_once_however_many_tables_there_are() -> None:
    bug = Warning("sqlite-wal-reset-bug", "SQLite 3.40.1 can corrupt a WAL database.", True)
    longer = tuple(replace(run, case=replace(run.case, duration_s=9.0)) for run in EXAMPLE.runs)
    environment = replace(EXAMPLE.environment, warnings=(bug,))
    text = report_text(replace(EXAMPLE, runs=(*EXAMPLE.runs, *longer), environment=environment))
    assert text.count("can corrupt a WAL database") == 1
