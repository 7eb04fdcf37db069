"""Cases that differ in one option are shown in one heading, one table, one chart of each kind."""

from dataclasses import replace
from typing import Any

import pytest

from sqlstress.analysis.advice import advise_group
from sqlstress.analysis.group import Group, group_runs, merge_groups
from sqlstress.experiments.kv.spec import Checkpointing
from sqlstress.report import Report
from sqlstress.report.case import Case
from sqlstress.show.blocks import Picture, Table
from sqlstress.show.plots import Plot
from sqlstress.show.shown import presenter_of
from sqlstress.show.text import WIDTH, report_text
from tests.show.variants import EXAMPLE, beside_report, each_trial

CASE = Case()
NORMAL: dict[str, Any] = {"settings": replace(CASE.settings, synchronous="normal")}


def with_changed_copy(report: Report = EXAMPLE, **changes: Any) -> Report:
    """Return a report with its runs and a copy of them whose cases have the changes."""
    others = (replace(run, case=replace(run.case, **changes)) for run in report.runs)
    return replace(report, runs=(*report.runs, *others))


def whole_group(report: Report) -> Group:
    (found,) = merge_groups(group_runs(report.runs))
    return found


def plots(report: Report) -> dict[str, Plot]:
    group = whole_group(report)
    found = list(presenter_of(group.case).plots(group))
    assert len({plot.title for plot in found}) == len(found)
    return {plot.title: plot for plot in found}


def eight_processes(report: Report = EXAMPLE) -> Report:
    """Return the runs at 8 processes on one file."""
    runs = (run for run in report.runs if (run.case.concurrency, run.case.buckets) == (8, 1))
    return replace(report, runs=tuple(runs))


def text_of(report: Report) -> str:
    return " ".join(report_text(report).split())


def load(**changes: Any) -> dict[str, Any]:
    return {"spec": replace(CASE.spec, **changes)}


def test_table_begins_with_the_option_and_has_all_rows() -> None:
    group = whole_group(with_changed_copy(**NORMAL))
    table = next(iter(presenter_of(group.case).blocks(group)))
    assert isinstance(table, Table)
    assert table.columns[0].heading == ("", "synchronous")
    values = [row[0] for row in table.rows]
    assert values == ["full"] * len(EXAMPLE.runs) + ["normal"] * len(EXAMPLE.runs)
    lines = report_text(with_changed_copy(**NORMAL)).splitlines()
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (load(value_size=1000), "8-byte values or 1,000-byte values"),
        (load(read_ratio=0.9), "50% gets, 50% replaces or 90% gets, 10% replaces; 100,000"),
        ({"settings": replace(CASE.settings, busy_timeout_ms=5000)}, "busy handler) or lock waits up to 5s"),
    ],
)
def test_heading_shows_both_values_of_a_difference(changes: dict[str, Any], told: str) -> None:
    assert told in text_of(with_changed_copy(**changes))


def test_pragma_that_differs_is_not_in_the_common_heading() -> None:
    with_pragma = replace(CASE.settings, pragmas=(("temp_store", "2"),))
    first = tuple(replace(run, case=replace(run.case, settings=with_pragma)) for run in EXAMPLE.runs)
    told = text_of(with_changed_copy(replace(EXAMPLE, runs=first), settings=CASE.settings))
    assert "- pragma: default reached 1.0 times temp_store=2" in told
    assert "; temp_store=2;" not in told


def test_finding_names_its_value_unless_it_holds_for_all_values() -> None:
    fast = each_trial(lambda trial: replace(trial, tps=3 * trial.tps))
    others = with_changed_copy(fast, **NORMAL).runs[len(EXAMPLE.runs) :]
    told = advise_group(whole_group(replace(EXAMPLE, runs=(*EXAMPLE.runs, *others))))
    parts = [finding.part for finding in told if finding.code == "highest"]
    assert parts == ["synchronous full", "synchronous normal"]
    told = advise_group(whole_group(with_changed_copy(**NORMAL)))
    assert [finding.text.startswith("[") for finding in told] == [False] * len(told)


def test_over_processes_each_value_is_a_line_of_the_same_chart() -> None:
    found = plots(with_changed_copy(**NORMAL))
    (view,) = found["Throughput"].views
    names = [trace["name"] for trace in view.data]
    assert names == ["full, 1 bucket", "full, 20 buckets", "normal, 1 bucket", "normal, 20 buckets"]
    percentiles = found["Latency percentiles"]
    assert percentiles.views[percentiles.first].label == "replace, 20 buckets"
    shown = {trace["name"] for trace in percentiles.views[percentiles.first].data}
    assert shown == {"full p99", "full p50", "normal p99", "normal p50"}
    # Charts whose lines cannot be shared by two values have a choice of the value.
    labels = [view.label for view in found["Latency histogram"].views]
    assert (labels[0], labels[-1]) == ("full, 1 process on 1 bucket", "normal, 8 processes on 20 buckets")


def test_values_are_on_the_axis_if_there_is_one_number_of_processes() -> None:
    found = plots(with_changed_copy(eight_processes(), **NORMAL))
    for title in ("Throughput", "Latency percentiles", "Share of each process"):
        view = found[title].views[found[title].first]
        assert view.layout["xaxis"]["type"] == "category"
        assert {x for trace in view.data for x in trace["x"]} == {"full", "normal"}
    (view,) = found["Over the window"].views
    assert [trace["name"] for trace in view.data] == ["full", "normal"]


def test_wals_of_all_checkpointers_are_drawn_below_each_other() -> None:
    report = eight_processes(beside_report())
    asked = report.runs[0].case.spec.checkpointing
    other = Checkpointing("truncate", asked.interval_s, asked.pinned_reader)
    spec = replace(report.runs[0].case.spec, checkpointing=other)
    both = with_changed_copy(report, spec=spec)
    group = whole_group(both)
    blocks = list(presenter_of(group.case).blocks(group))
    (picture,) = (block for block in blocks if isinstance(block, Picture))
    assert [line.split(" |")[0].split()[0] for line in picture.lines[1:]] == [asked.mode, "truncate"]
    tables = [block for block in blocks if isinstance(block, Table)]
    assert [table.columns[0].name for table in tables] == ["checkpointer"] * 2
    assert "the checkpointer differs" in text_of(both)
    names = [trace["name"] for trace in plots(both)["Size of the WALs"].views[0].data]
    assert len(set(names)) == 2
