"""What the options of the database and its checks mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.errors import UsageError
from sqlstress.user_work.files import text_of, weighted
from sqlstress.user_work.options import Data, DataOptions, Invariant, invariants, read

CHECKS = """-- money
SELECT id FROM account WHERE balance < 0;

SELECT 1 WHERE (SELECT count(*) FROM account) <> 9;
"""


def test_a_check_is_called_as_the_comment_before_it_says_or_by_its_number() -> None:
    assert list(invariants("inv.sql", CHECKS)) == [
        Invariant("money", "inv.sql:2", "SELECT id FROM account WHERE balance < 0"),
        Invariant("check 2", "inv.sql:4", "SELECT 1 WHERE (SELECT count(*) FROM account) <> 9"),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("DELETE FROM a", "inv.sql:1:1: a check is a query"),
        ("SELECT 1;\n  SELECT :x", "inv.sql:2:3: a check has no variables: :x has no value"),
        ("-- nothing\n", "holds no check"),
    ],
)
def test_what_is_no_check_is_told_with_its_place(text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        list(invariants("inv.sql", text))


def test_all_is_read_and_the_setup_by_its_digest(tmp_path: Path) -> None:
    for name, text in (("s.sql", "CREATE TABLE account (id)"), ("c.sql", CHECKS), ("c.py", "")):
        (tmp_path / name).write_text(text)
    setup, checks, python = (str(tmp_path / name) for name in ("s.sql", "c.sql", "c.py"))
    found = read(DataOptions(setup=setup, check=(checks, f"{python}:money")))
    assert [one.name for one in found.checks] == ["money", "check 2", "money"]
    assert found.setup == setup and len(found.setup_digest) == 64 and not found.database
    assert read(DataOptions()) == Data()


@pytest.mark.parametrize(
    "options",
    [
        DataOptions(setup="gone.sql"),
        DataOptions(setup="."),
        DataOptions(check=("gone.sql",)),
        DataOptions(check=("gone.py:x",)),
    ],
)
def test_a_file_that_is_not_there_is_told(options: DataOptions) -> None:
    with pytest.raises(UsageError, match=r"cannot read|no such file|is no file"):
        read(options)


def test_a_setup_that_can_not_be_split_is_told_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text("CREATE TABLE t (x 'y)")
    with pytest.raises(UsageError, match=r"s\.sql:1:19: ' is opened here"):
        read(DataOptions(setup=str(tmp_path / "s.sql")))


def test_a_file_of_no_text_or_too_much_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="it is not text"):
        text_of(str(tmp_path / "x"), 100)
    with pytest.raises(UsageError, match="larger than 1 bytes"):
        text_of(str(tmp_path / "x"), 1)


@pytest.mark.parametrize(
    ("word", "expected"), [("a.sql", ("a.sql", 1)), ("a.sql@3", ("a.sql", 3)), ("a@b", ("a@b", 1))]
)
def test_a_weight_stands_behind_the_name(word: str, expected: tuple[str, int]) -> None:
    assert weighted(word) == expected


@pytest.mark.parametrize("word", ["a@0", "a@1000001"])
def test_a_weight_that_is_none_is_told(word: str) -> None:
    with pytest.raises(UsageError, match="a weight is a whole number from 1 to 1,000,000"):
        weighted(word)
