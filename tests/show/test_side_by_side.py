"""Targets side by side: one table for all, in every format."""

from csv import DictReader
from dataclasses import replace
from io import StringIO

from sqlstress.report import Report, SqliteBuild, from_json, to_json
from sqlstress.show.csv_file import report_csv
from sqlstress.show.markdown import report_markdown
from sqlstress.show.page.html_file import report_html
from sqlstress.show.text import report_text
from sqlstress.target import LAST_LOST
from tests.analysis.hand_made import NOISE
from tests.analysis.test_answers import driven as measured
from tests.example_report import example_report
from tests.several import with_trials
from tests.show.variants import each_run

SOME = (0.9, 1.08, 1.0, 1.05, 0.97)


def targets_report(**fields: str) -> Report:
    """Return a report of two targets, with 1 to 8 processes."""
    example = example_report()
    rates = {"sqlite3": (9000, 8000, 7500, 9000), "lmdb": (20_000, 17_000, 7510, 8000)}
    runs = [
        measured(
            driver,
            tps,
            count,
            SOME if count == 8 else NOISE[:: 1 if driver == "lmdb" else -1],
            **(fields if driver == "lmdb" else {}),
        )
        for count, *both in zip((1, 2, 4, 8), *rates.values(), strict=True)
        for driver, tps in zip(rates, both, strict=True)
    ]
    builds = (
        *example.environment.builds,
        SqliteBuild("lmdb", "py-lmdb 3.0.0", "0.9.36", "", (), library="LMDB"),
    )
    environment = replace(example.environment, builds=builds)
    shown = tuple(replace(run, case=replace(run.case, repeat=5, duration_s=2.0)) for run in runs)
    return replace(example, environment=environment, runs=shown, planned=len(shown))


def with_calls(report: Report, **ns: float) -> Report:
    """Return a report in which drivers have these times of an empty call."""
    return each_run(lambda run: with_trials(run, bare_call_ns=ns.get(run.case.driver)), report)


def test_cost_of_a_call_of_each_binding_is_below_the_table() -> None:
    report = with_calls(targets_report(), sqlite3=4120.0, lmdb=670.0)
    told = (
        "without data access: sqlite3 4.1 µs (SELECT 1, of no table); "
        "lmdb 670 ns (a read transaction without a look-up). Each call"
    )
    for text in (report_text(report), report_markdown(report), report_html(report)):
        assert told in " ".join(text.split())
    assert from_json(to_json(report)) == report


def test_unknown_cost_of_a_binding_is_not_mentioned() -> None:
    assert "One call through" not in report_text(targets_report())
    one = report_text(with_calls(targets_report(), lmdb=670.0))
    assert "without data access: lmdb 670 ns" in " ".join(one.split())


def test_targets_of_different_durability_are_not_comparable() -> None:
    text = report_text(targets_report(worth=LAST_LOST))
    assert text.count("not comparable\n") == 4
    assert " leads with" not in text


def test_leader_is_named_only_where_both_targets_have_a_figure() -> None:
    report = targets_report()
    gone = [replace(run, trials=(), error="it broke") for run in report.runs if run.case.driver == "lmdb"][:1]
    runs = tuple(gone[0] if run.case == gone[0].case else run for run in report.runs)
    text = report_text(replace(report, runs=runs))
    assert "not comparable" not in text
    assert "failed" in text
    assert "lmdb leads with 2 processes on 1 bucket" in " ".join(text.split())


def test_csv_names_the_library_and_no_timeout_without_a_busy_handler() -> None:
    rows = list(DictReader(StringIO(report_csv(targets_report()))))
    own = {row["driver"]: (row["sqlite_version"], row["busy_timeout_ms"]) for row in rows}
    assert own == {"sqlite3": ("3.51.3", "60000"), "lmdb": ("LMDB 0.9.36", "")}
