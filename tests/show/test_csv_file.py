"""Tests of the report as CSV: golden files, and the same numbers when it is read back."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sqlstress.report import Arm, Report, Run, SqliteBuild, Trial, WorkerResult, to_json
from sqlstress.show.csv_file import report_csv
from tests.ab_report import TEST, ab_report
from tests.cycles_report import cycles_report
from tests.example_keys import keys_report
from tests.several import with_trials
from tests.show.variants import EXAMPLE, TRIAL, each_trial, with_one


def rows(report: Report) -> list[dict[str, str]]:
    text = report_csv(report)
    assert {len(row) for row in csv.reader(io.StringIO(text))} == {len(text.split("\n")[0].split(","))}
    return list(csv.DictReader(io.StringIO(text)))


def subjects(report: Report) -> Iterator[tuple[Run, Trial | None, WorkerResult | None]]:
    for run in report.runs:
        for trial in run.trials:
            yield from ((run, trial, worker) for worker in trial.workers)
            if not trial.workers:
                yield run, trial, None
        if not run.trials:
            yield run, None, None


def number(text: str) -> float | None:
    return float(text) if text else None


def check_numbers(report: Report) -> None:
    """Check that the numbers in the CSV equal those of the report."""
    expected = list(subjects(report))
    found = rows(report)
    assert len(found) == len(expected)
    for row, (run, trial, worker) in zip(found, expected, strict=True):
        assert int(row["concurrency"]) == run.case.concurrency
        assert number(row["harness_ns"]) == run.harness_ns
        assert number(row["tps"]) == (trial and trial.tps)
        assert number(row["fairness_jain"]) == (trial and trial.fairness)
        assert number(row["longest_wait_ns"]) == (trial and trial.longest_wait_ns)
        assert number(row["worker_transactions"]) == (worker and worker.transactions)
        assert number(row["worker_peak_memory_bytes"]) == (worker and worker.peak_memory_bytes)
        for kind, latency in (trial.latency if trial else {}).items():
            assert int(row[f"{kind}_count"]) == latency.count
            assert number(row[f"{kind}_p99_ns"]) == latency.p99_ns


def test_case_without_trials_and_trial_without_workers_keep_their_errors() -> None:
    empty = replace(EXAMPLE.runs[0], trials=(replace(TRIAL, workers=(), error="worker 1 could not start"),))
    report = replace(EXAMPLE, runs=(empty, replace(EXAMPLE.runs[1], trials=(), error="no room")))
    assert [(row["trial_error"], row["case_error"], row["worker"]) for row in rows(report)] == [
        ("worker 1 could not start", "", ""),
        ("", "no room", ""),
    ]


def test_settings_are_the_effective_ones() -> None:
    effective = {"synchronous": "normal", "cache_size": "-2000"}
    (row, *_) = rows(each_trial(lambda trial: replace(trial, effective=effective)))
    assert (row["effective_synchronous"], row["effective_cache_size"]) == ("normal", "-2000")
    assert "synchronous" not in row


@pytest.mark.parametrize(
    ("error", "field"),
    [
        *(
            (f"{start}cmd|' /C calc'!A0", f"'{start.strip()}cmd|' /C calc'!A0")
            for start in ("=", "+", "-", "@", "\t=", "\r@", "\uff1d")
        ),
        ('a "quoted", text\nof two lines', 'a "quoted", text of two lines'),
    ],
)
def test_text_stays_in_its_field_and_formulas_get_an_apostrophe(error: str, field: str) -> None:
    assert rows(with_one(replace(EXAMPLE.runs[0], trials=(), error=error)))[0]["case_error"] == field


def test_report_without_runs_is_a_header() -> None:
    assert rows(replace(EXAMPLE, runs=())) == []
    assert report_csv(replace(EXAMPLE, runs=())).startswith("created,tool_version,")


def test_experiment_specific_fields_and_space_have_their_own_columns() -> None:
    found = rows(keys_report())
    assert [(row["picks_schema"], row["picks_id_type"]) for row in found[:2]] == [
        ("id-rowid", "int"),
        ("id-rowid", "uuid4"),
    ]
    assert (found[1]["picks_users"], found[1]["file_bytes"]) == ("1000", "16035840")
    assert float(found[1]["table_share"]) == pytest.approx(1640 / 3915)
    assert not [name for name in rows(EXAMPLE)[0] if name.startswith("picks_") or name == "file_bytes"]


def test_case_has_no_columns_of_other_experiments() -> None:
    runs = (EXAMPLE.runs[0], keys_report().runs[0], cycles_report().runs[0])
    kv, keys, cycles = rows(replace(EXAMPLE, runs=runs))
    assert (kv["begin"], kv["picks_begin"], kv["cycling_rows"]) == ("immediate", "", "")
    assert (keys["begin"], keys["picks_begin"], keys["cycling_rows"]) == ("", "deferred", "")
    assert (cycles["begin"], cycles["picks_begin"], cycles["cycling_rows"]) == ("", "", "5")


@pytest.mark.parametrize("report", [keys_report(), cycles_report()], ids=["keys", "cycles"])
def test_reports_of_other_experiments_have_no_load_of_kv(report: Report) -> None:
    written = {name for row in rows(report) for name in row}
    assert not written & {*KV, *BESIDE}
    for run in json.loads(to_json(report))["runs"]:
        assert not run["case"].keys() & {"load", "checkpointing", *KV}
        assert "read_ratio" not in json.dumps(run)


KV = ("read_ratio", "update_ratio", "key_space", "distribution", "key_type", "value_size_bytes", "batch_rows")
BESIDE = ("begin", "checkpointer", "checkpoint_interval_s", "pinned_readers", "loop", "largest_wal_bytes")


def test_row_of_an_a_b_test_names_its_arm_and_the_library_of_that_arm() -> None:
    builds = [SqliteBuild("sqlite3", "", version, "", ()) for version in ("3.40.1", "3.51.3")]
    a, b = (Arm(name, builds=(build,)) for name, build in zip("AB", builds, strict=True))
    report = ab_report([[1.0] * 10], replace(TEST, arms=(a, b)))
    rows = list(csv.DictReader(io.StringIO(report_csv(report))))
    assert {(row["arm"], row["sqlite_version"]) for row in rows} == {("A", "3.40.1"), ("B", "3.51.3")}


def test_transaction_named_like_a_column_hides_no_column() -> None:
    latency = TRIAL.latency["replace"]
    report = with_one(with_trials(EXAMPLE.runs[0], latency={"sync_append": latency}))
    header, row = list(csv.reader(io.StringIO(report_csv(report))))[:2]
    first, second = (value for name, value in zip(header, row, strict=True) if name == "sync_append_p50_ns")
    assert EXAMPLE.environment.sync and int(first) == EXAMPLE.environment.sync.append_p50_ns
    assert float(second) == latency.p50_ns
