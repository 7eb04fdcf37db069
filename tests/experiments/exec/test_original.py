"""The original database of --database: refused in commands, and protected while they run."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiments.exec.refusal import refuse_original
from sqlstress.experiments.exec.sampling import open_files_of
from sqlstress.experiments.exec.work import Original, changes, marked_unread, state_of, with_libraries
from sqlstress.recording import LIBRARIES, LOADED, LOCKLESS, LOST_LOCKS
from sqlstress.report.results import Sighting
from sqlstress.targets.sqlite import open_files
from sqlstress.targets.sqlite.open_files import Openers

MARKER = ("SQLSTRESS_TEST_TRIAL", "5f")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the open files of processes")


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = (tmp_path / "app.db").resolve()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.commit()
    return path


def insert(path: Path) -> None:
    """Insert a row in a process that ends at once."""
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('INSERT INTO t VALUES (1)'); "
        "c.commit(); c.close()"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)


@pytest.mark.parametrize(
    "word",
    [
        "app.db",
        "./app.db",
        "{path}",
        "--db=app.db",
        "file:app.db?mode=rw",
        "sqlite:///{path}",
        'sqlite3 "app.db" "SELECT 1"',
    ],
)
def test_word_that_is_the_original_is_refused(database: Path, word: str) -> None:
    with pytest.raises(UsageError, match="is the original --database, not its copy"):
        refuse_original(["sh", word.replace("{path}", str(database))], "app.db")


def test_path_with_spaces_is_refused(database: Path) -> None:
    folder = database.parent / "my folder"
    folder.mkdir()
    path = database.rename(folder / "app.db")
    with pytest.raises(UsageError, match="is the original --database"):
        refuse_original(["sqlite3", str(path)], str(path))


def test_hard_link_to_the_original_is_refused(database: Path) -> None:
    Path("hard.db").hardlink_to(database)
    with pytest.raises(UsageError, match=r"'hard\.db', which is the original"):
        refuse_original(["sqlite3", "hard.db"], "app.db")


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("connect('{path}')", True),
        ("connect(os.environ.get('SQLSTRESS_DATABASE', '{path}'))", False),
        ("connect(os.environ.get('SQLSTRESS_DATABASE') or '{path}')", False),
        ('sqlite3 "${SQLSTRESS_DATABASE:-{path}}"', False),
        ("open($ENV{SQLSTRESS_DATABASE} // '{path}')", False),
        ("open(process.env['SQLSTRESS_DATABASE'] ?? \"{path}\")", False),
        ("cat $SQLSTRESS_DATABASE; sqlite3 {path}", True),
        ("connect(os.environ.get('SQLSTRESS_DATABASE', '{path}')); connect('{path}')", True),
        ("connect('elsewhere.db')", False),
        ("connect('{path}.bak')", False),
    ],
)
def test_script_that_names_the_original_is_refused(database: Path, text: str, refused: bool) -> None:
    Path("script.py").write_text(text.replace("{path}", str(database)))
    if refused:
        with pytest.raises(UsageError, match=r"'script\.py' names the original"):
            refuse_original([sys.executable, "script.py"], "app.db")
    else:
        refuse_original([sys.executable, "script.py", "{db}", "SELECT 1"], "app.db")


def test_read_of_a_file_is_visible(tmp_path: Path) -> None:
    (copy := tmp_path / "copy.db").write_bytes(b"1")
    changed_ns = copy.stat().st_mtime_ns
    if marked_unread(copy) is None:
        pytest.skip("this file system does not note that a file was read")
    original = Original(str(tmp_path / "app.db"), copy, MARKER)
    assert original.copy_is_unread
    assert copy.stat().st_mtime_ns == changed_ns
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]
    copy.read_bytes()
    assert not original.copy_is_unread


def test_file_is_never_unread_without_access_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copy := tmp_path / "copy.db").write_bytes(b"1")
    read = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        before, data = path.stat(), read(path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return data

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert marked_unread(copy) is None
    assert not Original(str(tmp_path / "app.db"), copy, MARKER).copy_is_unread


def test_changes_name_each_file(database: Path) -> None:
    before = state_of(database)
    assert changes(before, state_of(database)) == ""
    database.with_name("app.db-wal").write_bytes(b"1234")
    assert changes(before, state_of(database)) == "app.db-wal appeared"
    with database.open("ab") as file:
        file.write(b"\0" * 8192)
    assert "app.db changed from" in changes(before, state_of(database))


def test_change_without_use_of_the_copy_stops_the_load(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(database.read_bytes())
    original = Original(str(database), copy, MARKER)
    original.check(opened_by_command=False, copy_was_opened=False)
    insert(database)
    with pytest.raises(EnvironmentFailure, match=r"probably uses .*app\.db.*no command has used the copy"):
        original.check(opened_by_command=False, copy_was_opened=False)


def test_change_by_an_unseen_program_stops_the_load_with_known_open_files(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(database.read_bytes())
    original = Original(str(database), copy, MARKER)
    insert(database)
    monkeypatch.setattr(open_files, "openers", lambda path: Openers((), 0))
    with pytest.raises(EnvironmentFailure, match=r"probably uses .*no other program has it open"):
        original.check(opened_by_command=False, copy_was_opened=True)
    for unknown in (None, Openers((), 3)):
        monkeypatch.setattr(open_files, "openers", lambda path, answer=unknown: answer)
        original.unexplained = ""
        insert(database)
        original.check(opened_by_command=False, copy_was_opened=True)
        assert "app.db" in original.unexplained


@linux
def test_program_that_has_the_original_open_is_not_accused(database: Path, tmp_path: Path) -> None:
    original = Original(str(database), tmp_path / "copy.db", MARKER)
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "c.execute('INSERT INTO t VALUES (1)'); print(1, flush=True); sys.stdin.readline()"
    )
    words = [sys.executable, "-c", code, str(database)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout and program.stdout.readline()
        original.check(opened_by_command=False, copy_was_opened=False)
        found = [file.identity for file in open_files_of(program.pid)]
        assert original.unexplained == "" and open_files.identity(database) in found
        assert original.users and original.users[1] == program.pid
        program.kill()
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **dict([MARKER])}
    ) as command:
        assert command.stdout and command.stdout.readline()
        with pytest.raises(EnvironmentFailure, match="the command uses the original"):
            original.check(opened_by_command=False, copy_was_opened=True)
        command.kill()


def test_command_that_was_seen_with_the_original_stops_the_load(database: Path, tmp_path: Path) -> None:
    original = Original(str(database), tmp_path / "copy.db", MARKER)
    with pytest.raises(EnvironmentFailure, match="a command has it open"):
        original.check(opened_by_command=True, copy_was_opened=True)


def test_two_libraries_explain_the_lost_locks_of_all_processes(tmp_path: Path) -> None:
    traits = {"file": "kv.db", "at": f"{tmp_path / 'no.so'}"}
    lockless, loaded, libraries = (
        Sighting(LOST_LOCKS, kind, 1, traits=traits) for kind in (LOCKLESS, LOADED, LIBRARIES)
    )
    assert [sighting.what for sighting in with_libraries([lockless, loaded])] == [LOCKLESS]
    assert [sighting.what for sighting in with_libraries([lockless, libraries])] == [LIBRARIES]
