"""Detection of A/B tests that should compare two versions of code, but ran one version in both arms.

An arm is one of the variants A and B. If both import a module from one folder, the user would compare a
version with itself. The error names the cause, such as an editable install, and the remedy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from sqlstress.analysis.wording import listing

PROBE = "import json, sys; print(json.dumps(sys.path))"
"""Program that prints the folders in which an interpreter searches for modules."""
PROBE_S = 20.0
"""Time limit of PROBE, in seconds."""
CODE = (".py", ".so", ".pyd")
"""Suffixes of code files. Two versions of a package differ in the content of such files."""
MAX_NAMED_MODULES = 3
"""Maximum number of modules that an error names."""
SEPARATE_REMEDY = "install each folder in the environment of its arm (--python-a and --python-b)"


class ArmCode(NamedTuple):
    """One arm (A or B) of an A/B test, with the modules that its workers imported."""

    name: str
    python: str | None
    """Interpreter of the arm; None means the interpreter that runs sqlstress."""
    file: str
    """Path of the user's file."""
    modules: Mapping[str, str]
    """File of each imported package or module, by module name."""


def same_module(a: ArmCode, b: ArmCode) -> str | None:
    """Return an error if both arms ran equal code of a module, but their checkouts differ.

    The checkout of an arm is the folder above the user's file (see `_roots`). Return None for no such module.
    """
    roots = _roots(a.file, b.file)
    if roots is None:
        return None
    for name in sorted(a.modules.keys() & b.modules.keys()):
        files = Path(a.modules[name]), Path(b.modules[name])
        sources = _sources(name, files, roots)
        if sources is None or (loaded := _code(files[0])) != _code(files[1]):
            continue
        old, new = map(_code, sources)
        if part := next((part for part in loaded if old.get(part) != new.get(part)), None):
            # The wrong arm is the arm that ran the code of the other arm's checkout.
            is_old, is_new = (
                all(source.get(part) == loaded[part] for part in loaded) for source in (old, new)
            )
            wrong = b if is_old else a if is_new else None
            differing = sources[0].parent / part, sources[1].parent / part
            return _mixed_up(name, files, differing, wrong, (a, b), roots)
    return None


def _roots(file: str, other: str) -> tuple[Path, Path] | None:
    """Return the arms' checkouts: two folders with a version of the code; None if equal.

    The folders are the paths of the user's files without their common end: for base/bench/app.py and
    bench/app.py, the folder base and the current folder.
    """
    a, b = (Path(os.path.realpath(path)).parent for path in (file, other))
    # One folder may be inside the other: the documented CI workflow checks out the base version inside the
    # folder of the changed version.
    while a.name == b.name and a != b and a not in b.parents and b not in a.parents:
        a, b = a.parent, b.parent
    return (a, b) if a != b else None


def _sources(name: str, files: tuple[Path, Path], roots: tuple[Path, Path]) -> tuple[Path, Path] | None:
    """Return the file of the module `name` in each of the folders `roots`; None if a folder lacks it.

    `files` are the files from which the arms imported the module.
    """
    package = Path(*name.split("."))
    paths = [file.relative_to(root) for file in files for root in roots if file.is_relative_to(root)]
    for folder in (Path(), Path("src")):
        paths += [folder / package / "__init__.py", folder / package.with_suffix(".py")]
    for path in paths:
        a, b = (root / path for root in roots)
        if a.is_file() and b.is_file():
            return a, b
    return None


def _code(file: Path) -> dict[str, bytes]:
    """Return the content of a module's file, by its name; for a package, of all its code files, by path."""
    if file.stem != "__init__":
        return {file.name: _content(file)}
    files = (path for path in file.parent.rglob("*") if path.suffix in CODE)
    return {path.relative_to(file.parent).as_posix(): _content(path) for path in files}


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _mixed_up(
    name: str,
    files: tuple[Path, Path],
    differing: tuple[Path, Path],
    wrong: ArmCode | None,
    sides: tuple[ArmCode, ArmCode],
    roots: tuple[Path, Path],
) -> str:
    """Return the text of the error that both arms ran one version of the module `name`.

    `files` are the imported files, `differing` a file that differs between the checkouts `roots`. `sides` are
    the arms. `wrong` is the arm that ran the code of the other arm's checkout, or None.
    """
    root = roots[sides.index(wrong)] if wrong else None
    vain = "so the change would be compared with itself."
    if files[0] != files[1]:
        remedy = (
            f"Install {root} in the environment of {wrong.name}"
            if wrong
            else f"To compare, {SEPARATE_REMEDY}"
        )
        return (
            f"A imports {name} from {files[0]} and B from {files[1]}, which are equal, but {differing[0]} "
            f"and {differing[1]} differ, {vain} {remedy}: in a requirements file, . means the current folder."
        )
    folder = import_folder(name, files[0])
    shared = files[0].parent if files[0].stem == "__init__" else files[0]
    changed_files = [str(file) for file in differing if not file.is_relative_to(shared)]
    verb = "differs" if len(changed_files) == 1 else "differ"
    statement = f"A and B both import {name} from {files[0]}, but {listing(changed_files)} {verb}, {vain}"
    if entry := _python_path_entry(folder):
        return f"{statement} PYTHONPATH contains {entry}: unset it, and {SEPARATE_REMEDY}."
    python = (wrong or sides[0]).python
    if install := find_redirect(name, files[0], python):
        if wrong and sides[0].python != sides[1].python:
            return (
                f"{statement} {install} lets {wrong.name} import from {folder}: install {root} there "
                "instead. In a requirements file, -e . means the current folder."
            )
        return f"{statement} {install} lets both import from {folder}: {SEPARATE_REMEDY}."
    if python is None and folder == _current_folder():
        return f"{statement} Python searches the current folder, {folder}: {SEPARATE_REMEDY}."
    return f"{statement} Its folder is on the search path of both: {SEPARATE_REMEDY}."


def same_environment(a: ArmCode, b: ArmCode) -> str | None:
    """Return an error if the arms have two environments of the same Python program; else None.

    The caller has found no other difference between the arms, so such environments have no effect.
    """
    if a.python is None or b.python is None:
        return None
    first, second = (Path(shutil.which(python) or python) for python in (a.python, b.python))
    if first.parent.resolve() == second.parent.resolve() or _content(first) != _content(second):
        return None
    statement = (
        f"A and B run the same code. {a.python} and {b.python} are the same Python, and {a.file} imports "
        "nothing that differs between them"
    )
    loaded = [f"{name} from {file}" for name, file in sorted(a.modules.items())]
    if not loaded:
        return (
            f"{statement}. Let it import what you compare, or name one interpreter twice to compare A with A."
        )
    more = len(loaded) - MAX_NAMED_MODULES
    names = listing([*loaded[:MAX_NAMED_MODULES], *([f"{more} more"] if more > 0 else [])])
    return f"{statement}: {names}. {_remedy(min(a.modules), a)}"


def _remedy(name: str, side: ArmCode) -> str:
    """Return sentences on why both arms import `name` from one folder, and on the remedy."""
    file = Path(side.modules[name])
    folder = import_folder(name, file)
    if folder == Path(os.path.realpath(side.file)).parent:
        return (
            f"It lies next to {side.file}, and that folder comes first: move {side.file} to another folder."
        )
    if entry := _python_path_entry(folder):
        return f"PYTHONPATH contains {entry}: unset it."
    if install := find_redirect(name, file, side.python):
        return f"{install} lets both import from {folder}: install each version in its own environment."
    return "Install each version in its own environment."


def import_folder(name: str, file: Path) -> Path:
    """Return the folder of the search path in which Python found the module `name`, imported from `file`."""
    return file.parents[name.count(".") + (file.stem == "__init__")]


def _python_path_entry(folder: Path) -> str | None:
    entries = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return next((entry for entry in entries if _is_same(entry, folder)), None)


def find_redirect(name: str, module: Path, python: str | None) -> Path | None:
    """Return the file of an editable install that names a module's folder, or None.

    `python` is the interpreter whose environment is searched; None means this Python.
    """
    folder = import_folder(name, module)
    quoted = [repr(str(path)) for path in (module, folder / name.partition(".")[0])]
    for site in map(Path, search_path(python)):
        for file in sorted((*site.glob("*.pth"), *site.glob("*editable*.py"))):
            text = _content(file).decode(errors="replace")
            if any(path in text for path in quoted) or any(
                _is_same(site / path, folder) for path in _lines(file)
            ):
                return file
    return None


def _lines(file: Path) -> Iterator[str]:
    """Yield the paths that a .pth file adds to the search path; nothing for other files."""
    if file.suffix == ".pth":
        lines = map(str.strip, _content(file).decode(errors="replace").splitlines())
        yield from (line for line in lines if line and not line.startswith(("#", "import ", "import\t")))


def search_path(python: str | None) -> list[str]:
    """Return the folders in which an interpreter finds modules; [] on failure. None means this Python."""
    if python is None:
        return list(sys.path)
    try:
        answer = subprocess.run(
            [python, "-P", "-c", PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROBE_S,
            check=True,
        )
        return [str(folder) for folder in json.loads(answer.stdout.splitlines()[-1])]
    except (OSError, subprocess.SubprocessError, ValueError, IndexError, TypeError):
        return []


def _current_folder() -> Path | None:
    """Return the current folder if our search path begins with it; else None."""
    is_first = not sys.flags.safe_path and sys.path and _is_same(sys.path[0] or ".", Path.cwd())
    return Path(os.path.realpath(Path.cwd())) if is_first else None


def _is_same(path: str | Path, folder: Path) -> bool:
    return os.path.realpath(path) == os.path.realpath(folder)
