"""Differences that prevent a ratio (work, load, durability), and differences that do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sqlstress.experiments.classics.spec import Picks
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report import Report, SyncCost, Warning
from sqlstress.report.case import Case
from tests.analysis.comparison.sides import (
    LINUX,
    MACOS,
    MACOS_FULL,
    WINDOWS,
    report,
    settings_read_back,
    side_by_side,
    sweep,
    values,
)
from tests.analysis.hand_made import run, trial

EXAMPLE = report(*sweep(1000, effective=settings_read_back()))
HOST = EXAMPLE.environment.host


def durable(sync: SyncCost | None = LINUX, *warnings: str, **effective: str) -> Report:
    """Return a report with these effective settings and with warnings of these codes."""
    runs = sweep(500, effective=settings_read_back(**effective))
    return report(*runs, sync=sync, warnings=tuple(Warning(code, "") for code in warnings))


def reasons(*reports: Report) -> tuple[str, ...]:
    """Return the reasons against a ratio of the last report to the first."""
    return side_by_side(*reports).reasons(len(reports) - 1)


def report_of_case(case: Case, **fields: Any) -> Report:
    return report(*sweep(1000, case=case, effective=settings_read_back(), **fields))


@pytest.mark.parametrize(
    "other",
    [
        durable(synchronous="normal"),
        durable(synchronous="off"),
        durable(journal_mode="delete"),
        durable(MACOS),
        durable(MACOS_FULL, fullfsync="0"),
        durable(MACOS_FULL, "apple-fullfsync", fullfsync="1"),
        durable(LINUX, "sync-does-nothing"),
    ],
)
def test_different_durability_prevents_a_ratio(other: Report) -> None:
    assert reasons(EXAMPLE, other) == reasons(other, EXAMPLE) == ("what a commit waits for differs",)
    first_durability, other_durability = values(side_by_side(EXAMPLE, other))["durability"]
    assert first_durability == "WAL, synchronous=FULL, each commit asks the drive to flush its cache"
    assert other_durability and other_durability != first_durability


@pytest.mark.parametrize(
    "other", [durable(WINDOWS), durable(MACOS_FULL, fullfsync="1"), durable(page_size="8192")]
)
def test_calls_that_flush_the_drive_cache_are_comparable(other: Report) -> None:
    assert reasons(EXAMPLE, other) == ()


def test_extra_equals_full_only_with_a_wal() -> None:
    assert reasons(EXAMPLE, durable(synchronous="extra")) == ()
    rollback = [durable(journal_mode="delete", synchronous=level) for level in ("full", "extra")]
    assert reasons(*rollback) == ("what a commit waits for differs",)


@pytest.mark.parametrize(
    "unknown",
    [
        report(*sweep(1000, effective={})),
        durable(sync=None),
        durable(replace(LINUX, primitive="")),
        report(*sweep(1000, effective={"journal_mode": "wal"})),
    ],
)
def test_unknown_durability_prevents_every_ratio(unknown: Report) -> None:
    assert reasons(EXAMPLE, unknown) == ("what a commit waits for is unknown for B",)
    assert reasons(unknown, EXAMPLE) == ("what a commit waits for is unknown for A",)
    assert reasons(unknown, unknown) == ("what a commit waits for is unknown for A and B",)
    assert values(side_by_side(unknown, EXAMPLE))["durability"][0] is None


def test_sync_call_may_be_unknown_if_no_commit_syncs() -> None:
    normal = durable(sync=None, synchronous="normal")
    assert reasons(normal, durable(WINDOWS, synchronous="normal")) == ()


def test_durability_is_unknown_if_a_case_lacks_it() -> None:
    half = report(*sweep(1000, effective=settings_read_back()), *sweep(1000, 2000, effective={})[1:])
    assert reasons(half, half) == ("what a commit waits for is unknown for A and B",)


def test_reasons_are_separate_for_each_report() -> None:
    three = side_by_side(EXAMPLE, durable(synchronous="normal"), durable(WINDOWS))
    assert [three.reasons(place) for place in range(3)] == [(), ("what a commit waits for differs",), ()]


def test_dry_driver_is_comparable_only_with_itself() -> None:
    dry = report(*sweep(9000, case=Case(driver="dry"), effective={}))
    assert reasons(dry, dry) == ()
    assert reasons(EXAMPLE, dry) == ("what a commit waits for differs",)
    assert values(side_by_side(EXAMPLE, dry))["durability"][1] == "nothing is stored"


def test_different_work_prevents_a_ratio() -> None:
    classic = report_of_case(Case(workload="classic"))
    assert reasons(report_of_case(Case()), classic) == ("the work differs",)
    differences = values(side_by_side(report_of_case(Case()), classic))
    assert differences["work"][1] == "the published script, in pairs of a set and a get"
    assert "load" not in differences


def test_different_load_prevents_a_ratio_and_names_the_difference() -> None:
    gets = report_of_case(Case(spec=Load(read_ratio=0.9, value_size=100)))
    assert reasons(report_of_case(Case()), gets) == ("the load differs",)
    assert values(side_by_side(report_of_case(Case()), gets))["load"] == (
        "read ratio 0.5, value size 8",
        "read ratio 0.9, value size 100",
    )


def test_extra_processes_are_part_of_the_load() -> None:
    with_checkpointer = Case(spec=Load(checkpointing=Checkpointing("restart", 0.02, pinned_reader=True)))
    assert reasons(report_of_case(Case()), report_of_case(with_checkpointer)) == ("the load differs",)
    assert values(side_by_side(report_of_case(Case()), report_of_case(with_checkpointer)))["load"] == (
        "no extra process",
        "checkpointer restart every 0.02 s, a pinned reader",
    )


def test_unknown_number_of_processes_prevents_a_ratio() -> None:
    case = Case(workload="keys", spec=Picks("no-key", "ulid"))
    known, unknown = (
        report(run(1, count, trial(5, effective=settings_read_back()), case=case)) for count in (4, 0)
    )
    assert reasons(known, unknown) == ("the number of processes is unknown for B",)
    assert values(side_by_side(known, unknown))["processes"] == ("4", None)
    assert reasons(known, known) == ()


def test_different_loop_prevents_a_ratio() -> None:
    native, python = (report_of_case(Case(spec=Load(loop=loop))) for loop in ("native", "python"))
    assert reasons(native, python) == ("what drove the load, the native loop or Python's, differs",)
    assert values(side_by_side(native, python))["loop"] == ("native", "python")
    assert reasons(python, python) == ()


def test_different_cpu_quota_prevents_a_ratio() -> None:
    free, limited = (
        report(*sweep(5, effective=settings_read_back()), host=replace(HOST, cores=8, cpu_quota=quota))
        for quota in (None, 2.0)
    )
    assert reasons(free, limited) == reasons(limited, free) == ("the CPU quota differs",)
    assert values(side_by_side(free, limited))["CPU quota"] == ("none", "limited to 2 by a CPU quota")
    assert reasons(limited, limited) == reasons(free, free) == ()


@pytest.mark.parametrize(
    ("other", "durability"),
    [
        (durable(synchronous="normal"), "WAL, synchronous=NORMAL, no commit waits for a sync"),
        (
            durable(LINUX, "sync-does-nothing"),
            "WAL, synchronous=FULL, each commit waits for a sync that does nothing",
        ),
        (
            durable(MACOS),
            "WAL, synchronous=FULL, each commit waits until the drive has it in its cache",
        ),
    ],
)
def test_durability_names_what_a_commit_waits_for(other: Report, durability: str) -> None:
    assert values(side_by_side(EXAMPLE, other))["durability"][1] == durability
