"""Calls in a Python script that copy or move the database file, found without running the script."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from sqlstress.experiments.exec.refusal import VARIABLE
from sqlstress.experiments.exec.shell_text import TextLine, Touch, commands_in, touch_of
from sqlstress.experiments.exec.template import DATABASE
from sqlstress.user_work import COPIED, MOVED

_COPIES = {"shutil.copy", "shutil.copy2", "shutil.copyfile"}
_MOVES = {"shutil.move", "os.replace", "os.rename", "os.remove", "os.unlink", "os.truncate"}
_PATH_MOVES = {"rename", "replace", "unlink"}
"""Methods of a path that move, replace or delete the file."""
_SAME_PATH = {"Path", "pathlib.Path", "str", "os.fspath", "os.path.abspath", "os.path.realpath"}
"""Functions that return the path that they get."""
_ARGUMENTS = re.compile(r"(?:sys\.)?argv(?:\[(\d+):\d*\])?")
_MAX_ROUNDS = 5
"""Maximum depth of calls through which the path of the database is followed."""


def python_touches(lines: Sequence[TextLine], arguments: Sequence[str]) -> Iterator[Touch]:
    """Yield the calls in a script that copy or move the database file; none if it is not Python.

    `arguments` are those of the script, with DATABASE for the path of the database.
    """
    try:
        tree = ast.parse("\n".join(line.text for line in lines))
    except (SyntaxError, ValueError, RecursionError):
        return
    names = _Names(arguments)
    for _ in range(_MAX_ROUNDS):
        known = len(names.found)
        for node in ast.walk(tree):
            names.follow(node, tree)
        if len(names.found) == known:
            break
    for node in ast.walk(tree):
        for kind, program in _touches_of(node, names):
            yield Touch(kind, program, lines[getattr(node, "lineno", 1) - 1].at)


class _Names:
    """Names of variables and parameters of a script that have the path of the database."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.found: set[str] = set()
        self._arguments = ("", *arguments)

    def has_path(self, node: ast.AST) -> bool:
        """Return whether an expression is the path of the database."""
        if isinstance(node, ast.Name):
            return node.id in self.found
        if isinstance(node, ast.Subscript):
            text = ast.unparse(node)
            is_argument = text.startswith(("sys.argv[", "argv["))
            return text == f"os.environ['{VARIABLE}']" or (
                is_argument and self._argument(node.slice) == DATABASE
            )
        return isinstance(node, ast.Call) and self._returns_path(node)

    def _returns_path(self, call: ast.Call) -> bool:
        function = ast.unparse(call.func)
        if function in ("os.environ.get", "os.getenv"):
            return VARIABLE in ast.unparse(call)
        if function in _SAME_PATH and len(call.args) == 1:
            return self.has_path(call.args[0])
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr in ("resolve", "absolute")
        return is_method and self.has_path(call.func.value)  # type: ignore[attr-defined]

    def _argument(self, place: ast.expr) -> str:
        with suppress(IndexError, ValueError, TypeError):
            return str(self._arguments[ast.literal_eval(place)])
        return ""

    def follow(self, node: ast.AST, tree: ast.AST) -> None:
        """Add the names to which a statement assigns, or a call passes, the path of the database."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            places = [place for place, value in enumerate(node.args) if self.has_path(value)]
            for function in ast.walk(tree) if places else ():
                if isinstance(function, ast.FunctionDef) and function.name == node.func.id:
                    parameters = function.args.args
                    self.found.update(parameters[place].arg for place in places if place < len(parameters))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            if self.has_path(value):
                self.found.add(target.id)
        elif isinstance(target, ast.Tuple):
            values = value.elts if isinstance(value, ast.Tuple) else [*self._items(value)]
            for part, item in zip(target.elts, values, strict=False):
                self._assign(part, item)

    def _items(self, value: ast.expr) -> Iterator[ast.expr]:
        """Yield sys.argv[1], sys.argv[2] and so on for sys.argv[1:], and likewise for other slices."""
        if match := _ARGUMENTS.fullmatch(ast.unparse(value)):
            for place in range(int(match[1] or 0), len(self._arguments)):
                yield ast.parse(f"sys.argv[{place}]", mode="eval").body

    def words(self, parts: Sequence[ast.AST]) -> list[str]:
        """Return the items of a list or an f-string as words, with DATABASE for its path."""
        return [self._word(part) for part in parts]

    def _word(self, node: ast.AST) -> str:
        if isinstance(node, ast.FormattedValue):
            return self._word(node.value)
        if isinstance(node, ast.Constant):
            return str(node.value)
        return DATABASE if self.has_path(node) else "?"


def _touches_of(node: ast.AST, names: _Names) -> Iterator[tuple[str, str]]:
    """Yield the kind and the program or function of a node that copies or moves the database."""
    found: list[tuple[str, str] | None] = []
    if isinstance(node, ast.Call):
        found = [_touch_of_call(node, names)]
    elif isinstance(node, ast.List):
        found = [touch_of(names.words(node.elts))]
    elif isinstance(node, ast.JoinedStr):
        found = [touch_of(words) for words in commands_in("".join(names.words(node.values)))]
    yield from filter(None, found)


def _touch_of_call(call: ast.Call, names: _Names) -> tuple[str, str] | None:
    """Return the kind and the function of a call that copies or moves the database, else None."""
    function = ast.unparse(call.func)
    are_paths = [names.has_path(argument) for argument in call.args]
    if function in _COPIES | _MOVES:
        if not any(are_paths):
            return None
        return COPIED if function in _COPIES and are_paths[0] else MOVED, function
    if isinstance(call.func, ast.Attribute) and call.func.attr in _PATH_MOVES:
        is_target = are_paths == [True] and call.func.attr != "unlink"
        is_method = len(call.args) <= 1  # replace of a str has two arguments.
        if is_method and (is_target or names.has_path(call.func.value)):
            return MOVED, f"Path.{call.func.attr}"
    return None
