"""Targets side by side, by the command line: which cases there are, and what is refused."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli, FakeSession

REFUSED = [
    ("--target sqlite,lmdb", "--target: 'lmdb' is not one of sqlite, postgres"),
    ("--target dry", "--target: 'dry' is not one of sqlite, postgres"),
    ("--target postgres --driver apsw", "--driver apsw needs --target sqlite"),
    ("--target sqlite,postgres --checkpointer passive", "--checkpointer is not supported by postgres"),
    ("--target sqlite,postgres --pinned-reader", "--pinned-reader is not supported by postgres"),
]


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(("options", "told"), REFUSED)
def test_what_a_target_can_not_do_is_refused_in_a_line(cli: Cli, options: str, told: str) -> None:
    said = cli("kv", *options.split())
    assert (said.code, len(said.lines)) == (2, 1)
    assert told in said.err


@pytest.mark.parametrize(
    ("options", "drivers"),
    [
        ("--target sqlite,postgres", ("sqlite3", "psycopg")),
        ("--target postgres,sqlite --driver apsw", ("psycopg", "apsw")),
        ("--target postgres", ("psycopg",)),
        ("--driver psycopg", ("psycopg",)),
        # What means something to one of them is for that one.
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
