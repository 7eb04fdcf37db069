"""Which groups of a plan share a table: those whose cases differ in one option."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sqlstress.analysis.group import Group, group_runs, joined
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
    """Return in which option the parts of each table differ, and their values."""
    return [shape(one) for one in joined(group_runs(swept(*cases)))]


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
    ((found, values),) = tables(CASE, other)
    assert (found, values[1]) == (setting, value)


def test_checkpointers_share_a_table_with_the_workers_that_checkpoint_themselves() -> None:
    asked = [Checkpointing(mode="passive"), Checkpointing(mode="restart", pinned_reader=True)]
    others = [with_settings(with_load(checkpointing=one), wal_autocheckpoint=0) for one in asked]
    assert tables(CASE, *others) == [("checkpointer", ["none", "passive", "restart + pinned reader"])]


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
def test_cases_that_differ_in_more_or_in_what_was_measured_do_not(other: Case) -> None:
    assert tables(CASE, other) == [("", []), ("", [])]


def test_of_two_options_the_one_stays_in_the_table_that_leaves_fewer() -> None:
    levels = [with_settings(synchronous=level) for level in ("full", "normal", "off")]
    both = [replace(case, driver=driver) for driver in ("sqlite3", "apsw") for case in levels]
    assert tables(*both) == [("synchronous", ["full", "normal", "off"])] * 2


def test_tables_of_an_experiments_own_and_values_that_are_the_same_in_words_stay_as_they_were() -> None:
    cases = [with_settings(Case(workload="cycles"), synchronous=level) for level in ("full", "normal")]
    assert {setting for setting, _ in tables(*cases)} == {""}
    twin = with_settings(pragmas=(("a", "1, b=2"),)), with_settings(pragmas=(("a", "1"), ("b", "2")))
    assert tables(*twin) == [("", []), ("", [])]
    groups = group_runs(swept(CASE))
    assert joined(groups) == groups


def test_places_say_the_value_and_no_more_than_that_where_it_is_enough() -> None:
    cases = [with_settings(synchronous=level) for level in ("full", "normal")]
    (whole,) = joined(group_runs(swept(*cases)))
    full, normal = ([one.case for one in part.runs] for part in whole.parts)
    assert whole.place(normal[1]) == "normal, 4 processes on 1 bucket"
    assert whole.places([*full, *normal]) == "every case"
    assert whole.places(normal) == "synchronous normal"
    assert whole.places([full[0], *normal]) == (
        "synchronous normal and synchronous full with 1 process on 1 bucket"
    )
    (short,) = joined(group_runs([run(1, 2, case=case) for case in cases]))
    assert short.place(short.runs[1].case) == "normal"
