"""Tests of what the arms of an A/B test are said to differ in."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.analysis.ab import arm_differences
from sqlstress.experiments.sql.spec import Scripted, Scripts
from sqlstress.report import Arm, Report, SqliteBuild
from sqlstress.report.case import Case, Settings
from sqlstress.user_work.options import Data
from tests.ab_report import CASE, TEST, ab_report

APSW = replace(CASE, driver="apsw")
OLD = SqliteBuild("sqlite3", "3.12", "3.40.1", "2022-12-28 df5c253c", ("THREADSAFE=1",))
NEW = SqliteBuild(
    "apsw", "3.54.1.0", "3.54.1", "2026-10-01 0a1b2c3d", ("ENABLE_SETLK_TIMEOUT", "THREADSAFE=1")
)


def differing(
    a: Arm, b: Arm, own: Case = CASE, other: Case = CASE, builds: tuple[SqliteBuild, ...] = ()
) -> list[str]:
    report: Report = ab_report([[1.0]], decided=False)
    report = replace(report, environment=replace(report.environment, builds=builds))
    return list(arm_differences(report, replace(TEST, arms=(a, b)), own, other))


def test_the_arms_differ_in_what_their_cases_and_their_pythons_differ_in() -> None:
    other = replace(APSW, settings=Settings(synchronous=None, pragmas=(("a", "1"),)))
    a = Arm("A", (), "old/python", "CPython 3.11.7", "0.1.0", (replace(OLD, compile_options=()),))
    assert differing(a, Arm("B"), CASE, other) == [
        "driver: sqlite3 and apsw",
        "synchronous: full and not set",
        "pragmas: not set and ['a', '1']",
        "Python: CPython 3.11.7 and not set",
        "sqlstress: 0.1.0 and not set",
        "SQLite: 3.40.1 and not set",
    ]
    assert differing(Arm("A"), Arm("B")) == []


def test_two_drivers_of_one_python_differ_in_their_libraries_too() -> None:
    assert differing(Arm("A"), Arm("B"), CASE, APSW, (OLD, NEW)) == [
        "driver: sqlite3 and apsw",
        "SQLite: 3.40.1 and 3.54.1",
        "SQLite's options: none of these and ENABLE_SETLK_TIMEOUT",
    ]


def test_two_builds_of_one_version_are_told_apart_by_their_check_ins() -> None:
    patched = replace(NEW, version=OLD.version, compile_options=OLD.compile_options)
    assert differing(Arm("A"), Arm("B"), CASE, APSW, (OLD, patched)) == [
        "driver: sqlite3 and apsw",
        "SQLite: 3.40.1 (2022-12-28 df5c253c) and 3.40.1 (2026-10-01 0a1b2c3d)",
    ]


def test_each_python_has_the_library_of_its_arms_driver() -> None:
    a, b = (
        Arm(name, (), f"{name}/bin/python", "CPython 3.14.0", "0.2.0", (OLD, build))
        for name, build in (("A", NEW), ("B", replace(NEW, version="3.53.0")))
    )
    assert differing(a, b) == []
    assert differing(a, b, APSW, APSW) == ["SQLite: 3.54.1 and 3.53.0"]


def test_arms_of_scripts_differ_in_their_names_and_weights() -> None:
    def case(*scripts: Scripted, digest: str) -> Case:
        return Case("sql", spec=Scripts(scripts, Data(setup="s.sql", setup_digest=digest)))

    old, new = Scripted("old.sql", "SELECT 1;"), Scripted("new.sql", "SELECT 2;", 3)
    found = differing(Arm("A"), Arm("B"), case(old, digest="a"), case(old, new, digest="b"))
    assert found == ["scripts: old.sql and old.sql; new.sql@3"]
