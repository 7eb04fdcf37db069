"""Guard that stops the user's code from opening databases other than the trial's.

Python's sqlite3 raises an audit event before it opens a file. The hooks of apsw are called after the file is
open. So a subclass that checks the name first replaces `apsw.Connection`. The guard checks neither ATTACH nor
programs that the user's code starts.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

from sqlstress.errors import UsageError

if TYPE_CHECKING:
    from sqlstress.targets.views import ConnectionInfo

FLAG = "--allow-other-files"


class OtherFileError(UsageError):
    """The user's code connects to a database other than the trial's."""


class OwnFiles:
    """Guard that refuses connections to databases other than the trial's, until the process ends."""

    def __init__(self, folder: Path | None, original: str = "") -> None:
        """Allow databases in `folder`, or in any folder if it is None, but never the database `original`.

        `original` is the user's database that the trial has copied; empty if there is none.
        """
        self._folder = folder and folder.resolve()
        self._original = Path(original).absolute() if original else None
        self._temporary = Path(tempfile.gettempdir()).resolve()
        self._new: set[Path] = set()
        """Databases in the folder for temporary files that this process may have created."""
        self.refused: OtherFileError | None = None
        """First refusal, kept because the user's code may catch it; None if nothing was refused."""

    def watch(self) -> None:
        """Start to check each connection that this process opens."""
        if not self._folder and not self._original:
            return

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event == "sqlite3.connect":
                self.look(args[0])

        sys.addaudithook(hook)
        if apsw := sys.modules.get("apsw"):
            self._guard_apsw(apsw)
        else:
            sys.meta_path.insert(0, _Import("apsw", self._guard_apsw))

    def look(self, name: Any) -> None:
        """Raise OtherFileError unless the code may connect to `name`: a path, a URI or ":memory:"."""
        path = file_of(name)
        if path is None:
            return
        if self._original and _is_same(path, self._original):
            problem = (
                f"the app opens the original database, {self._original}. Open the path that the app gets "
                "instead, which is also in SQLSTRESS_DATABASE"
            )
        elif not self._folder or path.is_relative_to(self._folder) or self._is_new(path):
            return
        else:
            problem = _refusal(path)
        self.refused = self.refused or OtherFileError(problem)
        raise OtherFileError(problem)

    def check(self) -> None:
        """Raise OtherFileError if a connection was refused: the user's code may have caught the error."""
        if self.refused:
            raise OtherFileError(str(self.refused))

    def _is_new(self, path: Path) -> bool:
        """Return whether `path` is a temporary file that the user's code creates.

        The file counts as new if it was missing or empty at its first connection.
        """
        if path in self._new:
            return True
        is_new = path.is_relative_to(self._temporary) and (not path.exists() or not path.stat().st_size)
        if is_new:
            self._new.add(path)
        return is_new

    def _guard_apsw(self, apsw: Any) -> None:
        look = self.look

        class Connection(apsw.Connection):  # type: ignore[misc]
            def __init__(self, filename: Any, *args: Any, **options: Any) -> None:
                if options.get("vfs") != "memdb" and "memdb" not in args[1:2]:
                    look(filename)
                super().__init__(filename, *args, **options)

        Connection.__module__, Connection.__qualname__ = "apsw", "Connection"
        apsw.Connection = Connection


def guard_files(directions: ConnectionInfo, original: str, *, allow_others: bool) -> OwnFiles:
    """Limit the user's code in this process to databases in the trial's folder. Return the guard.

    With `allow_others`, or with a database server, the code can open any database but `original`.
    """
    is_anywhere = allow_others or "://" in directions.address
    files = OwnFiles(None if is_anywhere else Path(directions.address).parent, original)
    files.watch()
    return files


class _Import(MetaPathFinder):
    """Import hook: after the import of the module `name`, it calls the function `call` with the module."""

    def __init__(self, name: str, call: Any) -> None:
        self._name, self._call = name, call

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec and spec.loader:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._call(module)

            loader.exec_module = exec_module
        return spec


def file_of(name: Any) -> Path | None:
    """Return the file that a connection to the database `name` may write or lock; None if there is none.

    With immutable=1 in a URI, SQLite takes no lock and creates no file. With mode=ro alone, it may do both.
    """
    try:
        text = os.fsdecode(name)
    except TypeError:
        return None  # sqlite3 refuses such a name.
    literal = Path(text)
    if not text or text == ":memory:":
        return None
    # A library without support for URIs opens a file with the literal name.
    if not text.startswith("file:") or literal.exists():
        return _resolved(literal)
    address, _, query = text.removeprefix("file:").partition("#")[0].partition("?")
    parameters = {key: values[-1] for key, values in parse_qs(query).items()}
    if (
        parameters.get("mode") == "memory"
        or parameters.get("vfs") == "memdb"
        or _is_on(parameters.get("immutable", ""))
    ):
        return None
    if address.startswith("//"):
        address = f"/{address[2:].partition('/')[2]}"
    address = unquote(address, errors="surrogateescape")
    if sys.platform == "win32" and address[2:3] == ":":
        address = address.lstrip("/")
    return None if address in ("", ":memory:") else _resolved(Path(address))


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False


def _is_on(word: str) -> bool:
    return word.lower() in ("yes", "true", "on") or (word.isdigit() and int(word) != 0)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return path.absolute()


def _refusal(path: Path) -> str:
    if "django.conf" in sys.modules:
        line = f'"NAME": os.environ.get("SQLSTRESS_DATABASE", BASE_DIR / "{path.name}")'
        cure = f"In settings.py: {line}, and import os"
    else:
        cure = "Open the path that your functions get, which is also in SQLSTRESS_DATABASE"
    return f"the app opens {path}, outside the trial's folder. {cure}. {FLAG} permits it"
