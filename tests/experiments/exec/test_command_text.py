"""Facts in the text of a command: busy timeouts, and programs that copy or move the database."""

from pathlib import Path

import pytest

from sqlstress.experiments.exec import Timeouts
from sqlstress.experiments.exec.command_text import CommandText
from sqlstress.experiments.exec.work import touches
from sqlstress.recording import COPIED, MOVED


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


IMPORTS_ROWS = """#!/bin/sh
# It waits up to 5 seconds: .timeout 5
DB=$1
sqlite3 -bail "$DB" <<SQL
%s
BEGIN IMMEDIATE;
INSERT INTO log VALUES ($2);
COMMIT;
SQL
sqlite3 "$DB.copy" "SELECT 1"
"""


def timeouts(script: str, name: str = "work.sh") -> Timeouts:
    Path(name).write_text(script, encoding="utf-8")
    return CommandText(("sh", name, "{db}", "{n}")).timeouts()


@pytest.mark.parametrize(
    ("statement", "short", "ms"),
    [
        ("PRAGMA busy_timeout = 5;", "PRAGMA busy_timeout = 5", "5"),
        ("PRAGMA busy_timeout(10);", "PRAGMA busy_timeout(10", "10"),
        (".timeout 0", ".timeout 0", "0"),
        (".timeout 5000", "", ""),
        ("PRAGMA busy_timeout = $WAIT;", "", ""),
    ],
)
def test_busy_timeout_in_a_script_is_found(statement: str, short: str, ms: str) -> None:
    found = timeouts(IMPORTS_ROWS % statement)
    assert (found.short, found.short_ms) == (short, ms)
    assert found.short_at == ("work.sh:5" if short else "")
    assert (found.shells, found.unset_at, found.bail, found.deferred) == ("yes", "", "yes", "")


def test_shell_without_a_timeout_is_found_with_its_line() -> None:
    found = timeouts(IMPORTS_ROWS % "SELECT 1;")
    assert (found.shells, found.unset_at) == ("yes", "work.sh:4")
    Path("set.sql").write_text(".timeout 5000\n", encoding="utf-8")
    assert timeouts('sqlite3 -init set.sql "$1" "DELETE FROM log"').unset_at == ""
    assert timeouts('sqlite3 "$1" < other.sql').unset_at == "work.sh:1"


def test_timeout_of_a_python_program_is_in_seconds() -> None:
    found = timeouts("import sqlite3\ndb = sqlite3.connect(sys.argv[1], timeout=0.02)\n", "work.py")
    assert found == Timeouts("timeout=0.02", "work.py:2", "20", "yes")


@pytest.mark.parametrize(
    ("line", "kind", "program"),
    [
        ('cp "$DB" "$DB.backup.$2"', COPIED, "cp"),
        ("if ! rsync -a $1 /backup/; then exit 1; fi", COPIED, "rsync"),
        ('gzip < "${DB}" > copy.gz', COPIED, "gzip"),
        ('tar -czf copy.tar.gz "$SQLSTRESS_DATABASE"', COPIED, "tar"),
        ('sqlite3 "$DB" "VACUUM INTO \'x\'" && mv x "$DB"', MOVED, "mv"),
        ('cp old.db "$DB"', MOVED, "cp"),
        ('cat old.db > "$DB"', MOVED, "cat >"),
    ],
)
def test_program_that_copies_or_moves_the_database_is_found(line: str, kind: str, program: str) -> None:
    Path("work.sh").write_text(f"DB=$1\n{line}\n", encoding="utf-8")
    assert CommandText(("sh", "work.sh", "{db}", "{n}")).touches() == [(kind, program, "work.sh:2")]


@pytest.mark.parametrize(
    "line",
    [
        'sqlite3 "$DB" ".backup $DB.backup"',
        'sqlite3 "$DB" "VACUUM INTO \'$DB.backup\'"; cp "$DB.backup" /backup; rm -f "$DB.backup"',
        'cp schema.sql "$DB.sql"',
        'tar -cf copy.tar "$DB" "$DB-wal"',
        'echo "cp $DB is wrong"',
    ],
)
def test_right_copy_is_not_found(line: str) -> None:
    Path("work.sh").write_text(f"DB=$1\n{line}\n", encoding="utf-8")
    assert CommandText(("sh", "work.sh", "{db}", "{n}")).touches() == []


@pytest.mark.parametrize(
    ("script", "is_shared", "kinds"),
    [
        ('cp "$1" copy.$2\nmv new.db "$1"\n', True, [COPIED]),
        ('cp "$1" copy.$2\nmv new.db "$1"\n', False, []),
        ('flock 9\ncp "$1" copy.$2\n', True, []),
    ],
    ids=["used by two commands", "used by one command", "own lock"],
)
def test_copy_in_the_text_counts_only_while_the_database_is_in_use(
    script: str, is_shared: bool, kinds: list[str]
) -> None:
    Path("work.sh").write_text(script, encoding="utf-8")
    text = CommandText(("sh", "work.sh", "{db}", "{n}"))
    found = touches([], text, "kv.db", is_shared=is_shared, is_moved=False)
    assert [sighting.what for sighting in found] == kinds
    moved = touches([], text, "kv.db", is_shared=False, is_moved=True)
    assert [sighting.what for sighting in moved] == [MOVED]
