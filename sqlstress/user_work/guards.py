"""Search in the user's source code for a check of a query's result before a write.

A query and a later write can only race if the query's result decides whether the code writes. The search
covers the innermost function that leads to both statements, and the functions from there to each statement. A
check is a branch whose condition depends on the query's result, and which contains the write or can leave the
function or loop before it. A test for a missing row is no check: an UPDATE of a missing row changes nothing.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

_ROW, _VALUE, _CHECKED = 1, 2, 3
"""Kinds of expressions that depend on the query, ascending; other expressions have kind 0."""
_OTHER_COLUMNS, _WRITTEN_COLUMNS = 1, 2
"""Kinds of conditions: on columns of the row that the write does not change; on columns that it changes."""
_FETCHING = {
    *("fetchone", "fetchall", "fetchmany", "fetch", "execute", "first", "last", "get", "one", "one_or_none"),
    *("all", "exists", "list", "iter", "next", "isinstance", "dict", "tuple", "unique", "mappings", "len"),
}
"""Functions whose result is a row, rows, or the number of rows."""
LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class StackEntry(NamedTuple):
    """Active call of a user's function, and its current position."""

    frame: int
    """Id of the call's frame; a later call of the function may have the same id."""
    file: str
    line: int
    instruction: int
    """Offset of the current instruction in the function's bytecode."""


class GuardedRead(NamedTuple):
    """Checks of a query's result before a write, as far as the source shows them."""

    exists: bool
    """Whether the code checks a column that the write changes."""
    of_others: bool = False
    """Whether the code checks columns of the row that the write does not change."""


def guard_between(
    query: Sequence[StackEntry],
    write: Sequence[StackEntry],
    columns: Collection[str],
    read: Collection[str],
    by_rows: bool,
) -> GuardedRead | None:
    """Return the code's checks between a query and a write; None if the source is not available.

    `query` and `write` are the active calls of the user's functions at either statement, outermost first.
    `columns` are the columns that the write changes, and `read` those that the query reads. `by_rows` means
    that the query's WHERE contains the condition, so that a test for a missing row is a check.
    """
    depth = meeting(query, write)
    if depth is None:
        return None
    scopes = [scope_of(call.file, call.line) for call in (*query[depth:], *write[depth:])]
    if None in scopes:
        return None
    names = {*columns}, {*read} - {*columns}
    kind, other = _ROW, False
    for call in reversed(query[depth + 1 :]):
        flow = Flow(call, kind, names, by_rows)
        if flow.leaves_by_error():
            return GuardedRead(True)
        kind, other = flow.return_kind() or _ROW, other or flow.other
    flow = Flow(query[depth], kind, names, by_rows)
    before = query[depth].line
    for call, then in zip(write[depth:], (*write[depth + 1 :], None), strict=True):
        if flow.has_guard(before, call.line):
            return GuardedRead(True)
        other = other or flow.other
        if not then:
            break
        argument_kinds = flow.parameters(call.line, then)
        flow, before = Flow(then, 0, names, by_rows, argument_kinds), 0
    return GuardedRead(False, other)


def meeting(query: Sequence[StackEntry], write: Sequence[StackEntry]) -> int | None:
    """Return the index of the innermost call that leads to both statements; None if there is none."""
    result = None
    for depth, (reader, writer) in enumerate(zip(query, write, strict=False)):
        if (reader.frame, reader.file) != (writer.frame, writer.file):
            break
        result = depth
        if reader.instruction != writer.instruction:
            break
    return result


@cache
def _module(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None


@cache
def scope_of(file: str, line: int) -> _Function | ast.Module | None:
    """Return the innermost function that contains a line, else the module; None without a usable source."""
    module = _module(file)
    if module is None or not module.body:
        return None
    around = [node for node in ast.walk(module) if isinstance(node, _Function) and contains(node, line)]
    return max(around, key=lambda node: node.lineno, default=module)


def contains(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)


def nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function in their order, without those of nested functions and classes."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, _Function | ast.Lambda | ast.ClassDef):
            yield node
            yield from nodes(node)


def path_of(node: ast.AST) -> str:
    """Return the dotted name that an expression consists of, such as "self.row"; empty if it is no name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := path_of(node.value)):
        return f"{base}.{node.attr}"
    return ""


def _shows_absence(node: ast.expr) -> bool:
    """Return whether a comparison with this expression tests whether a row exists: None, or len(...)."""
    if isinstance(node, ast.Call):
        return path_of(node.func) == "len"
    return isinstance(node, ast.Constant) and node.value is None


class Flow:
    """The flow of a query's result through the variables of a function."""

    def __init__(
        self,
        call: StackEntry,
        kind: int,
        names: tuple[set[str], set[str]],
        by_rows: bool,
        argument_kinds: dict[str, int] | None = None,
    ) -> None:
        """Analyse the function of `call`, which was active at the query or write.

        `kind` is the kind of value that the call's line returns; 0 if the line does not run the query.
        `names` has the columns that the write changes, and those only read. `argument_kinds` has the kind of
        each parameter.
        """
        scope = scope_of(call.file, call.line)
        assert scope
        self._scope = scope
        self._line, self._kind, self._by_rows = call.line, kind, by_rows
        self._columns, self._read = names
        self._kinds_by_name: dict[str, int] = dict(argument_kinds or {})
        self.other = False
        """Whether a check was found of columns that the query reads and the write does not change."""
        self._follow()

    def _follow(self) -> None:
        """Find the variables with the result, in two passes: a loop may use what a later line sets."""
        for _ in range(2):
            for node in nodes(self._scope):
                self._assign(node)

    def has_guard(self, after: int, line: int) -> bool:
        """Return whether a check, whose condition ends at line `after` or later, decides if `line` runs."""
        return self._checks(test for node, test in self._tests(after, line) if self._decides(node, line))

    def leaves_by_error(self) -> bool:
        """Return whether the function checks the query's result after the query, and may raise an error."""
        return self._checks(
            test
            for node, test in self._tests(self._line, None)
            if isinstance(node, ast.Assert) or any(isinstance(part, ast.Raise) for part in nodes(node))
        )

    def _checks(self, tests: Iterable[ast.expr]) -> bool:
        kinds = {self._check_kind(test) for test in tests}
        self.other = self.other or _OTHER_COLUMNS in kinds
        return _WRITTEN_COLUMNS in kinds

    def return_kind(self) -> int:
        """Return the highest kind of the return values: _CHECKED if a check of the result decides them."""
        kinds = [0]
        for node in nodes(self._scope):
            if isinstance(node, ast.Return | ast.Yield) and node.value:
                kinds.append(self._kind_of(node.value))
        leaves = self._checks(
            test
            for node, test in self._tests(self._line, None)
            if any(isinstance(part, ast.Return) for part in nodes(node))
        )
        return _CHECKED if leaves else max(kinds)

    def parameters(self, line: int, then: StackEntry) -> dict[str, int]:
        """Return the kinds of parameters, and of attributes of self, when a line calls `then`, by name."""
        scope = scope_of(then.file, then.line)
        if not isinstance(scope, _Function):
            return {}
        names = [argument.arg for argument in (*scope.args.posonlyargs, *scope.args.args)]
        is_method = bool(names) and names[0] in ("self", "cls")
        kinds: dict[str, int] = {}
        for node in nodes(self._scope):
            if isinstance(node, ast.Call) and contains(node, line):
                callee = path_of(node.func).rpartition(".")
                if callee[2] != scope.name:
                    continue
                if is_method:
                    base = f"{callee[0]}."
                    kinds.update(
                        {
                            f"{names[0]}.{name.removeprefix(base)}": kind
                            for name, kind in self._kinds_by_name.items()
                            if name.startswith(base)
                        }
                    )
                    if kind := self._kinds_by_name.get(callee[0], 0):
                        kinds[names[0]] = kind
                pairs = [*zip(names[is_method:], node.args, strict=False)]
                pairs += [(word.arg, word.value) for word in node.keywords if word.arg]
                kinds.update({name: kind for name, value in pairs if (kind := self._kind_of(value))})
        return kinds

    def _assign(self, node: ast.AST) -> None:
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            targets, value = [node.target], node.value
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            targets, value = [node.target], node.iter
        elif isinstance(node, ast.withitem) and node.optional_vars:
            targets, value = [node.optional_vars], node.context_expr
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
            # After `cursor.execute(...)` the cursor has the rows.
            call = node.value.value if isinstance(node.value, ast.Await) else node.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                targets, value = [call.func.value], node.value
        kind = self._kind_of(value) if value else 0
        for target in targets if kind else []:
            unpacks = isinstance(target, ast.Tuple | ast.List)
            for part in ast.walk(target):
                if name := path_of(part):
                    previous = self._kinds_by_name.get(name, 0)
                    self._kinds_by_name[name] = max(previous, _VALUE if unpacks and kind == _ROW else kind)
                    if isinstance(part, ast.Attribute):
                        break

    def _kind_of(self, node: ast.expr) -> int:
        """Return the kind of an expression; 0 if it does not depend on the query."""
        if name := path_of(node):
            parts = name.split(".")
            for end in range(len(parts), 0, -1):
                if kind := self._kinds_by_name.get(".".join(parts[:end]), 0):
                    return kind if end == len(parts) else max(kind, _VALUE)
            return 0
        if isinstance(node, ast.Await | ast.Starred | ast.FormattedValue):
            return self._kind_of(node.value)
        if isinstance(node, ast.Call):
            return self._kind_of_call(node)
        parts_of = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        kind = max(map(self._kind_of, parts_of), default=0)
        if kind == _ROW and isinstance(node, ast.Subscript | ast.BinOp | ast.Attribute):
            return _VALUE
        is_condition = isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp)
        if is_condition and kind and self._check_kind(node, False) == _WRITTEN_COLUMNS:
            return _CHECKED
        return kind

    def _kind_of_call(self, node: ast.Call) -> int:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else path_of(node.func)
        base = self._kind_of(node.func.value) if isinstance(node.func, ast.Attribute) else 0
        arguments = [*node.args, *(word.value for word in node.keywords)]
        kind = max([base, *map(self._kind_of, arguments)])
        # The query is run by the innermost call that contains its line.
        within = any(isinstance(part, ast.Call) and contains(part, self._line) for part in nodes(node))
        if self._kind and contains(node, self._line) and not within:
            return max(kind, _VALUE if "scalar" in name else self._kind)
        if kind == _ROW and name not in _FETCHING:
            return _VALUE
        return kind

    def _tests(self, after: int, line: int | None) -> Iterator[tuple[ast.AST, ast.expr]]:
        """Yield each branch and its condition between lines `after` and `line`; None means no limit."""
        for node in nodes(self._scope):
            test = node.subject if isinstance(node, ast.Match) else getattr(node, "test", None)
            if (
                isinstance(test, ast.expr)
                and (test.end_lineno or 0) >= after
                and (line is None or test.lineno <= line)
            ):
                yield node, test
            if isinstance(node, ast.BoolOp) and line is not None and contains(node, line):
                yield node, node.values[0]

    def _decides(self, node: ast.AST, line: int) -> bool:
        if isinstance(node, ast.Assert) or contains(node, line):
            return True
        for part in nodes(node):
            targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
            # An ORM writes a changed attribute later, when its session is flushed.
            if any(
                isinstance(target, ast.Attribute) and target.attr.lower() in self._columns
                for target in targets
            ):
                return True
            if isinstance(part, LEAVING):
                return True
        return isinstance(node, ast.While)

    def _check_kind(self, test: ast.expr, truth: bool = True) -> int:
        """Return a condition's kind; 0 if it is no check. `truth`: a bare value counts, as in `if value:`."""
        if isinstance(test, ast.BoolOp):
            return max(self._check_kind(value, truth) for value in test.values)
        if isinstance(test, ast.UnaryOp):
            return self._check_kind(test.operand, truth)
        if isinstance(test, ast.NamedExpr | ast.Await):
            return self._check_kind(test.value, truth)
        is_comparison = isinstance(test, ast.Compare)
        compared = [test.left, *test.comparators] if isinstance(test, ast.Compare) else [test]
        kind = max(map(self._kind_of, compared))
        if is_comparison:
            is_check = kind > 0 and not any(map(_shows_absence, compared))
        else:
            is_check = kind == _CHECKED or (truth and kind == _VALUE)
        if not is_check and not (self._by_rows and kind and (truth or is_comparison)):
            return 0
        return _OTHER_COLUMNS if self._names_others(test) else _WRITTEN_COLUMNS

    def _names_others(self, test: ast.expr) -> bool:
        """Return whether a condition names columns that the query reads, and none that the write changes."""
        names = set()
        for node in ast.walk(test):
            if isinstance(node, ast.Attribute):
                names.add(node.attr.lower())
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                names.add(str(node.slice.value).lower())
        return bool(names & self._read) and not names & self._columns
