"""How the experiment with cycles is shown."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.experiments.classics import STATEMENTS
from sqlstress.experiments.classics.cycles import Cycling
from sqlstress.report import Run
from sqlstress.show.text import WIDTH, report_text
from tests.cycles_report import cycles_report, in_ms, published_settings, run, trial
from tests.several import column, tables
from tests.several import several as over_passes


def several() -> Run:
    """Return a run of two processes, of which one takes three times as long."""
    measured = trial(in_ms(STATEMENTS, [1.0] * 9, 1), in_ms(STATEMENTS, [3.0] * 9, 2))
    return run("wal", "none", replace(measured, fairness=0.8), concurrency=2)


def test_of_several_passes_the_total_of_the_median_is_shown_with_its_spread() -> None:
    runs = [over_passes(one, 0.05) for one in published_settings()[2:]]
    (table,) = tables(*runs)
    assert column(table, "total ms") == ["7,122 ±10%", "2,297 ±10%", "2,293 ±10%"]
    assert "±: 95% interval of the typical total" in " ".join(report_text(cycles_report(*runs)).split())


def test_a_total_that_other_programs_met_is_marked_and_fits_a_terminal() -> None:
    runs = [over_passes(one, 5.0) for one in (*published_settings(), several())]
    met = [
        replace(one, trials=tuple(replace(each, foreign_share=1.0) for each in one.trials)) for one in runs
    ]
    text = report_text(cycles_report(*met))
    assert "~7,122 ±>99%" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_run_that_failed_says_so_in_its_row() -> None:
    broken = replace(published_settings()[2], trials=(), error="worker 1 was killed by SIGKILL")
    (table,) = tables(broken, published_settings()[3])
    assert column(table, "total ms") == ["failed", "2,297"]


def test_several_processes_are_shown_by_their_means_and_their_fairness() -> None:
    (settings,) = tables(several(), published_settings()[2])
    assert column(settings, "processes") == ["2", "1"]
    assert column(settings, "total ms")[0] == "18.0"
    assert column(settings, "fairness")[0] == "0.80"


def test_other_rows_or_cycles_stand_in_a_table_of_their_own() -> None:
    usual, off = published_settings()[3:]
    case = replace(usual.case, spec=Cycling(cycles=7, rows=2, transaction="none"))
    text = report_text(cycles_report(usual, replace(usual, case=case)))
    assert text.count("setting") == 2
    assert "7 cycles: insert 2 rows one by one" in text
    # A setting that is not that of all rows is not in the heading.
    assert "wal_autocheckpoint=0" in report_text(cycles_report(off))
    assert "wal_autocheckpoint" not in report_text(cycles_report(off, usual))


def test_the_legend_names_what_is_there() -> None:
    text = " ".join(report_text(cycles_report(several())).split())
    assert "with several processes: means" in text
    assert "one transaction" not in text
    assert "data (verified): ok = each table holds what the last acknowledged commit left" in text
