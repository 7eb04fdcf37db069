"""Tests of what bars a ratio: other work, another load, another durability; and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sqlstress.experiments.classics.keys import Picks
from sqlstress.experiments.classics.methods import Method
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


def durable(sync: SyncCost | None = LINUX, *warnings: str, **effective: str) -> Report:
    """Return a report with these settings read back; the warnings are codes."""
    runs = sweep(500, effective=settings_read_back(**effective))
    return report(*runs, sync=sync, warnings=tuple(Warning(code, "") for code in warnings))


def reasons(*reports: Report) -> tuple[str, ...]:
    """Return why the last report can't be compared with the first."""
    return side_by_side(*reports).reasons(len(reports) - 1)


def of_case(case: Case, **fields: Any) -> Report:
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
def test_a_commit_that_waits_for_something_else_bars_a_ratio(other: Report) -> None:
    assert reasons(EXAMPLE, other) == reasons(other, EXAMPLE) == ("what a commit waits for differs",)
    one, another = values(side_by_side(EXAMPLE, other))["durability"]
    assert one == "WAL, synchronous=FULL, each commit asks the drive to flush its cache"
    assert another and another != one


@pytest.mark.parametrize(
    "other", [durable(WINDOWS), durable(MACOS_FULL, fullfsync="1"), durable(page_size="8192")]
)
def test_calls_that_all_flush_the_drives_cache_may_be_compared(other: Report) -> None:
    assert reasons(EXAMPLE, other) == ()


def test_extra_is_full_where_there_is_a_wal_and_only_there() -> None:
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
def test_a_durability_that_is_not_known_bars_every_ratio(unknown: Report) -> None:
    assert reasons(EXAMPLE, unknown) == ("what a commit waits for is unknown for B",)
    assert reasons(unknown, EXAMPLE) == ("what a commit waits for is unknown for A",)
    assert reasons(unknown, unknown) == ("what a commit waits for is unknown for A and B",)
    assert values(side_by_side(unknown, EXAMPLE))["durability"][0] is None


def test_the_call_need_not_be_known_where_no_commit_waits_for_one() -> None:
    normal = durable(sync=None, synchronous="normal")
    assert reasons(normal, durable(WINDOWS, synchronous="normal")) == ()


def test_a_durability_that_one_of_several_cases_lacks_is_not_known() -> None:
    half = report(*sweep(1000, effective=settings_read_back()), *sweep(1000, 2000, effective={})[1:])
    assert reasons(half, half) == ("what a commit waits for is unknown for A and B",)


def test_reports_are_barred_one_by_one() -> None:
    three = side_by_side(EXAMPLE, durable(synchronous="normal"), durable(WINDOWS))
    assert [three.reasons(place) for place in range(3)] == [(), ("what a commit waits for differs",), ()]


def test_a_store_that_does_nothing_is_compared_with_its_like_only() -> None:
    dry = report(*sweep(9000, case=Case(driver="dry"), effective={}))
    assert reasons(dry, dry) == ()
    assert reasons(EXAMPLE, dry) == ("what a commit waits for differs",)
    assert values(side_by_side(EXAMPLE, dry))["durability"][1] == "nothing is stored"


def test_other_work_and_another_unit_bar_a_ratio() -> None:
    classic = of_case(Case(workload="classic"))
    assert reasons(of_case(Case()), classic) == ("the work differs",)
    found = values(side_by_side(of_case(Case()), classic))
    assert found["work"][1] == "the published script, in pairs of a set and a get"
    assert "load" not in found


def test_another_load_bars_a_ratio_and_only_what_differs_is_named() -> None:
    gets = of_case(Case(spec=Load(read_ratio=0.9, value_size=100)))
    assert reasons(of_case(Case()), gets) == ("the load differs",)
    assert values(side_by_side(of_case(Case()), gets))["load"] == (
        "read ratio 0.5, value size 8",
        "read ratio 0.9, value size 100",
    )


def test_processes_beside_the_load_are_part_of_it() -> None:
    beside = Case(spec=Load(checkpointing=Checkpointing("restart", 0.02, pinned_reader=True)))
    assert reasons(of_case(Case()), of_case(beside)) == ("the load differs",)
    assert values(side_by_side(of_case(Case()), of_case(beside)))["load"] == (
        "no extra process",
        "checkpointer restart every 0.02 s, a pinned reader",
    )


def test_a_number_of_processes_that_is_not_known_bars_a_ratio() -> None:
    case = Case(workload="keys", spec=Picks("no-key", "ulid"))
    known, unknown = (
        report(run(1, count, trial(5, effective=settings_read_back()), case=case)) for count in (4, 0)
    )
    assert reasons(known, unknown) == ("the number of processes is unknown for B",)
    assert values(side_by_side(known, unknown))["processes"] == ("4", None)
    assert reasons(known, known) == ()


def test_the_size_of_a_queried_table_that_is_not_known_bars_a_ratio() -> None:
    def queries(samples: int) -> Report:
        return of_case(Case(workload="methods", spec=Method("query", "1b1", True, 10, 1.0, samples=samples)))

    assert reasons(queries(0), queries(500)) == ("the size of the table that is queried is unknown for A",)
    assert reasons(queries(500), queries(500)) == ()
