"""Differences that are only reported: each is found and named, and equal values are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlstress.report import Check, Report, Verdict
from sqlstress.report.case import Case, Settings
from tests.analysis.comparison.sides import (
    LINUX,
    WINDOWS,
    library,
    report,
    settings_read_back,
    side_by_side,
    sweep,
    values,
)
from tests.analysis.hand_made import EXAMPLE as EXAMPLE_REPORT
from tests.example_report import assert_golden_texts
from tests.several import with_trials


def report_of(case: Case | None = None, **surroundings: Any) -> Report:
    return report(*sweep(1000, case=case, effective=settings_read_back()), **surroundings)


def read_back(**effective: str) -> Report:
    return report(*sweep(1000, effective=settings_read_back(**effective)))


def report_with_verdicts(*statuses: str) -> Report:
    runs = sweep(*[1000] * len(statuses), effective=settings_read_back())
    checks = [Verdict((Check("last write", status),)) for status in statuses]
    return report(*(with_trials(run, verdict=verdict) for run, verdict in zip(runs, checks, strict=True)))


HOST = EXAMPLE_REPORT.environment.host
OPTIONS = ("DEFAULT_SYNCHRONOUS=2", "THREADSAFE=1", "COMPILER=gcc-12", "ENABLE_PREUPDATE_HOOK")

PATCHED = library(source_id="2026-01-02 patched")
PAIRS: dict[str, tuple[Report, Report]] = {
    "driver": (report_of(), report_of(Case(driver="apsw"), builds=library(driver="apsw"))),
    "waiting": (report_of(), report_of(Case(settings=Settings(busy_timeout_ms=500)))),
    "amount": (report_of(), report_of(Case(ops=700))),
    "layout": tuple(report(*sweep(1, files=files, effective=settings_read_back())) for files in (1, 20)),  # type: ignore[dict-item]
    "version": (report_of(), report_of(builds=library(version="3.40.1"))),
    "build of the same version": (report_of(), report_of(builds=PATCHED)),
    "options of the library": (report_of(), report_of(builds=library(compile_options=OPTIONS))),
    "settings": (
        read_back(wal_autocheckpoint="1000"),
        read_back(wal_autocheckpoint="1000", page_size="8192", cache_size="-2000"),
    ),
    "call that syncs": (report_of(), report_of(sync=WINDOWS)),
    "cost of a sync": (report_of(), report_of(sync=replace(LINUX, overwrite_p50_ns=3_690_000))),
    "cost of a sync, about the same": (report_of(), report_of(sync=replace(LINUX, overwrite_p50_ns=100_000))),
    "Python": (report_of(), report_of(host=replace(HOST, python="CPython 3.14.0"))),
    "sqlstress": (report_of(), replace(report_of(), tool_version="9.0")),
    "not verified": (report_with_verdicts("ok"), report_with_verdicts("skipped")),
    "verified in part": (report_with_verdicts("ok", "ok"), report_with_verdicts("ok", "skipped")),
    "wrong": (report_with_verdicts("ok", "ok"), report_with_verdicts("ok", "failed")),
    "not known whether it is right": (
        report_with_verdicts("ok", "ok"),
        report_with_verdicts("unknown", "unknown"),
    ),
}


def test_difference_is_named_and_allows_ratios() -> None:
    differences = {}
    for name, (first_report, second_report) in PAIRS.items():
        compared = side_by_side(first_report, second_report)
        assert compared.reasons(1) == ()
        differences[name] = [f"{subject}: {a} / {b}" for subject, (a, b) in values(compared).items()]
    assert_golden_texts("differences.txt", differences)


def test_unknown_value_of_a_difference_is_missing() -> None:
    unknown = report(
        *sweep(1000, effective={}), builds=(), sync=None, host=replace(HOST, python="", cores=None)
    )
    differences = values(side_by_side(report_of(), unknown))
    names = ("SQLite's version", "settings such as page_size", "Python's version")
    assert [differences[name][1] for name in names] == [None] * 3
    assert differences.keys() == {"durability", *names}, "what follows from these is not told apart"


def test_driver_without_a_library_has_no_version() -> None:
    dry = report(*sweep(1000, case=Case(driver="dry"), effective={}), builds=())
    assert values(side_by_side(report_of(), dry))["SQLite's version"] == ("3.51.3", "none")
    assert values(side_by_side(dry, dry)) == {}


def test_settings_that_another_subject_names_are_not_repeated() -> None:
    elsewhere = {"journal_mode": "delete", "synchronous": "off", "fullfsync": "1", "busy_timeout": "9"}
    other = read_back(page_size="8192", **elsewhere)
    assert values(side_by_side(read_back(busy_timeout="1"), other))["settings such as page_size"] == (
        "page_size=4096",
        "page_size=8192",
    )


def test_driver_that_stores_nothing_has_no_settings() -> None:
    dry = report(*sweep(9000, case=Case(driver="dry"), effective={}))
    assert values(side_by_side(read_back(), dry))["settings such as page_size"] == ("", "none")
