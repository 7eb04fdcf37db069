"""Names of code in docstrings and comments exist: a renamed class leaves no stale name behind."""

import ast
import builtins
import keyword
import re
import sqlite3
import sys
from collections.abc import Iterator

import pytest

from sqlstress.experiment import all_experiments
from tests.english import ROOT, STRING_OR_COMMENT, single_comments, statements

PACKAGE = ROOT / "sqlstress"
FILES = sorted(PACKAGE.rglob("*.py"))
WORD = re.compile(r"[A-Za-z_]\w*")
NAMES = (
    re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`"),
    re.compile(r"\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b"),
    re.compile(r"\bRaises? ([A-Z]\w+)"),
)
"""Names in a text: in backquotes, constants with an underscore, and exceptions."""
EXEMPT = {
    "HAVE_FDATASYNC": "macro in SQLite's source",
    "HAVE_USLEEP": "macro in SQLite's source",
    "PENDING_BYTE": "macro in SQLite's source",
}
"""Reason why a name is in no code of the package, by name."""


def texts(source: str) -> Iterator[str]:
    """Yield the comments of a file, and its string literals that are statements, such as docstrings."""
    for _, _, text in single_comments(source):
        yield text
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def code_names(source: str) -> set[str]:
    """Return the identifiers of a file, and its string literals, such as keys and names of options."""
    names = set(WORD.findall(STRING_OR_COMMENT.sub("", source)))
    literals = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return names | {text for text in literals if isinstance(text, str)}


def known_names() -> set[str]:
    """Return all names of the package's code, options and files, of Python, and of its modules."""
    names = {*keyword.kwlist, *dir(builtins), *dir(sqlite3), *sys.stdlib_module_names, *EXEMPT}
    names.update(option.name.replace("-", "_") for item in all_experiments() for option in item.options)
    for file in FILES:
        names |= {file.stem, file.parent.name, *code_names(file.read_text(encoding="utf-8"))}
    for file in (file for suffix in ("c", "h", "js") for file in PACKAGE.rglob(f"*.{suffix}")):
        names.update(WORD.findall(file.read_text(encoding="utf-8")))
    return names


def stale_names(source: str, known: set[str]) -> list[str]:
    """Return the names in the texts of a file of which a part between dots is not in `known`."""
    found = [name for text in texts(source) for pattern in NAMES for name in pattern.findall(text)]
    return [name for name in found if not known.issuperset(name.split("."))]


@pytest.mark.parametrize("text", ["See `Gone`.", "See `re.gone`.", "At most GONE_LIMIT.", "Raises Gone."])
def test_unknown_name_is_found(text: str) -> None:
    assert stale_names(f'"""{text}"""\nx = 1  # {text}', {"re"}) != []


def test_names_in_docstrings_exist() -> None:
    known = known_names()
    stale = {file: stale_names(file.read_text(encoding="utf-8"), known) for file in FILES}
    assert {file: names for file, names in stale.items() if names} == {}
