"""Tests of the cases' names, by which trackers tell them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.experiments.keys.experiment import Picks
from sqlstress.experiments.kv.experiment import Checkpointing, Load
from sqlstress.report import Report, Run
from sqlstress.report.case import Case, Settings
from sqlstress.show.trackers import case_names, surroundings
from tests.render.hostile import hostile_report
from tests.render.variants import EXAMPLE, UNKNOWN


def names(*cases: Case) -> tuple[str, ...]:
    return case_names(replace(EXAMPLE, runs=tuple(map(Run, cases))))


@pytest.mark.parametrize(
    ("case", "ending"),
    [
        (Case(spec=Load(read_ratio=0.9, batch=10)), "read-ratio=0.9, batch=10"),
        (Case(settings=Settings(synchronous="normal")), "synchronous=normal"),
        (Case(settings=Settings(synchronous=None, fullfsync=True)), "synchronous=unset, fullfsync=on"),
        (Case(settings=Settings(pragmas=(("temp_store", "memory"),))), "temp_store=memory"),
        (Case(driver="apsw", ops=500), "driver=apsw, ops=500"),
        (Case(spec=Load(checkpointing=Checkpointing("passive"))), "mode=passive"),
        (
            Case(workload="keys", spec=Picks("no-key", "uuid7", users=50)),
            "no-key, uuid7, 1 process, users=50",
        ),
    ],
    ids=str,
)
def test_what_is_not_a_default_is_in_the_name(case: Case, ending: str) -> None:
    assert names(case)[0].endswith(f", {ending}") or names(case)[0].endswith(f": {ending}")


def test_how_surely_a_case_is_measured_is_not_in_its_name() -> None:
    other = Case(duration_s=10, warmup_s=2, repeat=5, seed=99, verify="full")
    assert names(other) == names(Case())


def test_a_name_does_not_depend_on_the_other_cases_of_the_report() -> None:
    whole = case_names(EXAMPLE)
    assert [case_names(replace(EXAMPLE, runs=(run,)))[0] for run in EXAMPLE.runs] == list(whole)


def test_the_same_case_twice_gets_two_names() -> None:
    assert names(Case(), Case()) == ("kv: 1 file, 1 process", "kv: 1 file, 1 process (2)")


def check_names(report: Report) -> None:
    """Check that names are distinct, and of one short line."""
    found = case_names(report)
    assert len(set(found)) == len(found) == len(report.runs)
    assert all(name.isprintable() and len(name) < 210 for name in found)


def test_the_surroundings_are_system_and_architecture() -> None:
    assert surroundings(EXAMPLE.environment) == "Linux x86_64"
    assert surroundings(UNKNOWN) == "Darwin"
    assert surroundings(hostile_report().environment).isprintable()
