"""Tests of the way from the options of `keys` to its cases."""

from __future__ import annotations

from typing import Any

from sqlstress.experiments.classics.spec import ID_TYPES, SCHEMAS, USUAL_TYPES, Picks
from sqlstress.plan import cases_of
from sqlstress.report.case import Case, Settings
from tests.commands import by_name


def selected_cases(**given: Any) -> tuple[Case, ...]:
    return cases_of({"seed": "1"} | {name.replace("_", "-"): given[name] for name in given}, "keys")


def test_default_options_select_two_schemas_and_the_usual_types() -> None:
    cases = selected_cases()
    schemas = ("id-rowid", "no-key")
    loads = [Picks(schema, id_type, users=150) for schema in schemas for id_type in USUAL_TYPES]
    settings = Settings(synchronous="normal", pragmas=(("foreign_keys", "on"),))
    assert [case.spec for case in cases] == loads
    assert {(case.workload, case.concurrency, case.settings) for case in cases} == {("keys", 4, settings)}
    assert loads[0] == Picks("id-rowid", "int", 150, 100, 10_000, "deferred")
    assert {case.repeat for case in cases} == {5}


def test_full_selects_every_schema_with_every_type() -> None:
    loads = [case.spec for case in selected_cases(full=True, users="2000", picks="200")]
    expected = [Picks(schema, id_type, users=2000, picks=200) for schema in SCHEMAS for id_type in ID_TYPES]
    assert loads == expected


def test_full_measures_the_given_types_only() -> None:
    loads = [case.spec for case in selected_cases(full=True, id_type="ulid")]
    assert loads == [Picks(schema, "ulid", users=150) for schema in SCHEMAS]


def test_cases_are_ordered_by_schema_concurrency_and_type() -> None:
    cases = selected_cases(schema="id-norowid", id_type="ulid,int", concurrency="1,2")
    assert [(case.concurrency, case.spec.id_type) for case in cases] == [
        (processes, id_type) for processes in (1, 2) for id_type in ("ulid", "int")
    ]


def test_foreign_keys_are_enforced_unless_a_pragma_turns_them_off() -> None:
    assert selected_cases(pragma=("temp_store=memory",))[0].settings.pragmas == (
        ("foreign_keys", "on"),
        ("temp_store", "memory"),
    )
    assert selected_cases(pragma=("foreign_keys=off",))[0].settings.pragmas == (("foreign_keys", "off"),)


def test_options_set_their_case_fields() -> None:
    given = {
        "concurrency": "2", "schema": "id-norowid", "id_type": "ulid", "repeat": "3",
        "users": "200", "picks": "20", "items": "2_000", "begin": "immediate", "journal_mode": "delete",
        "synchronous": "full", "fullfsync": "on", "wal_autocheckpoint": "9", "page_size": "8192",
        "cache_size": "-2000", "mmap_size": "65536", "pragma": ("temp_store=memory",), "busy_timeout": "5s",
        "driver": "apsw", "verify": "none", "max_failed": "10%", "seed": "7",
    }  # fmt: skip
    assert {name.replace("_", "-") for name in given} | {"full"} == by_name("keys").keys()
    pragmas = (("foreign_keys", "on"), ("temp_store", "memory"))
    assert selected_cases(**given) == (
        Case(
            workload="keys",
            driver="apsw",
            concurrency=2,
            duration_s=0.0,
            warmup_s=0.0,
            repeat=3,
            seed=7,
            verify="none",
            max_failed=0.1,
            settings=Settings("delete", "full", True, 9, 8192, -2000, 65536, pragmas, 5000),
            spec=Picks("id-norowid", "ulid", 200, 20, 2000, "immediate"),
        ),
    )
