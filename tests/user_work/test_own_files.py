"""The user's code can open databases of the trial's folder, and no other, with every library."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import sqlstress
from sqlstress.errors import SqlstressError
from sqlstress.user_work.own_files import file_of
from tests.own_app import measured
from tests.run_python import run_python

HEAD = """
import sqlite3
from sqlstress import check, connect, setup, transaction
def write(path):
    c = sqlite3.connect(path, timeout=30)
    c.execute("CREATE TABLE IF NOT EXISTS t (x)")
    c.execute("INSERT INTO t VALUES (1)")
    c.commit()
    c.close()
"""
MADE = "setup(write)\n"
NOTHING = "@transaction\ndef nothing(path): write(path)\n"
SETUPS = {
    "sqlite3": "write({name!r})",
    "sqlite3 and URI": "sqlite3.connect('file:' + {name!r} + '?mode=ro', uri=True).execute('SELECT 1')",
    "apsw": "import apsw; apsw.Connection({name!r}).execute('CREATE TABLE other (x)')",
    "Django": """
    import django
    from django.conf import settings
    from django.db import connection
    default = {{"ENGINE": "django.db.backends.sqlite3", "NAME": {name!r}}}
    settings.configure(DATABASES={{"default": default}})
    django.setup()
    connection.cursor().execute("CREATE TABLE other (x)")
""",
    "SQLAlchemy": """
    from sqlalchemy import create_engine, text
    with create_engine("sqlite:///" + {name!r}).begin() as c:
        c.execute(text("CREATE TABLE other (x)"))
""",
}


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """Return the user's database."""
    path = tmp_path / "theirs" / "db.sqlite3"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (x)")
    return path


def state(path: Path) -> dict[str, tuple[int, bytes]]:
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in path.parent.iterdir()}


def errors(report: sqlstress.Report) -> list[str]:
    return [trial.error or "" for run in report.runs for trial in run.trials]


@pytest.mark.thorough
@pytest.mark.parametrize("library", SETUPS)
def test_setup_does_not_open_a_real_database(library: str, real: Path, tmp_path: Path) -> None:
    before = state(real)
    body = SETUPS[library].format(name=str(real)).strip()
    with pytest.raises(SqlstressError) as caught:
        measured(tmp_path, HEAD + f"@setup\ndef made(path):\n    {body}\n" + NOTHING)
    said = str(caught.value)
    assert f"setup failed: the app opens {real}, outside the trial's folder" in said and "\n" not in said
    assert "allow_other_files permits it" in said and caught.value.exit_code == 2
    django = 'In settings.py: "NAME": os.environ.get("SQLSTRESS_DATABASE", BASE_DIR / "db.sqlite3")'
    assert (django in said) == (library == "Django")
    assert state(real) == before


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "write({name!r})\n" + NOTHING,
        MADE + "@connect\ndef opened(path): write({name!r})\n" + NOTHING,
        MADE + "@transaction\ndef add(path): write({name!r})\n",
        MADE + NOTHING + "@check\ndef look(query): write({name!r})\n",
        MADE + NOTHING + "@check\ndef look(query, database): write({name!r})\n",
        MADE + "@transaction\ndef add(path):\n    try: write({name!r})\n    except Exception: pass\n",
    ],
    ids=["import", "connect", "transaction", "check", "last check", "caught"],
)
def test_no_function_opens_a_real_database(text: str, real: Path, tmp_path: Path) -> None:
    before = state(real)
    try:
        report = measured(tmp_path, HEAD + text.format(name=str(real)))
    except SqlstressError as error:
        code, said = error.exit_code, str(error)
    else:
        texts = [check.note for check in report.runs[0].verdict.checks]
        code, said = report.exit_code, " ".join([*texts, *report.problems, *errors(report)])
    assert code in (2, 4) and f"the app opens {real}" in said
    assert state(real) == before


@pytest.mark.thorough
def test_foreign_file_is_opened_if_allowed(real: Path, tmp_path: Path) -> None:
    text = MADE + "@transaction\ndef add(path): write(path); write({name!r})\n"
    report = measured(tmp_path, HEAD + text.format(name=str(real)), allow_other_files=True)
    assert report.exit_code == 0
    with closing(sqlite3.connect(real)) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() >= (10,)


WATCH = """
import sqlite3, sys, tempfile
from pathlib import Path
{first}
from sqlstress.user_work.own_files import OtherFileError, OwnFiles
Path("trial").mkdir()
files = OwnFiles(Path("trial"), {original!r})
files.watch()
import apsw
from apsw import Connection
def refused(call, *args, **options):
    try:
        call(*args, **options).close()
    except OtherFileError:
        return True
    return False
for call in (sqlite3.connect, apsw.Connection, Connection):
    {body}
"""
BODIES = {
    "folder": """
    assert not refused(call, "trial/a.db") and not refused(call, "trial/../trial/b.db")
    assert refused(call, "real.db") and refused(call, str(Path("real.db").absolute()))
    assert refused(call, "trial/../real.db") and refused(call, "trial/link.db" if make_link() else "real.db")
    assert not refused(call, ":memory:") and not refused(call, "")
    assert not refused(call, tempfile.mkstemp()[1])
    new = tempfile.mktemp()
    assert not refused(call, new)
    call(new).close()
    Path(new).write_bytes(b"")
""",
    "original": """
    assert not refused(call, "trial/a.db") and not refused(call, "other.db")
    assert refused(call, "real.db") and refused(call, str(Path("./real.db").absolute()))
""",
}
LINK = """
def make_link():
    if sys.platform != "win32" and not Path("trial/link.db").exists():
        Path("trial/link.db").symlink_to(Path("real.db").absolute())
    return sys.platform != "win32"
"""


@pytest.mark.parametrize("first", ["import apsw", ""], ids=["imported before", "imported after"])
@pytest.mark.parametrize("kind", BODIES)
def test_both_drivers_are_refused_before_they_open(kind: str, first: str, tmp_path: Path) -> None:
    (tmp_path / "real.db").write_bytes(b"not opened")
    original = str(tmp_path / "real.db") if kind == "original" else ""
    code = WATCH.format(first=LINK + first, original=original, body=BODIES[kind].strip())
    if kind == "original":
        code = code.replace('OwnFiles(Path("trial")', "OwnFiles(None")
    run_python(tmp_path, code)
    assert (tmp_path / "real.db").read_bytes() == b"not opened"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        (":memory:", None),
        ("", None),
        ("file::memory:?cache=shared", None),
        ("file:shared?mode=memory&cache=shared", None),
        ("file:/shared?vfs=memdb", None),
        ("file:a.db?immutable=1", None),
        ("file:a.db?immutable=0", "a.db"),
        ("file:a.db?mode=ro", "a.db"),
        ("file:a%20b.db", "a b.db"),
        (b"a.db", "a.db"),
        (Path("a.db"), "a.db"),
        (17, None),
    ],
)
def test_name_is_that_of_a_file(name: Any, file: str | None) -> None:
    assert file_of(name) == (file and Path(file).resolve())
