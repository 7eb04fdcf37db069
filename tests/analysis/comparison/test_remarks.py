"""Tests of what is only to be said: each difference found and named, and none that is not there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

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


def of(case: Case | None = None, **surroundings: Any) -> Report:
    return report(*sweep(1000, case=case, effective=settings_read_back()), **surroundings)


def read_back(**effective: str) -> Report:
    return report(*sweep(1000, effective=settings_read_back(**effective)))


def judged(*statuses: str) -> Report:
    runs = sweep(*[1000] * len(statuses), effective=settings_read_back())
    checks = [Verdict((Check("last write", status),)) for status in statuses]
    return report(
        *(
            replace(run, trials=(replace(run.trials[0], verdict=verdict),))
            for run, verdict in zip(runs, checks, strict=True)
        )
    )


HOST = EXAMPLE_REPORT.environment.host
OPTIONS = ("DEFAULT_SYNCHRONOUS=2", "THREADSAFE=1", "COMPILER=gcc-12", "ENABLE_PREUPDATE_HOOK")

CASES: dict[str, tuple[Report, Report, tuple[str | None, str | None]]] = {
    "driver": (of(), of(Case(driver="apsw"), builds=library(driver="apsw")), ("sqlite3", "apsw")),
    "waiting for the lock": (
        of(),
        of(Case(settings=Settings(busy="fair", busy_timeout_ms=500))),
        ("lock waits up to 60s (SQLite's busy handler)", "lock waits up to 500ms (fair)"),
    ),
    "measured": (
        of(),
        of(Case(ops=700)),
        ("2s windows after 500ms of warm-up", "700 transactions per process"),
    ),
    "layout": (
        report(*sweep(1, effective=settings_read_back())),
        report(*sweep(1, files=20, effective=settings_read_back())),
        ("1 file", "20 files"),
    ),
    "SQLite's version": (of(), of(builds=library(version="3.40.1")), ("3.51.3", "3.40.1")),
    "SQLite's options": (
        of(),
        of(builds=library(compile_options=OPTIONS)),
        ("none of these", "ENABLE_PREUPDATE_HOOK"),
    ),
    "settings such as page_size": (
        read_back(wal_autocheckpoint="1000"),
        read_back(wal_autocheckpoint="1000", page_size="8192", cache_size="-2000"),
        ("cache_size=not read back, page_size=4096", "cache_size=-2000, page_size=8192"),
    ),
    "the call that syncs": (of(), of(sync=WINDOWS), ("fdatasync", "FlushFileBuffers")),
    "what a sync costs": (
        of(),
        of(sync=replace(LINUX, overwrite_p50_ns=3_690_000)),
        ("0.081 ms (p50)", "3.69 ms (p50)"),
    ),
    "Python's version": (
        of(),
        of(host=replace(HOST, python="CPython 3.14.0")),
        ("CPython 3.12.7", "CPython 3.14.0"),
    ),
    "sqlstress's version": (of(), replace(of(), tool_version="9.0"), ("0.1.0", "9.0")),
    "verified": (judged("ok"), judged("skipped"), ("every case", "no case")),
}


@pytest.mark.parametrize("subject", CASES)
def test_a_difference_is_found_and_named_and_forbids_nothing(subject: str) -> None:
    one, other, expected = CASES[subject]
    compared = side_by_side(one, other)
    assert values(compared) == {subject: expected}
    assert compared.reasons(1) == ()


def test_a_sync_that_costs_about_the_same_is_no_difference() -> None:
    assert values(side_by_side(of(), of(sync=replace(LINUX, overwrite_p50_ns=100_000)))) == {}


def test_another_build_of_the_same_version_is_named_by_its_check_in() -> None:
    patched = of(builds=library(source_id="2026-01-02 patched"))
    assert values(side_by_side(of(), patched)) == {
        "SQLite's version": ("3.51.3 (2026-01-02 03:04:05 0123456789abcdef)", "3.51.3 (2026-01-02 patched)")
    }


@pytest.mark.parametrize(
    ("statuses", "said"),
    [(("ok", "skipped"), "in part"), (("ok", "failed"), "found wrong"), (("unknown", "unknown"), "in part")],
)
def test_what_was_not_verified_everywhere_is_told(statuses: tuple[str, ...], said: str) -> None:
    assert values(side_by_side(judged("ok", "ok"), judged(*statuses)))["verified"] == ("every case", said)


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
