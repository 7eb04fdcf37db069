"""Search in the user's Python code for guards: conditions on a query's result before an SQL write.

For example: `SELECT n`, then the guard `if n >= 10:`, then `UPDATE ... SET n = n - 10`. A guard decides
whether the write runs. The write is in the guard's branch, or the branch has a `return` or `raise` before the
write.

A test for a missing row, as in `if row is None`, is usually no guard: an UPDATE of a missing row changes
nothing. The test is a guard if the query selects by a column that the write changes, as in `SELECT id ...
WHERE n > 0`, then `if row:`, then `SET n = n - 1`. By then another process may have set n to 0.

A stack has the user's functions that were running at a statement, outermost first. The search covers the
innermost function that is in both stacks, and the functions below it in each stack.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from sqlstress.recording.callers import StackEntry

ROW, _VALUE, _CHECKED = 1, 2, 3
"""Kinds of expressions that depend on a query's result; 0 means an expression that does not.

ROW: a row, or several rows, as `fetchone()` returns. _VALUE: a value in a row, such as `row[0]`. _CHECKED:
the result of a comparison, such as `row[0] > 5`. If several kinds are possible, the largest number counts.
"""
_OTHER_COLUMNS, _WRITTEN_COLUMNS = 1, 2
"""Kinds of guards, which are conditions such as `if row.n > 0` before a write.

_WRITTEN_COLUMNS: the guard tests a column that the write changes, such as n before `SET n = n - 1`. A guard
also has this kind if its columns are unknown. _OTHER_COLUMNS: the guard tests only columns that the write
does not change.
"""
_FETCHING = {
    *("fetchone", "fetchall", "fetchmany", "fetch", "execute", "first", "last", "get", "one", "one_or_none"),
    *("all", "exists", "list", "iter", "next", "isinstance", "dict", "tuple", "unique", "mappings", "len"),
}
"""Functions that get a row or cursor, and whose result has the kind ROW, such as `fetchone` and `len`.

The result only shows which rows the query found. The result of any other function, such as `sum(rows)`, has
the kind _VALUE.
"""
LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


IGNORED_LOCKS = ("with_for_update", "select_for_update")
"""Names of methods of SQLAlchemy and Django that lock rows in PostgreSQL, but do nothing in SQLite."""


class FoundGuards(NamedTuple):
    """Guards, such as `if n > 0`, that the source shows between a query and a write."""

    exists: bool
    """Whether a guard tests a column that the write changes, such as n before `SET n = n - 1`."""
    on_other_columns: bool = False
    """Whether a guard tests only columns that the write does not change."""


def guard_between(
    query_stack: Sequence[StackEntry],
    write_stack: Sequence[StackEntry],
    columns: Collection[str],
    read: Collection[str],
    absence_counts: bool,
) -> FoundGuards | None:
    """Return the guards, such as `if n > 0`, between a query and a write; None without the source.

    `columns` are the columns that the write changes, and `read` the columns that the query reads.
    `absence_counts` is whether a test for a missing row, as in `if row is None`, is a guard. The caller
    passes True if the query's WHERE clause tests a column that the write changes.
    """
    depth = common_depth(query_stack, write_stack)
    if depth is None:
        return None
    scopes = [scope_of(entry.file, entry.line) for entry in (*query_stack[depth:], *write_stack[depth:])]
    if None in scopes:
        return None
    names = {*columns}, {*read} - {*columns}
    kind, on_other_columns = ROW, False
    for entry in reversed(query_stack[depth + 1 :]):
        flow = Flow(entry, kind, names, absence_counts)
        if flow.leaves_by_error():
            return FoundGuards(True)
        kind, on_other_columns = flow.return_kind() or ROW, on_other_columns or flow.has_other_guard
    flow = Flow(query_stack[depth], kind, names, absence_counts)
    before = query_stack[depth].line
    for entry, callee in zip(write_stack[depth:], (*write_stack[depth + 1 :], None), strict=True):
        if flow.has_guard(before, entry.line):
            return FoundGuards(True)
        on_other_columns = on_other_columns or flow.has_other_guard
        if not callee:
            break
        argument_kinds = flow.parameters(entry.line, callee)
        flow, before = Flow(callee, 0, names, absence_counts, argument_kinds), 0
    return FoundGuards(False, on_other_columns)


def common_depth(query_stack: Sequence[StackEntry], write_stack: Sequence[StackEntry]) -> int | None:
    """Return the index, in both stacks, of the innermost function that ran both statements; or None.

    For example, 1 if `main` calls `book`, which calls `read` for the query and `save` for the write.
    """
    result = None
    for depth, (reader, writer) in enumerate(zip(query_stack, write_stack, strict=False)):
        # A later call's frame may have the id of an earlier frame. So compare the file and function, too.
        if (reader.frame, reader.file) != (writer.frame, writer.file):
            break
        if scope_of(reader.file, reader.line) is not scope_of(writer.file, writer.line):
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
    """Return the syntax tree of the function or module that contains a line; None without the source."""
    module = _module(file)
    if module is None or not module.body:
        return None
    around = [node for node in ast.walk(module) if isinstance(node, _Function) and contains(node, line)]
    return max(around, key=lambda node: node.lineno, default=module)


def ignored_lock(stack: Sequence[StackEntry]) -> str:
    """Return the name of a row lock, such as "select_for_update", that a function in `stack` uses.

    The result is empty if no function uses a row lock. Row locks prevent no race, since SQLite ignores them.
    """
    scopes = [scope for entry in stack if (scope := scope_of(entry.file, entry.line))]
    names = {node.attr for scope in scopes for node in ast.walk(scope) if isinstance(node, ast.Attribute)}
    return next((name for name in IGNORED_LOCKS if name in names), "")


def scope_texts(stack: Sequence[StackEntry]) -> list[str] | None:
    """Return the string literals, such as SQL, in the functions of `stack`; None without the source."""
    scopes = [scope_of(entry.file, entry.line) for entry in stack]
    if not scopes or None in scopes:
        return None
    parts = (part for scope in scopes if scope for part in ast.walk(scope))
    return [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def contains(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)


def nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below `scope` in source order, without nested functions and classes."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, _Function | ast.Lambda | ast.ClassDef):
            yield node
            yield from nodes(node)


def path_of(node: ast.AST) -> str:
    """Return a name, such as "row" or "self.row", as text; empty for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := path_of(node.value)):
        return f"{base}.{node.attr}"
    return ""


def condition_of(node: ast.AST) -> ast.expr | None:
    """Return the condition of a branch, loop or assert, or the subject of a match; None for other nodes."""
    return node.subject if isinstance(node, ast.Match) else getattr(node, "test", None)


def targets_of(node: ast.AST) -> list[ast.expr]:
    """Return the variables that an assignment or loop sets; empty for other nodes."""
    if isinstance(node, ast.Assign):
        return node.targets
    target = getattr(node, "target", None)
    return [] if target is None else [target]


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """Return the positional and keyword arguments of a call expression."""
    return [*call.args, *(word.value for word in call.keywords)]


def _shows_absence(node: ast.expr) -> bool:
    """Return whether an operand is None or len(...), as in the tests `row is None` and `len(rows) == 0`."""
    if isinstance(node, ast.Call):
        return path_of(node.func) == "len"
    return isinstance(node, ast.Constant) and node.value is None


class Flow:
    """Search in a function for variables that depend on a query, and for guards that test them.

    Each variable gets a kind, such as ROW for a row of the query.
    """

    def __init__(
        self,
        entry: StackEntry,
        kind: int,
        names: tuple[set[str], set[str]],
        absence_counts: bool,
        argument_kinds: dict[str, int] | None = None,
    ) -> None:
        """Find the kind of each variable in a function that was running at the query or the write.

        - entry: the function and its line that runs the query or write, or calls a function that does so
        - kind: kind of the value that this line gets from the query: ROW for a row, 0 for no value
        - names: the columns that the write changes, and the other columns that the query reads
        - absence_counts: whether a test for a missing row, as in `if row is None`, is a guard
        - argument_kinds: kind of each argument that the function gets, by parameter name
        """
        scope = scope_of(entry.file, entry.line)
        assert scope
        self._scope = scope
        self._line, self._kind, self._absence_counts = entry.line, kind, absence_counts
        self._columns, self._read = names
        self._kinds_by_name: dict[str, int] = dict(argument_kinds or {})
        self.has_other_guard = False
        """Whether a method has found a guard that tests only columns that the write does not change."""
        self._find_kinds()

    def _find_kinds(self) -> None:
        for _ in range(2):  # A loop may use a variable before the line that sets it.
            for node in nodes(self._scope):
                self._assign(node)

    def has(self, node: ast.expr) -> bool:
        """Return whether an expression depends on the query's result."""
        return self._kind_of(node) > 0

    def operands(self) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Yield the left and right operand of each comparison, sum and difference in the function."""
        for node in nodes(self._scope):
            if isinstance(node, ast.Compare):
                yield node.left, node.comparators[0]
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
                yield node.left, node.right
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
                yield node.target, node.value

    def iterated(self) -> Iterator[ast.expr]:
        """Yield each expression, such as `rows`, over which a `for` statement of the function loops."""
        for node in nodes(self._scope):
            if isinstance(node, ast.For | ast.AsyncFor):
                yield node.iter

    def has_guard(self, after: int, line: int) -> bool:
        """Return whether a guard, such as `if n > 0`, on a written column decides whether `line` runs.

        Conditions before line `after` do not count: the query's line, or 0 if another function ran the query.
        """
        return self._note_guards(test for node, test in self._tests(after, line) if self._decides(node, line))

    def leaves_by_error(self) -> bool:
        """Return whether a guard decides if the function raises an error, as in `if n < 1: raise ...`."""
        return self._note_guards(
            test
            for node, test in self._tests(self._line, None)
            if isinstance(node, ast.Assert) or any(isinstance(part, ast.Raise) for part in nodes(node))
        )

    def _note_guards(self, tests: Iterable[ast.expr]) -> bool:
        """Return whether any of the conditions `tests` is a guard on a column that the write changes.

        As a side effect, set `has_other_guard` if a condition is a guard on other columns.
        """
        tested = {self._tested_columns(test) for test in tests}
        self.has_other_guard = self.has_other_guard or _OTHER_COLUMNS in tested
        return _WRITTEN_COLUMNS in tested

    def return_kind(self) -> int:
        """Return the kind of the function's return values, such as ROW for a row of the query.

        If several kinds are possible, the largest is returned. For `if n > 5: return True` the result is
        _CHECKED: a guard decides which value is returned.
        """
        kinds = [0]
        for node in nodes(self._scope):
            if isinstance(node, ast.Return | ast.Yield) and node.value:
                kinds.append(self._kind_of(node.value))
        leaves = self._note_guards(
            test
            for node, test in self._tests(self._line, None)
            if any(isinstance(part, ast.Return) for part in nodes(node))
        )
        return _CHECKED if leaves else max(kinds)

    def parameters(self, line: int, callee: StackEntry) -> dict[str, int]:
        """Return the kind of each argument of the call of `callee` on `line`, by parameter name.

        For example, {"row": ROW} for the call `book(row)` of `def book(row)`, if `row` is a row of the query.
        For a method, the result also has the attributes of its object, such as "self.row".
        """
        scope = scope_of(callee.file, callee.line)
        if not isinstance(scope, _Function):
            return {}
        names = [argument.arg for argument in (*scope.args.posonlyargs, *scope.args.args)]
        is_method = bool(names) and names[0] in ("self", "cls")
        kinds: dict[str, int] = {}
        for node in nodes(self._scope):
            if isinstance(node, ast.Call) and contains(node, line):
                owner, _, function = path_of(node.func).rpartition(".")
                if function != scope.name:
                    continue
                if is_method:
                    base = f"{owner}."
                    kinds.update(
                        {
                            f"{names[0]}.{name.removeprefix(base)}": kind
                            for name, kind in self._kinds_by_name.items()
                            if name.startswith(base)
                        }
                    )
                    if kind := self._kinds_by_name.get(owner, 0):
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
                    self._kinds_by_name[name] = max(previous, _VALUE if unpacks and kind == ROW else kind)
                    if isinstance(part, ast.Attribute):
                        break

    def _kind_of(self, node: ast.expr) -> int:
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
        if kind == ROW and isinstance(node, ast.Subscript | ast.BinOp | ast.Attribute):
            return _VALUE
        is_condition = isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp)
        if is_condition and kind and self._tested_columns(node, False) == _WRITTEN_COLUMNS:
            return _CHECKED
        return kind

    def _kind_of_call(self, node: ast.Call) -> int:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else path_of(node.func)
        base = self._kind_of(node.func.value) if isinstance(node.func, ast.Attribute) else 0
        kind = max([base, *map(self._kind_of, arguments_of(node))])
        # Calls on the query's line may be nested, as in `dict(execute(...))`. The innermost call runs the
        # query. So only the innermost call returns what the query returns.
        within = any(isinstance(part, ast.Call) and contains(part, self._line) for part in nodes(node))
        if self._kind and contains(node, self._line) and not within:
            return max(kind, _VALUE if "scalar" in name else self._kind)
        if kind == ROW and name not in _FETCHING:
            return _VALUE
        return kind

    def _tests(self, after: int, line: int | None) -> Iterator[tuple[ast.AST, ast.expr]]:
        """Yield each branch, loop and assert from line `after` to `line`, with its condition.

        If `line` is None, the search ends with the function.
        """
        for node in nodes(self._scope):
            test = condition_of(node)
            if (
                isinstance(test, ast.expr)
                and (test.end_lineno or 0) >= after
                and (line is None or test.lineno <= line)
            ):
                yield node, test
            # In `n > 0 and execute(...)` on `line`, the first operand decides whether Python evaluates the
            # second operand.
            if isinstance(node, ast.BoolOp) and line is not None and contains(node, line):
                yield node, node.values[0]

    def _decides(self, node: ast.AST, line: int) -> bool:
        if isinstance(node, ast.Assert) or contains(node, line):
            return True
        for part in nodes(node):
            # An ORM writes a changed attribute later, when its session is flushed. So the assignment to the
            # attribute, as in `row.n = 5`, counts as the write.
            if any(
                isinstance(target, ast.Attribute) and target.attr.lower() in self._columns
                for target in targets_of(part)
            ):
                return True
            if isinstance(part, LEAVING):
                return True
        return isinstance(node, ast.While)

    def _tested_columns(self, test: ast.expr, truth: bool = True) -> int:
        """Return whether the condition `test` is a guard, and on which columns; 0 for no guard.

        The result is _WRITTEN_COLUMNS if the guard may test a column that the write changes, otherwise
        _OTHER_COLUMNS. `truth` is whether a value alone can be a guard, such as n in `if n:`. If `truth` is
        False, only a comparison such as `n > 0`, or its result, can be a guard.
        """
        if isinstance(test, ast.BoolOp):
            return max(self._tested_columns(value, truth) for value in test.values)
        if isinstance(test, ast.UnaryOp):
            return self._tested_columns(test.operand, truth)
        if isinstance(test, ast.NamedExpr | ast.Await):
            return self._tested_columns(test.value, truth)
        is_comparison = isinstance(test, ast.Compare)
        compared = [test.left, *test.comparators] if isinstance(test, ast.Compare) else [test]
        kind = max(map(self._kind_of, compared))
        if is_comparison:
            is_guard = kind > 0 and not any(map(_shows_absence, compared))
        else:
            is_guard = kind == _CHECKED or (truth and kind == _VALUE and not self._is_object(test))
        if not is_guard and not (self._absence_counts and kind and (truth or is_comparison)):
            return 0
        return _OTHER_COLUMNS if self._names_others(test) else _WRITTEN_COLUMNS

    def _is_object(self, test: ast.expr) -> bool:
        """Return whether the code sets attributes of a variable: it is an object, not a number or text."""
        return isinstance(test, ast.Name) and any(
            isinstance(target, ast.Attribute) and path_of(target.value) == test.id
            for node in nodes(self._scope)
            for target in targets_of(node)
        )

    def _names_others(self, test: ast.expr) -> bool:
        names = set()
        for node in ast.walk(test):
            if isinstance(node, ast.Attribute):
                names.add(node.attr.lower())
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                names.add(str(node.slice.value).lower())
        return bool(names & self._read) and not names & self._columns
