"""Groups of a plan share a table if their cases differ in a single option."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sqlstress.analysis.group import Group, group_runs, merge_groups
from sqlstress.experiments.kv.spec import Checkpointing
from sqlstress.report import Run
from sqlstress.report.case import Case
from tests.analysis.hand_made import run

CASE = Case()


def with_settings(case: Case = CASE, **changes: Any) -> Case:
    return replace(case, settings=replace(case.settings, **changes))


def with_load(case: Case = CASE, **changes: Any) -> Case:
    return replace(case, spec=replace(case.spec, **changes))


def swept(*cases: Case) -> list[Run]:
    """Return each case with 1 and 4 processes."""
    return [run(1, count, case=case) for case in cases for count in (1, 4)]


def tables(*cases: Case) -> list[tuple[str, list[str]]]:
    """Return, for each table, the option in which its parts differ, and its values."""
    return [shape(table) for table in merge_groups(group_runs(swept(*cases)))]


def shape(group: Group) -> tuple[str, list[str]]:
    return group.setting, [group.value(part.case) for part in group.parts]


@pytest.mark.parametrize(
    ("other", "setting", "value"),
    [
        (with_settings(synchronous="normal"), "synchronous", "normal"),
        (with_settings(journal_mode="delete"), "journal-mode", "delete"),
        (replace(CASE, driver="apsw"), "driver", "apsw"),
        (with_load(begin="deferred"), "begin", "deferred"),
        (with_load(value_size=1000), "value-size", "1000"),
    ],
)
def test_cases_that_differ_in_one_option_share_a_table(other: Case, setting: str, value: str) -> None:
    ((table_setting, values),) = tables(CASE, other)
    assert (table_setting, values[1]) == (setting, value)


def test_checkpointers_share_a_table_with_automatic_checkpoints() -> None:
    checkpointers = [Checkpointing(mode="passive"), Checkpointing(mode="restart", pinned_reader=True)]
    other_cases = [
        with_settings(with_load(checkpointing=checkpointing), wal_autocheckpoint=0)
        for checkpointing in checkpointers
    ]
    assert tables(CASE, *other_cases) == [("checkpointer", ["none", "passive", "restart + pinned reader"])]


@pytest.mark.parametrize(
    "other",
    [
        with_settings(with_load(batch=10), synchronous="normal"),
        replace(CASE, duration_s=9.0),
        replace(CASE, ops=100),
        replace(CASE, driver="dry"),
    ],
    ids=["two options", "window", "amount", "a driver that stores nothing"],
)
def test_cases_with_more_differences_have_separate_tables(other: Case) -> None:
    assert tables(CASE, other) == [("", []), ("", [])]


def test_option_that_leaves_fewer_tables_is_joined() -> None:
    levels = [with_settings(synchronous=level) for level in ("full", "normal", "off")]
    both = [replace(case, driver=driver) for driver in ("sqlite3", "apsw") for case in levels]
    assert tables(*both) == [("synchronous", ["full", "normal", "off"])] * 2


def test_own_tables_and_values_of_equal_text_are_not_joined() -> None:
    cases = [with_settings(Case(workload="cycles"), synchronous=level) for level in ("full", "normal")]
    assert {setting for setting, _ in tables(*cases)} == {""}
    twin = with_settings(pragmas=(("a", "1, b=2"),)), with_settings(pragmas=(("a", "1"), ("b", "2")))
    assert tables(*twin) == [("", []), ("", [])]
    groups = group_runs(swept(CASE))
    assert merge_groups(groups) == groups


def test_places_in_a_joined_table_name_the_value_first() -> None:
    cases = [with_settings(synchronous=level) for level in ("full", "normal")]
    (whole,) = merge_groups(group_runs(swept(*cases)))
    full, normal = ([single_run.case for single_run in part.runs] for part in whole.parts)
    assert whole.place(normal[1]) == "normal, 4 processes on 1 bucket"
    assert whole.places([*full, *normal]) == "every case"
    assert whole.places(normal) == "synchronous normal"
    assert whole.places([full[0], *normal]) == (
        "synchronous normal and synchronous full with 1 process on 1 bucket"
    )
    (short,) = merge_groups(group_runs([run(1, 2, case=case) for case in cases]))
    assert short.place(short.runs[1].case) == "normal"
