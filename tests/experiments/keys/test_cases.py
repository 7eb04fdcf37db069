"""Tests of the way from the options of `keys` to its cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.experiments.keys.experiment import ID_TYPES, SCHEMAS, Picks
from sqlstress.plan import MOST_CASES, cases_of, from_toml
from sqlstress.report.case import Case, Settings
from tests.commands import by_name

WRITTEN: dict[str, list[Any]] = {
    "concurrency": ["1,4", "2"],
    "schema": ["id-norowid", "no-key", "pair-rowid,id-rowid"],
    "full": [True],
    "id-type": ["uuid7,int", "ulid"],
    "made-by": ["sqlite", "python,sqlite"],
    "repeat": ["3"],
    "users": ["2000", "3"],
    "picks": ["200", "5000"],
    "items": ["20_000", "50"],
    "begin": ["immediate"],
    "journal-mode": ["delete"],
    "synchronous": ["full"],
    "fullfsync": ["on"],
    "wal-autocheckpoint": ["0"],
    "page-size": ["8192"],
    "cache-size": ["-2000"],
    "mmap-size": ["0"],
    "pragma": [("temp_store=memory",), ("foreign_keys=off",), ("locking_mode=exclusive",)],
    "busy-timeout": ["5s"],
    "busy": ["fair"],
    "driver": ["dry", "apsw"],
    "verify": ["none"],
    "max-failed": ["10%"],
    "seed": ["7"],
}
"""Values of every option that are right by themselves."""


def planned(**given: Any) -> tuple[Case, ...]:
    return cases_of({"seed": "1"} | {name.replace("_", "-"): given[name] for name in given}, "keys")


def test_without_options_two_schemas_are_planned_for_every_type_in_five_passes_over_little_work() -> None:
    cases = planned()
    loads = [Picks(schema, id_type, users=300) for schema in ("id-rowid", "no-key") for id_type in ID_TYPES]
    settings = Settings(synchronous="normal", pragmas=(("foreign_keys", "on"),))
    assert [case.spec for case in cases] == loads
    assert {(case.workload, case.concurrency, case.settings) for case in cases} == {("keys", 4, settings)}
    assert loads[0] == Picks("id-rowid", "int", "python", 300, 100, 10_000, "deferred")
    assert {case.repeat for case in cases} == {5}


def test_full_is_every_schema_for_every_type() -> None:
    loads = [case.spec for case in planned(full=True, users="2000", picks="200")]
    each = [Picks(schema, id_type, users=2000, picks=200) for schema in SCHEMAS for id_type in ID_TYPES]
    assert loads == each


def test_schemas_are_outside_then_concurrencies_then_makers_and_types_inside() -> None:
    cases = planned(schema="id-norowid", id_type="ulid,int", made_by="python,sqlite", concurrency="1,2")
    assert [(case.concurrency, one.made_by, one.id_type) for case in cases if (one := case.spec)] == [
        (processes, maker, id_type)
        for processes in (1, 2)
        for maker in ("python", "sqlite")
        for id_type in ("ulid", "int")
    ]


def test_where_picks_have_no_id_of_their_own_nobody_makes_it() -> None:
    cases = planned(schema="id-rowid,no-key", id_type="ulid", made_by="sqlite,python")
    assert [(one.schema, one.made_by) for case in cases if (one := case.spec)] == [
        ("id-rowid", "sqlite"),
        ("id-rowid", "python"),
        ("no-key", "python"),
    ]


def test_foreign_keys_are_enforced_unless_it_is_said_otherwise() -> None:
    assert planned(pragma=("temp_store=memory",))[0].settings.pragmas == (
        ("foreign_keys", "on"),
        ("temp_store", "memory"),
    )
    assert planned(pragma=("foreign_keys=off",))[0].settings.pragmas == (("foreign_keys", "off"),)


def test_every_option_has_an_effect_of_its_own() -> None:
    assert WRITTEN.keys() == by_name("keys").keys()
    for name, values in WRITTEN.items():
        for value in values:
            plain = {"concurrency": "1", "items": "10_000", "seed": "3"}
            if name == "items":
                plain["picks"] = "10"
            assert cases_of({**plain, name: value}, "keys") != cases_of(plain, "keys"), name


GIVEN = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) | st.text(max_size=9) for name, values in WRITTEN.items()}
)


@given(GIVEN)
def test_any_command_line_is_a_plan_or_refused_in_a_line(options: dict[str, Any]) -> None:
    try:
        cases = cases_of(options, "keys")
    except UsageError as error:
        assert len(str(error)) < 240
        assert "\n" not in str(error)
        return
    assert 1 <= len(cases) <= MOST_CASES
    assert len(set(cases)) == len(cases)
    for case in cases:
        assert case.spec.most_picks <= case.spec.items
        assert case.concurrency <= case.spec.users
        assert case.spec.own_id or case.spec.made_by == "python"


def test_a_plan_names_it_as_its_workload(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        'seed = 4\n[[case]]\nworkload = "keys"\nschema = ["no-key"]\nid-type = ["ulid", "int"]\nusers = 50\n',
        encoding="utf-8",
    )
    assert [case.spec for case in from_toml(path)] == [
        Picks("no-key", id_type, users=50) for id_type in ("ulid", "int")
    ]
