"""Presentation of cases at a rate: the table, the findings, the curve of latency over rate."""

import csv
import io
from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise
from sqlstress.analysis.comparison import compare
from sqlstress.analysis.group import group_runs
from sqlstress.report import Report
from sqlstress.show.at_a_rate import plots
from sqlstress.show.csv_file import report_csv
from sqlstress.show.page.html_file import report_html
from sqlstress.show.text import comparison_text
from tests.example_report import example_report
from tests.rate_report import rate_report, rate_run, rate_trial

REPORT = rate_report()


def texts_by_code(report: Report) -> dict[str, str]:
    return {finding.code: finding.text for finding in advise(report)}


def test_closed_loop_has_its_own_table() -> None:
    both = replace(REPORT, runs=(*REPORT.runs, *example_report().runs))
    assert len(group_runs(both.runs)) == 2


def test_page_has_latency_and_service_time_over_the_rate() -> None:
    curve, distribution = plots(group_runs(REPORT.runs)[0])
    (view,) = curve.views
    assert [trace["name"] for trace in view.data] == ["p50", "p99", "p99.9", "max", "service p99"]
    assert view.data[1]["x"] == [500, 1000, 2900, 6000]
    assert view.data[1]["y"] == sorted(view.data[1]["y"])
    assert len(distribution.views) == 4
    assert "Latency by rate" in report_html(REPORT)


def test_csv_has_columns_of_rates_only_for_cases_at_a_rate() -> None:
    rows = list(csv.DictReader(io.StringIO(report_csv(REPORT))))
    assert {row["rate"] for row in rows} == {"500", "1000", "2900", "6000"}
    assert rows[0]["due_operations"] == "1000"
    assert rows[-1]["queued_operations"] not in ("", "0")
    assert "due_operations" not in report_csv(example_report())


def test_reports_are_compared_rate_by_rate() -> None:
    shown = comparison_text(compare([("one", REPORT), ("other", REPORT)], False))
    assert all(f" {rate} " in shown for rate in ("500", "1,000", "2,900", "6,000"))


@pytest.mark.parametrize("latest_ns", [2_000, 50_000_000])
def test_late_harness_is_reported(latest_ns: int) -> None:
    (run,) = rate_report((500,)).runs
    late = rate_trial(500, 3000).latency["replace"]
    late = replace(late, p99_ns=float(latest_ns), buckets=())
    trials = (replace(run.trials[0], arrived=replace(run.trials[0].arrived, lateness=late)),)  # type: ignore[type-var]
    found = texts_by_code(replace(REPORT, runs=(replace(run, trials=trials),)))
    assert ("harness-late" in found) == (latest_ns > 1_000_000)


def test_skipped_operations_are_no_queue() -> None:
    run = rate_run(6_000, 5)
    assert run.case.arrivals
    limited = replace(run.case, arrivals=replace(run.case.arrivals, latency_limit_s=0.005))
    said = texts_by_code(replace(REPORT, runs=(replace(run, case=limited),)))["saturated"]
    assert "were skipped (--latency-limit)" in said and "queue" not in said
