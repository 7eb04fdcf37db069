"""Several targets in one command line: the cases, and refused arguments."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, FakeSession, assert_golden_refusals
from tests.pages import ROOT

RIGHT, SCHEMA = (ROOT / "examples" / "transfer" / f"{name}.sql" for name in ("right", "schema"))


def test_unsupported_option_of_a_target_is_a_one_line_error(cli: Cli) -> None:
    pytest.importorskip("psycopg")
    Path("theirs.sql").write_text("CREATE TABLE public.theirs (x int);", encoding="utf-8")
    Path("own.py").write_text("from sqlstress import transaction\n@transaction\ndef t(c): pass\n")
    assert_golden_refusals(cli, "targets.txt")
    said = cli("sql", str(RIGHT), f"--setup={SCHEMA}", "--driver=psycopg")
    assert said.code == 2 and "right.sql:5:1: BEGIN IMMEDIATE is SQLite's: write BEGIN" in said.lines[0]


@pytest.mark.parametrize(
    ("options", "drivers"),
    [
        ("--target sqlite,postgres", ("sqlite3", "psycopg")),
        ("--target postgres,sqlite --driver apsw", ("psycopg", "apsw")),
        ("--target postgres", ("psycopg",)),
        ("--driver psycopg", ("psycopg",)),
        # An option that only one of the targets supports applies to that target.
        ("--target sqlite,postgres --journal-mode delete", ("sqlite3", "psycopg")),
    ],
)
def test_each_target_has_a_case_at_each_place_driven_by_the_same_loop(
    cli: Cli, session: type[FakeSession], options: str, drivers: tuple[str, ...]
) -> None:
    cli("kv", "-c", "1,2", *options.split())
    assert [(case.concurrency, case.driver) for case in session.cases] == [
        (count, driver) for count in (1, 2) for driver in drivers
    ]
    assert len({case.spec.loop for case in session.cases}) == 1
