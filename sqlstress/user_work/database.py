"""The database of a trial: a copy of the user's, or an empty one, and then what the setup makes of it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import quote

from sqlstress.analysis.wording import size
from sqlstress.errors import EnvironmentFailure, SqlstressError, UsageError, said
from sqlstress.options.sql_text import Dialect
from sqlstress.system.processes import call_apart
from sqlstress.targets.place import SqlPlace
from sqlstress.targets.sqlite.drivers import codes
from sqlstress.targets.sqlite.drivers.sqlite3_driver import file_name
from sqlstress.targets.views import LACKING, Answer, Maker, Reader
from sqlstress.user_work.files import digest
from sqlstress.user_work.options import Data, journal_mode, setup_text
from sqlstress.user_work.statements import Place, Statement, dialect_of, place_of, split

if TYPE_CHECKING:
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.sqlite.place import SqlitePlace


# A copy of a database of the user's, which may be in use meanwhile: the original is read and nothing else.
#
# A reader writes too, where SQLite lets it: into the wal-index, and by making files that are not there. So
# it
# is opened such that it can't. To be called in a process of its own: a file that is closed takes with it
# the
# locks of whoever in the same process works on it.


PATIENCE_S = 5.0
"""How long a lock of the program that uses it is waited for."""
_TRIES = 3


class State(NamedTuple):
    """What changes when anybody writes: size and time of the database and of its WAL, if they are there."""

    files: tuple[tuple[int, int] | None, ...]
    is_open: bool
    """Whether there is a wal-index: somebody uses it, or did not come to close it."""


def copy(name: str, to: Path) -> None:
    """Copy a database as it is at some moment. Raises UsageError and EnvironmentFailure."""
    original = Path(name).resolve()  # its WAL is beside the file, not beside a link to it
    mode = journal_mode(name)
    _check_room(original, to)
    try:
        for _ in range(_TRIES):
            before = _state(original)
            if mode == "wal" and not before.is_open and before.files[1]:
                _copy_files(original, to)
            else:
                _back_up(original, to, alone=mode == "wal" and not before.is_open)
            # Somebody whose locks we see needs no second look; without them it may have changed meanwhile.
            if mode != "wal" or before.is_open or _state(original) == before:
                return
    except OSError as error:
        raise EnvironmentFailure(f"cannot copy {name!r:.200}: {error.strerror or error}.") from error
    except sqlite3.Error as error:
        raise _refused(name, error) from error
    raise EnvironmentFailure(f"{name!r:.200} changed each time while it was copied. Try again.")


def _check_room(original: Path, to: Path) -> None:
    needed = sum(path.stat().st_size for path in (original, _beside(original, "-wal")) if path.exists())
    free = shutil.disk_usage(to.parent).free
    if needed > free:
        raise EnvironmentFailure(
            f"{original.name} takes {size(needed)}, and {size(free)} are free for a copy: "
            "choose another --dir."
        )


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _state(original: Path) -> State:
    found = []
    for path in (original, _beside(original, "-wal")):
        stat = path.stat() if path.exists() else None
        found.append((stat.st_size, stat.st_mtime_ns) if stat and stat.st_size else None)
    return State(tuple(found), _beside(original, "-shm").exists())


def _copy_files(original: Path, to: Path) -> None:
    """Copy a database whose last program did not close it: SQLite recovers it, here and not there."""
    for suffix in ("", "-wal"):
        shutil.copyfile(_beside(original, suffix), _beside(to, suffix))


def _back_up(original: Path, to: Path, *, alone: bool) -> None:
    """Copy by SQLite's backup API; `alone`: nobody uses it, so that it can be read without any lock."""
    to.unlink(missing_ok=True)
    with _read_only(original, alone=alone) as source, closing(sqlite3.connect(file_name(to))) as target:
        source.backup(target)


def uri(path: PurePath) -> str:
    """Return how SQLite is told a file where it takes parameters too.

    Path.as_uri makes a host of the server that a path of Windows may begin with, and SQLite refuses hosts.
    """
    return f"file:{quote(os.fsencode(path), safe='')}"


@contextmanager
def _read_only(original: Path, *, alone: bool) -> Iterator[sqlite3.Connection]:
    way = "immutable=1" if alone else "readonly_shm=1"
    address = f"{uri(original)}?mode=ro&{way}"
    with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE_S, isolation_level=None)) as source:
        # backup() waits for a lock without end, so it is taken before.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        yield source


def _refused(name: str, error: sqlite3.Error) -> UsageError | EnvironmentFailure:
    """Return what a refusal of SQLite means, in words."""
    code = getattr(error, "sqlite_errorcode", 0)
    if codes.is_busy(code):
        return EnvironmentFailure(
            f"{name!r:.200} is locked by another program for longer than {PATIENCE_S:g} s: end it, or let it "
            "give the lock back."
        )
    if codes.is_damage(code):
        return UsageError(f"{name!r:.200} is no sound SQLite database, or an encrypted one: {said(error)}.")
    if code & 0xFF in (codes.CANTOPEN, codes.READONLY):
        return EnvironmentFailure(
            f"{name!r:.200} can't be read without writing: {said(error)}. A program was cut off there: open "
            "it once with that program, or copy it and its journal."
        )
    return EnvironmentFailure(f"cannot copy {name!r:.200}: {codes.name(code)}: {said(error)}.")


def make(place: SqlPlace, data: Data, own: Iterable[str], pulse: Pulse) -> None:
    """Make the database of a place anew, and see that the case's settings were taken.

    `own` are statements of ours, run after the user's setup. Raises UsageError, with the place in the file,
    for what the setup can't do.
    """
    place.discard()
    if data.database:
        # It is refused where no file is to be measured.
        call_apart(pulse, copy, data.database, cast("SqlitePlace", place).paths[0])
    with place.making(pulse) as maker:
        if data.setup:
            _set_up(maker, dialect_of(place.case.driver), data)
        for sql in own:
            maker.watched(lambda sql=sql: maker.run(sql))  # type: ignore[misc]


def _set_up(maker: Maker, dialect: Dialect, data: Data) -> None:
    text = setup_text(data.setup)
    if digest(text) != data.setup_digest:
        raise EnvironmentFailure(f"{data.setup} changed while it was measured: measure again.")
    maker.watched(lambda: _run(maker, dialect, data.setup, text))
    if maker.in_transaction():
        raise UsageError(f"{data.setup}: the transaction that it begins is never ended: add COMMIT.")


def _run(maker: Maker, dialect: Dialect, file: str, text: str) -> None:
    for one in split(file, text, dialect=dialect):
        try:
            maker.run(one.text)
        except Exception as error:
            raise failed(file, text, one, maker.answer(error), error) from error


def explained(reader: Reader, place: Place, one: Statement) -> None:
    """See that the database can run a statement, without running it. Raises UsageError, with its place."""
    try:
        reader.understood(one.text, [token.text[1:] for token in one.parameters])
    except Exception as error:
        answer = reader.answer(error)
        if answer and answer.kind == LACKING:
            raise
        raise place.error(answer.text if answer else said(error).removesuffix(".")) from error


def failed(file: str, text: str, one: Statement, answer: Answer | None, error: Exception) -> SqlstressError:
    """Return what went wrong with a statement of a file, with its place there."""
    place = place_of(file, text, one.start)
    if answer and answer.kind == LACKING:
        return EnvironmentFailure(f"{place}: {answer.text}.")
    return place.error(answer.text if answer else said(error).removesuffix("."))
