"""Tests of what is only to be said: each difference found and named, and none that is not there."""

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


def of(case: Case | None = None, **surroundings: Any) -> Report:
    return report(*sweep(1000, case=case, effective=settings_read_back()), **surroundings)


def read_back(**effective: str) -> Report:
    return report(*sweep(1000, effective=settings_read_back(**effective)))


def judged(*statuses: str) -> Report:
    runs = sweep(*[1000] * len(statuses), effective=settings_read_back())
    checks = [Verdict((Check("last write", status),)) for status in statuses]
    return report(*(with_trials(run, verdict=verdict) for run, verdict in zip(runs, checks, strict=True)))


HOST = EXAMPLE_REPORT.environment.host
OPTIONS = ("DEFAULT_SYNCHRONOUS=2", "THREADSAFE=1", "COMPILER=gcc-12", "ENABLE_PREUPDATE_HOOK")

PATCHED = library(source_id="2026-01-02 patched")
PAIRS: dict[str, tuple[Report, Report]] = {
    "driver": (of(), of(Case(driver="apsw"), builds=library(driver="apsw"))),
    "waiting": (of(), of(Case(settings=Settings(busy_timeout_ms=500)))),
    "amount": (of(), of(Case(ops=700))),
    "layout": tuple(report(*sweep(1, files=files, effective=settings_read_back())) for files in (1, 20)),  # type: ignore[dict-item]
    "version": (of(), of(builds=library(version="3.40.1"))),
    "build of the same version": (of(), of(builds=PATCHED)),
    "options of the library": (of(), of(builds=library(compile_options=OPTIONS))),
    "settings": (
        read_back(wal_autocheckpoint="1000"),
        read_back(wal_autocheckpoint="1000", page_size="8192", cache_size="-2000"),
    ),
    "call that syncs": (of(), of(sync=WINDOWS)),
    "cost of a sync": (of(), of(sync=replace(LINUX, overwrite_p50_ns=3_690_000))),
    "cost of a sync, about the same": (of(), of(sync=replace(LINUX, overwrite_p50_ns=100_000))),
    "Python": (of(), of(host=replace(HOST, python="CPython 3.14.0"))),
    "sqlstress": (of(), replace(of(), tool_version="9.0")),
    "not verified": (judged("ok"), judged("skipped")),
    "verified in part": (judged("ok", "ok"), judged("ok", "skipped")),
    "wrong": (judged("ok", "ok"), judged("ok", "failed")),
    "not known whether it is right": (judged("ok", "ok"), judged("unknown", "unknown")),
}


def test_a_difference_is_found_and_named_and_forbids_nothing() -> None:
    found = {}
    for name, (one, other) in PAIRS.items():
        compared = side_by_side(one, other)
        assert compared.reasons(1) == ()
        found[name] = [f"{subject}: {a} / {b}" for subject, (a, b) in values(compared).items()]
    assert_golden_texts("differences.txt", found)


def test_what_is_not_known_is_none() -> None:
    unknown = report(
        *sweep(1000, effective={}), builds=(), sync=None, host=replace(HOST, python="", cores=None)
    )
    found = values(side_by_side(of(), unknown))
    names = ("SQLite's version", "settings such as page_size", "Python's version")
    assert [found[name][1] for name in names] == [None] * 3
    assert found.keys() == {"durability", *names}, "what follows from these is not told apart"


def test_a_driver_without_a_library_has_none() -> None:
    dry = report(*sweep(1000, case=Case(driver="dry"), effective={}), builds=())
    assert values(side_by_side(of(), dry))["SQLite's version"] == ("3.51.3", "none")
    assert values(side_by_side(dry, dry)) == {}
