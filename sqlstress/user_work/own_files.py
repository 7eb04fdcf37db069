"""The user's code is kept from databases that are not the trial's, before SQLite opens a file.

Python's sqlite3 raises an audit event before it opens a file. For apsw, whose hooks come after that, the
class of connections is replaced by one that looks first. ATTACH and further programs are not
covered.
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
    from sqlstress.targets.views import Directions

FLAG = "--allow-other-files"


class OtherFile(UsageError):
    """The user's code connects to a database that is not the trial's."""


class OwnFiles:
    """The databases that the code in this process may open. There is no way back: a hook stays."""

    def __init__(self, folder: Path | None, original: str = "") -> None:
        """`folder` is where the trial's database lies, and all that belongs to it; None: any file is allowed.

        Nobody may connect to `original`, the database of the user's of which the trial has a copy.
        """
        self._folder = folder and folder.resolve()
        self._original = Path(original).absolute() if original else None
        self._temporary = Path(tempfile.gettempdir()).resolve()
        self._new: set[Path] = set()
        """Temporary files that this process creates."""
        self.refused: OtherFile | None = None
        """The first refusal: the user's code may catch the exception, and go on."""

    def watch(self) -> None:
        """Look at each connection from now on."""
        if not self._folder and not self._original:
            return

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event == "sqlite3.connect":
                self.look(args[0])

        sys.addaudithook(hook)
        if apsw := sys.modules.get("apsw"):
            self._look_in(apsw)
        else:
            sys.meta_path.insert(0, _Import("apsw", self._look_in))

    def look(self, name: Any) -> None:
        """Refuse a name, a path or a URI, unless a connection to it is allowed. Raises OtherFile."""
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
        self.refused = self.refused or OtherFile(problem)
        raise OtherFile(problem)

    def check(self) -> None:
        """Raise the refusal that there was, if the code has caught it. Raises OtherFile."""
        if self.refused:
            raise OtherFile(str(self.refused))

    def _is_new(self, path: Path) -> bool:
        """Return whether a file is a temporary one that this process creates."""
        if path in self._new:
            return True
        is_new = path.is_relative_to(self._temporary) and (not path.exists() or not path.stat().st_size)
        if is_new:
            self._new.add(path)
        return is_new

    def _look_in(self, apsw: Any) -> None:
        look = self.look

        class Connection(apsw.Connection):  # type: ignore[misc]
            def __init__(self, filename: Any, *args: Any, **options: Any) -> None:
                if options.get("vfs") != "memdb" and "memdb" not in args[1:2]:
                    look(filename)
                super().__init__(filename, *args, **options)

        Connection.__module__, Connection.__qualname__ = "apsw", "Connection"
        apsw.Connection = Connection


def own_files(directions: Directions, original: str, *, allow_others: bool) -> OwnFiles:
    """Let the code in this process open databases of the trial's folder only, from now on."""
    is_anywhere = allow_others or "://" in directions.address
    files = OwnFiles(None if is_anywhere else Path(directions.address).parent, original)
    files.watch()
    return files


class _Import(MetaPathFinder):
    """Calls a function with a module as soon as it is imported."""

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
    """Return the file that a connection to a name writes into; None: there is none.

    An immutable database counts as none: SQLite takes no lock on it, and creates no other file. With
    mode=ro alone it takes locks, and may create a WAL.
    """
    try:
        text = os.fsdecode(name)
    except TypeError:
        return None  # sqlite3 refuses it
    literal = Path(text)
    if not text or text == ":memory:":
        return None
    # A library that takes no URIs takes it for the name of a file.
    if not text.startswith("file:") or literal.exists():
        return _resolved(literal)
    address, _, query = text.removeprefix("file:").partition("#")[0].partition("?")
    said = {key: values[-1] for key, values in parse_qs(query).items()}
    if said.get("mode") == "memory" or said.get("vfs") == "memdb" or _is_on(said.get("immutable", "")):
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
