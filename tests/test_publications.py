"""Reports of published figures: their format, their figures and their views."""

import csv
import io
import json
import re

import jsonschema
import pytest

from sqlstress.analysis.advice import advise
from sqlstress.analysis.comparison import compare
from sqlstress.experiment import case_label
from sqlstress.experiments.classics.spec import tricks_of
from sqlstress.report import Report, read, to_json
from sqlstress.report.json_schema import schema_text
from sqlstress.show.csv_file import report_csv
from sqlstress.show.text import WIDTH, comparison_text, report_text
from tests.example_report import assert_golden
from tests.published import FOLDER, REPORTS

MACOS = REPORTS["003-macos-1-file"]
METHODS = REPORTS["000-methods"]
KEYS = REPORTS["002-keys"]
CYCLES = REPORTS["004-cycles"]

every_report = pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)


@pytest.mark.parametrize("name", REPORTS)
def test_published_file_has_the_current_format(name: str) -> None:
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(to_json(REPORTS[name])), "run python -m tests.published"
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(json.loads(text))


def test_published_report_matches_its_golden_file() -> None:
    assert_golden("published.txt", report_text(MACOS))


def test_csv_leaves_unknown_values_empty() -> None:
    for row in csv.DictReader(io.StringIO(report_csv(MACOS))):
        assert row["published"].startswith("by the author")
        assert (row["system"], row["cores"], row["verdict"]) == ("Darwin", "4", "skipped")
        unknown = [
            *("created", "tool_version", "release", "machine", "python", "file_system", "sqlite_version"),
            *("sync_primitive", "sync_append_p50_ns", "fairness_jain", "min_max_share", "longest_wait_ns"),
            *("busy_answers", "busy_snapshot_answers", "failed_operations", "start_s", "worker"),
        ]
        assert {name: row[name] for name in unknown} == dict.fromkeys(unknown, "")


@every_report
def test_published_reports_fit_80_columns_and_name_their_origin(report: Report) -> None:
    text = report_text(report)
    assert text.startswith("Published figures, not measured or verified by sqlstress: ")
    assert {"Durability unknown", "SQLite unknown"} <= {*re.findall(r"\w+ unknown", " ".join(text.split()))}
    assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize("name", [name for name in REPORTS if name.startswith("003")])
def test_totals_equal_the_printed_digits(name: str) -> None:
    # A figure typed in wrongly would show: total TPS is pairs over seconds, and seconds have two decimals.
    for run in REPORTS[name].runs:
        (trial,) = run.trials
        assert case_label(run.case) and abs(trial.transactions / trial.tps - trial.seconds) <= 0.0051


OURS = {
    "000-methods": ("linux-methods",),
    "002-keys": ("linux-keys",),
    "003-macos-1-file": ("linux-classic", "linux-1-and-20-files"),
    "003-macos-20-files": ("linux-classic",),
    "003-windows-1-file": ("linux-classic",),
    "004-cycles": ("linux-cycles", "linux-cycles-normal"),
}
"""Published report → our real reports that measure the same."""


def test_every_published_report_has_a_report_of_ours() -> None:
    assert OURS.keys() == REPORTS.keys()


@pytest.mark.parametrize(("name", "other"), [(name, other) for name, ours in OURS.items() for other in ours])
def test_published_report_is_compared_with_a_real_one_without_ratios(name: str, other: str) -> None:
    ours = read(FOLDER.parent / f"{other}.json")
    comparison = compare([(name, REPORTS[name]), (other, ours)])
    assert comparison.tables
    for compared in comparison.tables:
        rows = range(len(compared.table.keys))
        assert "what a commit waits for is unknown for A" in compared.reasons(1)
        assert {compared.ratio(row, 1) for row in rows} == {None}
        assert any(compared.rate(row, 0) and compared.rate(row, 1) for row in rows)
    text = comparison_text(comparison)
    assert text.index("NOT COMPARABLE") < min(
        text.index(each) for each in ("rows/s", "TPS", "cycles/s") if each in text
    )
    assert max(map(len, text.splitlines())) <= WIDTH


def test_keys_have_the_published_times_and_sizes() -> None:
    found = {}
    for run in KEYS.runs:
        (trial,) = run.trials
        assert run.case.concurrency == 0
        place = (run.case.spec.users, run.case.spec.schema, run.case.spec.id_type)
        found[place] = (trial.seconds, trial.space and trial.space.file_bytes / 1e6)
    assert found == {
        (1000, "id-rowid", "uuid4"): (9.8, None),
        (1000, "id-rowid", "ulid"): (5.7, None),
        (1000, "pair-norowid", "ulid"): (6.0, 17.0),
        (1000, "no-key", "uuid4"): (5.0, 13.0),
        (1000, "no-key", "ulid"): (5.0, 13.0),
        (1000, "pair-rowid", "ulid"): (5.0, 17.0),
        (2000, "no-key", "ulid"): (20.818506, None),
    }


def test_published_keys_are_not_compared_with_themselves() -> None:
    text = report_text(KEYS)
    assert "Compared with the published figures" not in text
    assert "fan-out" not in text and "p99" not in text


def test_cycles_show_their_totals_and_explain_the_stopped_run() -> None:
    text = report_text(CYCLES)
    totals = {
        line.split()[0]: line.split()[1] for line in text.splitlines() if re.match(r"(delete|wal)\S* +", line)
    }
    assert totals == {
        "delete": "failed",
        "delete-tx": "3,530",
        "wal": "7,190",
        "wal-tx": "2,290",
        "wal-tx-off": "2,286",
    }
    assert "stopped by its author: each cycle took about 30 s" in " ".join(text.split())


def test_published_report_has_only_findings_on_its_totals() -> None:
    assert {finding.code for finding in advise(MACOS)} == {"highest"}


def test_published_summary_of_methods_agrees_with_the_tables() -> None:
    def best(phase: str, tricks: str) -> tuple[float, float]:
        """Return the best rate of a method, and its ratio to single insertions, as the text has it."""
        rate, base = (
            max(
                trial.rows_per_s
                for run in METHODS.runs
                for trial in run.trials
                if (run.case.spec.phase, tricks_of(run.case)) == each
            )
            for each in ((phase, tricks), ("insert", "1b1"))
        )
        return round(rate, 1), round(rate / base, 1)

    # As printed, but for the text's own slips: it takes 497.4 for the best of 498.8 and 497.4, and cuts 90.7.
    assert best("insert", "1b1") == (153.9, 1.0)
    assert best("insert", "1b1 + WAL") == (498.8, 3.2)
    assert best("insert", "1b1 + TSC") == (13_875.0, 90.2)
    assert best("insert", "1b1 + WAL + TSC") == (13_960.7, 90.7)
    assert best("allocate", "BLK") == (54_101.3, 351.5)
    assert best("allocate", "JSON") == (289_494.5, 1881.1)
    assert best("allocate", "SPC") == (612_193.6, 3977.9)
    assert best("allocate", "SPC + WAL") == (601_393.5, 3907.7)


def test_views_of_methods_show_the_published_tables() -> None:
    assert_golden("published_methods.txt", report_text(METHODS))
