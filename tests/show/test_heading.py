"""Tests of the heading: the measured cases, their durability, and the warnings."""

from dataclasses import replace

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.group import group_runs
from sqlstress.experiments.kv.show import KeyValueShown
from sqlstress.experiments.kv.spec import Load
from sqlstress.report import Report, Warning
from sqlstress.report.case import Case, Settings
from sqlstress.show import heading
from sqlstress.show.text import report_text
from tests.ab_report import ab_report
from tests.example_report import assert_golden_texts
from tests.show.variants import EXAMPLE, UNKNOWN, each_run, each_trial, with_case, with_one


def described(report: Report) -> str:
    group, *_ = group_runs(report.runs)
    return heading.describe(KeyValueShown().activity(group), group, report)


def durable(report: Report) -> tuple[str, ...]:
    (group,) = group_runs(report.runs)
    return heading.durability(group, report.environment)


def warned(report: Report) -> tuple[str, ...]:
    (group,) = group_runs(report.runs)
    return heading.warnings(group, report.environment, advise_group(group))


def passes(count: int, repeat: int) -> Report:
    """Return a report with `count` of `repeat` requested passes."""
    asked = with_case(ops=700, repeat=repeat)
    return each_run(lambda run: replace(run, trials=run.trials[:1] * count), asked)


def uneven() -> Report:
    """Return a sweep that was stopped: its last case has one pass fewer than the others."""
    *others, last = passes(3, repeat=5).runs
    return replace(EXAMPLE, runs=(*others, replace(last, trials=last.trials[:2])))


def limit_report() -> Report:
    """Return a report of two passes, in which the last case met a limit in the first pass."""
    *others, last = passes(2, repeat=2).runs
    trial = replace(last.trials[0], outcome="limit")
    return replace(EXAMPLE, runs=(*others, replace(last, trials=(trial,))))


FIRST = EXAMPLE.runs[0]
CHOSEN = Settings(busy_timeout_ms=500, cache_size=-2000, pragmas=(("temp_store", "memory"),))
NORMAL = replace(FIRST.trials[0], effective={**FIRST.trials[0].effective, "synchronous": "normal"})
ORIGINS = {
    "the example": EXAMPLE,
    "another text for a date": replace(EXAMPLE, created="in spring"),
    "published": replace(EXAMPLE, published="somebody's figures, on a laptop", environment=UNKNOWN),
    "nothing known": replace(EXAMPLE, environment=replace(UNKNOWN, host=replace(UNKNOWN.host, system=""))),
}
DESCRIBED = {
    "published": ORIGINS["published"],
    "gets": with_case(spec=Load(read_ratio=1)),
    "replaces": with_case(spec=Load(read_ratio=0)),
    "hardly any replaces": with_case(spec=Load(read_ratio=0.995)),
    "batches": with_case(spec=Load(batch=2)),
    "deferred updates": with_case(spec=Load(read_ratio=0.6, update_ratio=0.3, begin="deferred")),
    "updates": with_case(spec=Load(read_ratio=0.7, update_ratio=0.3)),
    "chosen settings": with_case(settings=CHOSEN),
    "a fixed count": passes(2, repeat=2),
    "stopped after 2 of 5 passes": passes(2, repeat=5),
    "stopped after 1 of 5 passes": passes(1, repeat=5),
    "stopped within a pass": uneven(),
    "a limit in the first pass": limit_report(),
    "seeds that differ": with_one(replace(FIRST, case=replace(FIRST.case, seed=8))),
}
DURABLE = {
    "the example": EXAMPLE,
    "settings that were read back differently": with_one(replace(FIRST, trials=(NORMAL,))),
    "nothing read back": each_trial(lambda trial: replace(trial, effective={})),
    "nothing stored": with_case(driver="dry"),
}


def test_origin_names_program_time_and_machine() -> None:
    assert_golden_texts("origins.txt", {name: heading.origin(report) for name, report in ORIGINS.items()})


def test_heading_describes_the_cases() -> None:
    assert_golden_texts("headings.txt", {name: described(report) for name, report in DESCRIBED.items()})


def test_heading_describes_the_durability() -> None:
    assert_golden_texts("durable.txt", {name: durable(report) for name, report in DURABLE.items()})


def test_serious_warnings_of_the_surroundings_are_shown_and_others_are_not() -> None:
    known = (Warning("a", "The sync does nothing.", serious=True), Warning("b", "Few cores."))
    report = replace(EXAMPLE, environment=replace(EXAMPLE.environment, warnings=known))
    assert warned(report) == ("Warning: The sync does nothing.",)


def test_warnings_of_runs_name_their_runs_once() -> None:
    late = Warning("late", "A worker came late.")
    report = each_run(lambda run: replace(run, warnings=(late,) if run.case.concurrency > 2 else ()))
    assert warned(report) == ("Warning: A worker came late. (At 4 and 8 processes on 1 and 20 buckets.)",)


def test_warning_repeated_by_a_finding_is_left_out() -> None:
    assert [warning.code for warning in EXAMPLE.runs[3].warnings] == ["starvation"]
    assert warned(EXAMPLE) == ()


def test_warning_of_a_library_concerns_only_its_connections_in_wal_mode() -> None:
    bug = Warning("sqlite-wal-reset-bug", "SQLite 3.40.1 can corrupt a WAL database.", True)
    report = replace(EXAMPLE, environment=replace(EXAMPLE.environment, warnings=(bug,)))
    assert warned(report) == (f"Warning: {bug.text}",)
    no_wal = each_trial(lambda one: replace(one, effective={"journal_mode": "delete"}), report)
    assert warned(no_wal) == ()
    commands = replace(report, runs=(replace(report.runs[0], case=Case("exec")),))
    (said, *_) = warned(commands)
    assert said.startswith(f"Warning: {bug.text} This is sqlstress's own SQLite; ")
    text = report_text(replace(report, runs=(*EXAMPLE.runs, *with_case(duration_s=9.0).runs)))
    assert text.count("can corrupt a WAL database") == 1


def test_arms_of_an_ab_test_have_their_libraries() -> None:
    report = ab_report([[1.0] * 10])
    assert report.ab
    (build,) = report.environment.builds
    newer = replace(build, version="3.99.0")
    a, b = report.ab.arms
    arms = (replace(a, builds=(build,)), replace(b, builds=(newer,)))
    said = described(replace(report, ab=replace(report.ab, arms=arms)))
    assert f"A: driver sqlite3, SQLite {build.version}; B: driver sqlite3, SQLite 3.99.0" in said
    assert "A: " not in described(report)
