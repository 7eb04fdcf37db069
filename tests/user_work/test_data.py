"""Options of the database and its checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.errors import UsageError
from sqlstress.user_work.options import (
    Data,
    DataOptions,
    Invariant,
    invariants,
    parse_weighted,
    read,
    read_text_of,
)

CHECKS = """-- money
SELECT id FROM account WHERE balance < 0;

SELECT 1 WHERE (SELECT count(*) FROM account) <> 9;
"""


def test_check_is_named_by_the_comment_before_it_or_its_number() -> None:
    assert list(invariants("inv.sql", CHECKS)) == [
        Invariant("money", "inv.sql:2", "SELECT id FROM account WHERE balance < 0"),
        Invariant("check 2", "inv.sql:4", "SELECT 1 WHERE (SELECT count(*) FROM account) <> 9"),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("DELETE FROM a", "inv.sql:1:1: a check must be a query"),
        ("SELECT 1;\n  SELECT :x", "inv.sql:2:3: a check cannot use variables, and :x is one"),
        ("-- nothing\n", "has no check"),
    ],
)
def test_invalid_check_is_refused_with_its_place(text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        list(invariants("inv.sql", text))


def test_checks_are_read_and_the_setup_has_a_digest(tmp_path: Path) -> None:
    for name, text in (("s.sql", "CREATE TABLE account (id)"), ("c.sql", CHECKS), ("c.py", "")):
        (tmp_path / name).write_text(text)
    setup, checks, python = (str(tmp_path / name) for name in ("s.sql", "c.sql", "c.py"))
    found = read(DataOptions(setup=setup, check=(checks, f"{python}:money")))
    assert [check.name for check in found.checks] == ["money", "check 2", "money"]
    assert found.setup == setup and len(found.setup_digest) == 64 and not found.database
    assert read(DataOptions()) == Data()


def test_unreadable_file_is_refused_before_the_run(tmp_path: Path) -> None:
    for gone in ({"setup": "gone.sql"}, {"setup": "."}, {"check": ("gone.sql",)}, {"check": ("gone.py:x",)}):
        with pytest.raises(UsageError, match=r"cannot read|no such file|is not a file"):
            read(DataOptions(**gone))
    (tmp_path / "s.sql").write_text("CREATE TABLE t (x 'y)")
    with pytest.raises(UsageError, match=r"s\.sql:1:19: ' opens here"):
        read(DataOptions(setup=str(tmp_path / "s.sql")))
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")
    for most, problem in ((100, "it is not text"), (1, "larger than 1 bytes")):
        with pytest.raises(UsageError, match=problem):
            read_text_of(str(tmp_path / "x"), most)


def test_weight_follows_the_name_and_an_invalid_weight_is_refused() -> None:
    assert [parse_weighted(word) for word in ("a.sql", "a.sql@3", "a@b")] == [
        ("a.sql", 1),
        ("a.sql", 3),
        ("a@b", 1),
    ]
    for word in ("a@0", "a@1000001"):
        with pytest.raises(UsageError, match="the weight must be a whole number from 1 to 1,000,000"):
            parse_weighted(word)
