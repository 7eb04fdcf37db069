"""Creation of a trial's database: a copy of the user's database, or an empty one, changed by the setup.

The original may be in use and is only read. An ordinary reader may change the -shm file or create missing
files, so the original is opened with parameters that forbid this. A separate process copies it, because this
process may have the original open: on POSIX, closing a file releases all locks of the process on the file.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from sqlstress import sqlite_codes as codes
from sqlstress.analysis.wording import size
from sqlstress.errors import EnvironmentFailure, SqlstressError, UsageError, error_message
from sqlstress.options.sql_text import Dialect
from sqlstress.system.processes import call_in_subprocess
from sqlstress.targets.place import SqlPlace
from sqlstress.targets.sqlite.drivers.sqlite3_driver import file_name
from sqlstress.targets.views import LACKING, DatabaseError, Maker, Reader
from sqlstress.user_work.options import Data, digest, journal_mode, setup_text
from sqlstress.user_work.statements import Position, Statement, dialect_of, split_statements

if TYPE_CHECKING:
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.sqlite.place import SqlitePlace

PATIENCE_S = 5.0
"""Maximum wait for locks of other programs on the original database, in seconds."""
_TRIES = 3


def copy(name: str, to: Path) -> None:
    """Copy a consistent state of the database `name` to the file `to`.

    Raises UsageError if `name` is no sound database. Raises EnvironmentFailure if the copy fails for another
    reason, for example because a program keeps the database locked.
    """
    original = Path(name).resolve()  # The WAL is next to the file itself, not next to a symbolic link to it.
    wal, index = (original.with_name(original.name + suffix) for suffix in ("-wal", "-shm"))
    in_wal_mode = journal_mode(name) == "wal"
    _check_room(original, wal, to)
    try:
        for _ in range(_TRIES):
            before = _versions(original, wal)
            # The -shm file exists if a program uses the database, or has ended without closing it.
            is_open = index.exists()
            if in_wal_mode and not is_open and before[1]:
                # The last program did not close the database, so SQLite must recover it, which writes files.
                # Copy the WAL, too, so that the recovery happens in the copy, not in the original.
                shutil.copyfile(original, to)
                shutil.copyfile(wal, to.with_name(f"{to.name}-wal"))
            else:
                to.unlink(missing_ok=True)
                with (
                    _read_only(original, alone=in_wal_mode and not is_open) as source,
                    closing(sqlite3.connect(file_name(to))) as target,
                ):
                    source.backup(target)
            # A WAL database that no program used was copied without locks. If a program opened or changed it
            # since the copy began, copy again.
            if not in_wal_mode or is_open or (_versions(original, wal) == before and not index.exists()):
                return
    except OSError as error:
        file = Path(error.filename).name if isinstance(error.filename, str) else ""
        where = f"{file!r:.200}: " if file and file != original.name else ""
        raise EnvironmentFailure(f"cannot copy {name!r:.200}: {where}{error.strerror or error}.") from error
    except sqlite3.Error as error:
        raise _copy_error(name, error) from error
    raise EnvironmentFailure(
        f"{name!r:.200} changed while it was being copied. Stop its writers, or try again.",
    )


def _check_room(original: Path, wal: Path, to: Path) -> None:
    needed = sum(path.stat().st_size for path in (original, wal) if path.exists())
    free = shutil.disk_usage(to.parent).free
    if needed > free:
        raise EnvironmentFailure(
            f"a copy of {original.name} needs {size(needed)}, but {size(free)} are free. Choose another "
            "--dir."
        )


def _versions(*paths: Path) -> list[tuple[int, int] | None]:
    """Return size in bytes and modification time in ns of each file; None for missing or empty files."""
    stats = [path.stat() if path.exists() else None for path in paths]
    return [(stat.st_size, stat.st_mtime_ns) if stat and stat.st_size else None for stat in stats]


def uri(path: PurePath) -> str:
    """Return a path as an SQLite URI without parameters.

    For a Windows network path, Path.as_uri returns a URI with a host, which SQLite refuses.
    """
    return f"file:{quote(os.fsencode(path), safe='')}"


@contextmanager
def _read_only(original: Path, *, alone: bool) -> Iterator[sqlite3.Connection]:
    """Yield a read-only connection in a read transaction.

    `alone` is whether no other program uses the database. If so, the connection takes no locks (immutable=1).
    """
    way = "immutable=1" if alone else "readonly_shm=1"
    address = f"{uri(original)}?mode=ro&{way}"
    with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE_S, isolation_level=None)) as source:
        # Start the read transaction here: backup() would wait for its lock without a time limit.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        yield source


def _unreadable(original: Path) -> Path | None:
    """Return the first of a database's files that this user may not read; None if all can be read."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path = original.with_name(original.name + suffix)
        # Opening is the only reliable test of the permission to read. Closing drops no locks, because this
        # process holds none.
        try:
            os.close(os.open(path, os.O_RDONLY))
        except PermissionError:
            return path
        except OSError:
            continue
    return None


def _copy_error(name: str, error: sqlite3.Error) -> UsageError | EnvironmentFailure:
    code = getattr(error, "sqlite_errorcode", 0)
    if codes.is_busy(code):
        return EnvironmentFailure(
            f"{name!r:.200} has been locked by another program for {PATIENCE_S:g} s. End that program, or "
            "let it release the lock."
        )
    message = error_message(error)
    if forbidden := _unreadable(Path(name).resolve()):
        return EnvironmentFailure(
            f"cannot read {name!r:.200}: no permission to read {forbidden.name!r:.200}. Run as a user who "
            "may read it, or change its permissions (chmod)."
        )
    if codes.is_damage(code):
        return UsageError(f"{name!r:.200} is damaged, encrypted, or not a SQLite database: {message}.")
    if code & 0xFF in (codes.CANTOPEN, codes.READONLY):
        return EnvironmentFailure(
            f"cannot read {name!r:.200} without writing: {message}. A program left it in the middle "
            "of a transaction. Open it once with that program, or copy it with its journal."
        )
    return EnvironmentFailure(f"cannot copy {name!r:.200}: {codes.name(code)}: {message}.")


def make(place: SqlPlace, data: Data, ours: Iterable[str], pulse: Pulse) -> None:
    """Remove an earlier database of the trial, and create the database that `data` describes.

    `ours` are SQL statements of sqlstress, which run after the user's setup. Raises UsageError, with the
    position, if the setup fails. Raises EnvironmentFailure if the setup file changed since the command began.
    """
    place.discard()
    if data.database:
        # `place` is a SqlitePlace here, because targets without a file refuse --database.
        call_in_subprocess(pulse, copy, data.database, cast("SqlitePlace", place).paths[0])
    with place.making(pulse) as maker:
        if data.setup:
            text = setup_text(data.setup)
            if digest(text) != data.setup_digest:
                raise EnvironmentFailure(f"{data.setup} changed during the measurement. Measure again.")
            dialect = dialect_of(place.case.driver)
            maker.watched(lambda: _run_setup(maker, dialect, data.setup, text))
            if maker.in_transaction():
                raise UsageError(f"{data.setup}: its transaction never ends. Add COMMIT.")
        for sql in ours:
            maker.watched(lambda sql=sql: maker.run(sql))  # type: ignore[misc]


def _run_setup(maker: Maker, dialect: Dialect, file: str, text: str) -> None:
    for statement in split_statements(file, text, dialect=dialect):
        try:
            maker.run(statement.text)
        except Exception as error:
            raise _statement_error(statement.place, maker.answer(error), error) from error


def check_statement(reader: Reader, statement: Statement) -> None:
    """Check that the database can compile a statement, without running it.

    Raises UsageError with the statement's position, or EnvironmentFailure if SQLite or the server
    lacks a feature that the statement needs.
    """
    try:
        reader.understood(statement.text, [token.text[1:] for token in statement.parameters])
    except Exception as error:
        raise _statement_error(statement.place, reader.answer(error), error) from error


def _statement_error(place: Position, answer: DatabaseError | None, error: Exception) -> SqlstressError:
    if answer and answer.kind == LACKING:
        return EnvironmentFailure(f"{place}: {answer.text}.")
    return place.error(answer.text if answer else error_message(error).removesuffix("."))
