"""Tests of the table: its rows, its columns, the columns that are dropped, and the explanations below it."""

import csv
import io
from dataclasses import dataclass, fields, replace

import pytest

from sqlstress.analysis.group import group_runs, merge_groups
from sqlstress.experiments.kv import show
from sqlstress.experiments.kv.show import KeyValueShown, build
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.options.option import LOAD, SQLITE, option
from sqlstress.options.parsing import switch, whole_number
from sqlstress.report import Check, Latency, Report, Trial, Verdict
from sqlstress.show.blocks import MISSING, MORE, Legend, Table, count_cell
from sqlstress.show.case_table import trial_column
from sqlstress.show.comparison_view import tables
from sqlstress.show.formats import FORMATS
from sqlstress.show.text import comparison_text, report_text
from sqlstress.statistics.histogram import bin_of
from tests.analysis.comparison.sides import comparison
from tests.loads import OTHERS
from tests.several import several
from tests.show.variants import (
    EXAMPLE,
    classic_report,
    each_run,
    each_trial,
    update_report,
    with_case,
    with_one,
)


def table(report: Report) -> Table:
    (group,) = group_runs(report.runs)
    return build(group)


def column(report: Report, name: str) -> list[str]:
    shown = table(report)
    place = shown.headers.index(name)
    return [row[place] for row in shown.rows]


def explained(report: Report) -> str:
    (group,) = group_runs(report.runs)
    return Legend(build(group)).text


def test_kind_of_operation_without_completions_has_no_column() -> None:
    gets = {"get": EXAMPLE.runs[0].trials[0].latency["get"]}
    headers = table(each_trial(lambda trial: replace(trial, latency=gets))).headers
    assert "get p99 ms" in headers
    assert not [header for header in headers if "replace" in header or "update" in header]
    none = {"get": replace(gets["get"], count=0)}
    report = each_trial(lambda trial: replace(trial, latency=trial.latency | none))
    assert "get p99 ms" not in table(report).headers


def test_p99_of_uneven_shares_is_of_the_worst_process_and_marked() -> None:
    def starved(fairness: float) -> Report:
        def uneven(trial: Trial) -> Trial:
            workers = tuple(
                replace(worker, p99_ns={"replace": 900e6, "get": 5e6}) for worker in trial.workers
            )
            return replace(trial, fairness=fairness, workers=workers)

        return each_trial(uneven)

    calm = column(EXAMPLE, "replace p99 ms")
    assert set(column(starved(0.5), "replace p99 ms")) == {"900*"}
    assert set(column(starved(0.5), "get p99 ms")) == {"5.00*"}
    assert column(starved(0.5), "replace p50 ms") == column(EXAMPLE, "replace p50 ms")
    assert column(starved(1.0), "replace p99 ms") == calm
    meaning = "*: of the slowest process, because shares were uneven"
    assert [meaning in explained(report) for report in (starved(0.5), starved(1.0))] == [True, False]


def test_updates_and_batches_have_columns_of_their_own() -> None:
    assert "update p99 ms" in table(update_report()).headers
    assert "rows/s" in table(with_case(spec=Load(batch=2))).headers
    assert {"update p99 ms", "rows/s"}.isdisjoint(table(EXAMPLE).headers)


def test_invalid_trial_has_neither_figures_nor_explanations() -> None:
    report = each_trial(lambda trial: replace(trial, error="worker 1 died"))
    assert table(report).headers == ("buckets", "processes", "TPS total", "verified")
    assert set(column(report, "TPS total")) == {"failed"}
    assert "fairness" not in explained(report) and "longest wait" not in explained(report)


@pytest.mark.parametrize(
    ("status", "cell"), [("ok", "ok"), ("failed", "FAILED"), ("skipped", MISSING), ("unknown", "?")]
)
def test_verdict_is_in_the_table(status: str, cell: str) -> None:
    verdict = Verdict((Check("last write", status),))
    assert set(column(each_trial(lambda trial: replace(trial, verdict=verdict)), "verified")) == {cell}
    if status == "failed":  # this includes cases that could not be measured
        report = each_trial(lambda trial: replace(trial, verdict=verdict, error="worker 1 died"))
        assert set(column(report, "verified")) == {cell}


def test_repeated_cases_show_median_typical_trial_and_longest_wait() -> None:
    run = EXAMPLE.runs[0]
    trials = tuple(
        replace(run.trials[0], index=i, tps=tps, fairness=tps / 1000, longest_wait_ns=int(tps) * 1_000_000)
        for i, tps in enumerate((900.0, 300.0, 500.0, 600.0))
    )
    report = with_one(replace(run, trials=trials))
    names = ("TPS total", "TPS per process", "fairness", "longest wait ms")
    assert [column(report, name)[0] for name in names] == ["550 ±>99%", "550", "0.50", "900"]


def test_window_length_is_dropped_first_and_length_of_fixed_count_late() -> None:
    (window,) = group_runs(with_case(spec=Load(batch=2)).runs)
    assert build(window).leaving[:3] == ("time s", "TPS per process", "rows/s")
    for report in (classic_report(), with_case(workload="classic"), with_case(ops=700)):
        (count,) = group_runs(report.runs)
        leaving = build(count).leaving
        assert leaving.index("time s") > leaving.index("TPS per process")


def test_pairs_that_are_read_together_are_gets_too() -> None:
    def paired(count: int) -> Report:
        trial = EXAMPLE.runs[3].trials[0]
        workers = tuple(
            replace(worker, operations={**worker.operations, "pair": count}) for worker in trial.workers
        )
        return replace(EXAMPLE, runs=(replace(EXAMPLE.runs[3], trials=(replace(trial, workers=workers),)),))

    (without,), (more,) = column(paired(0), "gets/s"), column(paired(100_000), "gets/s")
    assert int(more.replace(",", "")) > int(without.replace(",", ""))


def test_percentiles_that_are_not_shown_are_not_explained() -> None:
    latency = EXAMPLE.runs[0].trials[0].latency
    assert "; p50 and p99: 50% and 99% of the operations took at most this long; " in explained(EXAMPLE)
    assert "; p99: 99% of the operations took at most this long; " in explained(
        each_trial(lambda trial: replace(trial, latency={"get": latency["get"]}))
    )
    assert "p99" not in explained(each_trial(lambda trial: replace(trial, latency={})))


@pytest.mark.parametrize("form", ["txt", "md", "html", "csv"])
def test_new_column_is_in_every_format_by_its_declaration(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = trial_column(
        "made up", "made_up", lambda trial: 7 * trial.transactions, count_cell, meaning="made up: seven times"
    )
    known = show.columns
    monkeypatch.setattr(show, "columns", lambda group: (*known(group), made_up))
    written = report_text(EXAMPLE) if form == "txt" else FORMATS[form](EXAMPLE)
    count = 7 * EXAMPLE.runs[0].trials[0].transactions
    assert (str(count) if form == "csv" else f"{count:,}") in written
    assert ("made_up" if form == "csv" else "made up: seven times.") in " ".join(written.split())


def test_new_column_is_in_comparisons_by_its_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = trial_column(
        "made up", "made_up", lambda trial: 7 * trial.transactions, count_cell, better=MORE, meaning="made up"
    )
    known = show.columns
    monkeypatch.setattr(show, "columns", lambda group: (*known(group), made_up))
    written = comparison_text(comparison(EXAMPLE, EXAMPLE))
    assert f"{7 * EXAMPLE.runs[0].trials[0].transactions:,}" in written
    assert "1 if all processes got equal shares; made up; p99: 99%" in " ".join(written.split())


def test_comparison_shows_the_p99_of_the_table() -> None:
    def one_pass_is_slow(trial: Trial) -> Trial:
        ns = 90_000_000 if trial.index == 4 else 1_000_000
        return replace(trial, latency={"replace": Latency.from_buckets({bin_of(ns): 400}, ns)})

    report = each_trial(one_pass_is_slow, each_run(several))
    cells = column(report, "replace p99 ms")
    (compared,) = comparison(report, report).tables
    (shown, *_) = [part for part in tables(compared) if "A replace p99 ms" in part.headers]
    place = shown.headers.index("A replace p99 ms")
    assert [row[place] for row in shown.rows] == cells
    assert float(cells[0].rstrip("*")) > 80


# The options of a load are in the CSV and above the table: each new option must be there.


NOT_A_COLUMN = {"where": "it changes no load; what it found has columns of its own"}
NOT_ABOVE = {
    "begin": "it is said where a transaction has several statements",
    "where": "it changes no load; what it found has a table of its own",
}


def row(load: Load) -> dict[str, str]:
    return next(iter(csv.DictReader(io.StringIO(FORMATS["csv"](with_case(spec=load))))))


def above(load: Load) -> str:
    return report_text(with_case(spec=load)).partition("\n\n")[2].partition("\n\n")[0]


def test_every_field_has_an_example() -> None:
    usual = Load()
    assert {field.name for field in fields(Load)} == OTHERS.keys()
    assert all(getattr(usual, name) != value for name, value in OTHERS.items())


def test_every_option_of_a_load_has_a_column() -> None:
    usual = row(Load())
    missing = [name for name, value in OTHERS.items() if row(Load(**{name: value})) == usual]
    assert missing == list(NOT_A_COLUMN)


@dataclass(frozen=True, slots=True)
class MadeUpLoad(Load):
    made_up: int = option(whole_number(1, 9), 1, LOAD, "An option that no version has.")


@dataclass(frozen=True, slots=True)
class MadeUpCheckpointing(Checkpointing):
    made_up_pause: bool = option(switch, False, SQLITE, "An option that no version has.", column="pauses")


def test_new_option_has_a_column_without_further_code() -> None:
    written = row(MadeUpLoad(made_up=5, checkpointing=MadeUpCheckpointing(made_up_pause=True)))
    assert (written["made_up"], written["pauses"]) == ("5", "1")
    assert {*written} - {*row(Load())} == {"made_up", "pauses"}


def test_new_option_is_in_heading_and_case_label_without_further_code() -> None:
    checkpointing = MadeUpCheckpointing(mode="restart", made_up_pause=True)
    heading = " ".join(above(MadeUpLoad(made_up=5, checkpointing=checkpointing)).split())
    assert "; made-up 5; during the load a RESTART checkpoint every 20ms and made-up-pause on;" in heading
    assert "made-up" not in above(MadeUpLoad(checkpointing=replace(checkpointing, made_up_pause=False)))
    both = (with_case(spec=MadeUpLoad(made_up=number)).runs[0] for number in (1, 5))
    (group,) = merge_groups(group_runs(both))
    assert "; made-up 1 or 5" in KeyValueShown().activity(group)
    assert [group.value(run.case) for run in group.runs] == ["1", "5"]
    assert build(group).headers[0] == "made up"


def test_every_option_of_a_load_is_above_the_table() -> None:
    usual = above(Load())
    missing = [name for name, value in OTHERS.items() if above(Load(**{name: value})) == usual]
    assert missing == list(NOT_ABOVE)
    # Where it has a meaning it is there.
    batch = Load(batch=2)
    assert above(replace(batch, begin="deferred")) != above(batch)
