"""Search in the user's source code for a dependence of a write on an earlier query.

A write depends on a query if a value of the query's result reaches the write. A write also depends on the
query if the result decides, by a branch, a loop or an exception, whether the write runs. In case of doubt the
search finds a dependence. A stack has the user's functions that were running at a statement, outermost first.
The module `guards` defines a guard, and the kinds of expressions, such as ROW.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from sqlstress.races.guards import (
    LEAVING,
    ROW,
    Flow,
    arguments_of,
    common_depth,
    condition_of,
    contains,
    nodes,
    path_of,
    scope_of,
    targets_of,
)
from sqlstress.recording.callers import StackEntry

_RUNS_SQL = {"execute", "executemany"}
_SAVES_LATER = {"add", "add_all", "append", "create", "insert", "merge", "put", "save"}
"""Names of methods that pass a row to an ORM, which may write the row later."""


def may_depend(
    query_stack: Sequence[StackEntry],
    write_stack: Sequence[StackEntry],
    by_rows: bool,
    sets: Collection[str] = (),
    others: Collection[str] = (),
) -> bool | None:
    """Return whether a write may depend on a query; None if unknown.

    None means that the source is missing, or does not show the function calls from the query to the write.
    False means that the source shows these calls, and no dependence. `by_rows` is whether a mere test for a
    missing row, as before an INSERT, is a dependence. `sets` are the columns that an UPDATE sets. `others`
    are the other columns that the query reads, such as the key: a write that uses only these columns does
    not depend on the query.
    """
    names = {*sets}, {*others}
    depth = common_depth(query_stack, write_stack)
    if depth is None:
        # No function call is in both stacks, so different threads ran the query and the write. A result that
        # stays in the query's thread cannot reach the write.
        return None if _leaves_thread(query_stack, names, by_rows) else False
    if query_stack[depth].instruction == write_stack[depth].instruction:
        return None  # A single call of a library runs both query and write.
    stacks = (*query_stack[depth:], *write_stack[depth:])
    if any(scope_of(entry.file, entry.line) is None for entry in stacks):
        return None
    kind, escapes, callee = ROW, False, None
    for entry in reversed(query_stack[depth:]):
        flow = _WideFlow(entry, kind, names, by_rows, escapes=escapes)
        if (
            callee
            and not flow.calls(entry.line, callee)
            and not flow.reads_property(entry.line, callee, kind)
        ):
            return None  # The source does not show the call: an operator or a library calls the function.
        if entry is query_stack[depth]:
            break
        if flow.leaves_by_error():
            return True
        kind, escapes, callee = flow.return_kind() or ROW, flow.escapes(), entry
    before = query_stack[depth].line
    for entry, called in zip(write_stack[depth:], (*write_stack[depth + 1 :], None), strict=True):
        if flow.has_guard(before, entry.line) or flow.decides_otherwise(before, entry.line):
            return True
        if not called:
            return flow.reaches(before, entry.line)
        if not flow.calls(entry.line, called):
            return None  # A library calls the user's function, with unknown arguments.
        flow, before = _WideFlow(called, 0, names, by_rows, flow.arguments(entry.line, called)), 0
    return None


def combines(first_stack: Sequence[StackEntry], then_stack: Sequence[StackEntry]) -> bool:
    """Return whether the code compares, adds or subtracts the results of two queries; False if unknown."""
    depth = common_depth(first_stack, then_stack)
    if depth is None or scope_of(first_stack[depth].file, first_stack[depth].line) is None:
        return False
    first = Flow(first_stack[depth], ROW, (set(), set()), by_rows=False)
    then = Flow(then_stack[depth], ROW, (set(), set()), by_rows=False)
    return any(
        (first.has(left) and then.has(right)) or (first.has(right) and then.has(left))
        for left, right in first.operands()
    )


def processes_rows(stack: Sequence[StackEntry]) -> bool:
    """Return whether the function that runs a query loops over the rows; False if unknown."""
    if not stack or scope_of(stack[-1].file, stack[-1].line) is None:
        return False
    flow = Flow(stack[-1], ROW, (set(), set()), by_rows=False)
    return any(map(flow.has, flow.iterated()))


def _leaves_thread(stack: Sequence[StackEntry], names: tuple[set[str], set[str]], by_rows: bool) -> bool:
    """Return whether a query's result may reach code outside of the thread that ran the query.

    The result may leave the functions in `stack` as a return value, by an exception, or in an object or a
    global variable. Return True if unknown. See `Flow` for `names` and `by_rows`.
    """
    if not stack or any(scope_of(entry.file, entry.line) is None for entry in stack):
        return True
    kind, callee = ROW, None
    for entry in reversed(stack):
        flow = _WideFlow(entry, kind, names, by_rows)
        if (
            callee
            and not flow.calls(entry.line, callee)
            and not flow.reads_property(entry.line, callee, kind)
        ):
            return True  # The source does not show the call: an operator or a library calls the function.
        if flow.escapes() or flow.leaves_by_error():
            return True
        kind, callee = flow.return_kind(), entry
        if not kind:
            return False
    return True


class _WideFlow(Flow):
    """Flow of a query's result through a function, including exceptions, loops and changed objects."""

    def __init__(
        self,
        entry: StackEntry,
        kind: int,
        names: tuple[set[str], set[str]],
        by_rows: bool,
        argument_kinds: dict[str, int] | None = None,
        escapes: bool = False,
    ) -> None:
        """Analyse the function of `entry`; see `Flow` for the parameters except `escapes`.

        If another function runs the query, `entry` has the line that calls this other function. `escapes` is
        whether the other function may store the result in an argument, or in `self`. If so, the arguments
        and the object of the call get the kind ROW.
        """
        super().__init__(entry, kind, names, by_rows, argument_kinds)
        if escapes:
            for name in self._names_in_calls(entry.line):
                self._kinds_by_name.setdefault(name, ROW)
            self._find_kinds()

    def _assign(self, node: ast.AST) -> None:
        super()._assign(node)
        self._assign_in_branch(node)

    def _names_in_calls(self, line: int) -> Iterator[str]:
        for node in nodes(self._scope):
            if isinstance(node, ast.Call) and contains(node, line):
                parts = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
                yield from (path_of(part) for part in parts if path_of(part))

    def _assign_in_branch(self, node: ast.AST) -> None:
        """Give the kind ROW to the variables in a branch, if the branch's condition depends on the query.

        The blocks of a `try` statement count as branches if its body runs the query, because it may fail.
        """
        test = condition_of(node)
        is_tried = isinstance(node, ast.Try) and self._kind and _spans(node.body, self._line)
        is_branch = isinstance(node, ast.If | ast.While | ast.Match) and test and self._kind_of(test)
        if not is_tried and not is_branch:
            return
        for part in nodes(node):
            for target in targets_of(part):
                if name := path_of(target):
                    self._kinds_by_name.setdefault(name, ROW)

    def escapes(self) -> bool:
        """Return whether the function may store the query's result outside of local variables."""
        scope = self._scope
        names = [argument.arg for argument in ast.walk(scope) if isinstance(argument, ast.arg)]
        return any(name.partition(".")[0] in names or "." in name for name in self._kinds_by_name) or any(
            isinstance(node, ast.Global | ast.Nonlocal) for node in nodes(scope)
        )

    def decides_otherwise(self, after: int, line: int) -> bool:
        """Return whether the query's result decides in another way than by a guard whether the write runs.

        The write may be in a loop over the result, or run only if the query raised an exception. Or a branch
        passes a row to an ORM, which writes the row later. `after` is the line of the query, and `line` the
        line of the write.
        """
        for node in nodes(self._scope):
            if isinstance(node, ast.For | ast.AsyncFor) and contains(node, line) and self._kind_of(node.iter):
                return True
            if isinstance(node, ast.Try) and self._line and _spans(node.body, self._line):
                rest = [*node.handlers, *node.orelse]
                parts = chain.from_iterable(nodes(part) for part in rest)
                leaves = any(isinstance(part, LEAVING) for part in (*rest, *parts))
                if _spans(rest, line) or (leaves and not _spans(node.body, line)):
                    return True
            if isinstance(node, ast.If) and after <= (node.end_lineno or 0) <= line:
                saves = any(
                    isinstance(part, ast.Call)
                    and isinstance(part.func, ast.Attribute)
                    and part.func.attr in _SAVES_LATER
                    for part in nodes(node)
                )
                if saves and self._tested_columns(node.test):
                    return True
        return False

    def calls(self, line: int, callee: StackEntry) -> bool:
        """Return whether a line calls the function of `callee` by its name."""
        name = getattr(scope_of(callee.file, callee.line), "name", None)
        return any(
            isinstance(node, ast.Call)
            and contains(node, line)
            and path_of(node.func).rpartition(".")[2] == name
            for node in nodes(self._scope)
        )

    def reads_property(self, line: int, callee: StackEntry, kind: int) -> bool:
        """Return whether a line reads a property whose getter is the function of `callee`.

        If so, the attribute gets the kind `kind`, such as ROW.
        """
        name = getattr(scope_of(callee.file, callee.line), "name", None)
        paths = {
            path_of(node)
            for node in nodes(self._scope)
            if isinstance(node, ast.Attribute) and contains(node, line) and node.attr == name
        }
        for path in filter(None, paths):
            self._kinds_by_name[path] = kind
        self._find_kinds()
        return bool(paths)

    def arguments(self, line: int, callee: StackEntry) -> dict[str, int]:
        """Return the kinds, such as ROW, of the variables that `callee` gets from its call on `line`."""
        scope = scope_of(callee.file, callee.line)
        kinds = self.parameters(line, callee)
        if scope is not None and scope in ast.walk(self._scope):
            # A nested function also gets the variables of the enclosing function.
            kinds = {**self._kinds_by_name, **kinds}
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) and self._uses_result_at(line):
            collected = (scope.args.vararg, scope.args.kwarg, *scope.args.kwonlyargs)
            kinds.update({argument.arg: ROW for argument in collected if argument})
        return kinds

    def _uses_result_at(self, line: int) -> bool:
        calls = (node for node in nodes(self._scope) if isinstance(node, ast.Call) and contains(node, line))
        return any(self._kind_of(argument) for call in calls for argument in arguments_of(call))

    def _kind_of(self, node: ast.expr) -> int:
        if _is_cut_to_its_beginning(node):
            return 0
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.comprehension)]
        conditions = [condition for part in parts for condition in (part.iter, *part.ifs)]
        return super()._kind_of(node) or max(map(self._kind_of, conditions), default=0)

    def reaches(self, after: int, line: int) -> bool:
        """Return whether a value of the query's result reaches the write on `line`.

        The value may be an argument of the write. Or the code stores the value in an object, and an ORM
        writes the object. Assignments before line `after`, the query's line, do not count, nor do values of
        columns that the write does not set.
        """
        statements = [
            node for node in nodes(self._scope) if isinstance(node, ast.stmt) and contains(node, line)
        ]
        innermost = max(statements, key=lambda node: (node.lineno, -(node.end_lineno or 0)), default=None)
        if innermost is None:
            return True
        parts: list[ast.AST] = [innermost]
        until = line
        if isinstance(innermost, ast.With | ast.AsyncWith):  # The end of the `with` block runs the write.
            parts = [*innermost.items]
            until = innermost.end_lineno or line
        elif isinstance(innermost, ast.If | ast.While):
            parts = [innermost.test]
        elif isinstance(innermost, ast.For | ast.AsyncFor):
            parts = [innermost.iter]
        runs_sql = any(_runs_sql(node) for part in parts for node in ast.walk(part))
        if self._saves_new_values(innermost, after):
            return False
        if any(map(self._uses_result, parts)):
            return True
        return not runs_sql and any(
            self._changes_object(node)
            for node in nodes(self._scope)
            if after <= getattr(node, "lineno", 0) <= until
        )

    def _saves_new_values(self, statement: ast.stmt, after: int) -> bool:
        """Return whether a statement saves a row object whose written values do not depend on the query.

        An example is `player.save(only=[Player.name])` after `player.name = "anna"`: this save is harmless.
        Assignments before line `after`, the query's line, do not count.
        """
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return False
        base = path_of(call.func.value)
        assigned: dict[str, list[bool]] = {}
        for node in nodes(self._scope):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets:
                if not isinstance(target, ast.Attribute) or path_of(target.value) != base:
                    continue
                if after <= target.lineno <= statement.lineno:
                    is_new = isinstance(node, ast.Assign) and not self._kind_of(node.value)
                    assigned.setdefault(target.attr.lower(), []).append(is_new)
        return bool(base and self._columns) and all(
            all(assigned.get(column, [False])) for column in self._columns
        )

    def _uses_result(self, part: ast.AST) -> bool:
        """Return whether a part of a statement uses the query's result.

        The object that executes the SQL, such as the cursor, does not count.
        """
        if isinstance(part, ast.Call) and _runs_sql(part):
            return any(map(self._uses_result, arguments_of(part)))
        if isinstance(part, ast.Subscript | ast.Attribute) and self._names_others(part):
            return False
        if isinstance(part, ast.expr) and path_of(part):
            return self._kind_of(part) > 0
        return any(map(self._uses_result, ast.iter_child_nodes(part)))

    def _changes_object(self, node: ast.AST) -> bool:
        """Return whether a statement stores the query's result in an object, or may change a row object."""
        if isinstance(node, ast.AugAssign):
            return not isinstance(node.target, ast.Name) and bool(
                self._kind_of(node.target) or self._kind_of(node.value)
            )
        if isinstance(node, ast.Assign):
            return bool(self._kind_of(node.value)) and not all(
                isinstance(target, ast.Name | ast.Tuple) for target in node.targets
            )
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            return False
        call = node.value
        if _is_pythons_own(call.func):
            return False
        changed = [argument for argument in call.args if path_of(argument)]
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Attribute):
            changed.append(call.func.value)
        return any(map(self._kind_of, changed))


def _runs_sql(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RUNS_SQL


def _is_cut_to_its_beginning(node: ast.expr) -> bool:
    """Return whether an expression is a slice that keeps only the constant beginning of an f-string.

    Such a slice, as in `f"hello {name}"[:5]`, does not depend on the values in the f-string.
    """
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.JoinedStr)):
        return False
    first, cut = next(iter(node.value.values), None), node.slice
    if not (isinstance(first, ast.Constant) and isinstance(first.value, str) and isinstance(cut, ast.Slice)):
        return False
    end = cut.upper.value if isinstance(cut.upper, ast.Constant) else None
    return cut.lower is None and isinstance(end, int) and 0 <= end <= len(first.value)


def _is_pythons_own(function: ast.expr) -> bool:
    """Return whether a function, such as `print`, is part of Python, and so changes no ORM object."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant):
        return True
    root, _, method = path_of(function).partition(".")
    return root in (sys.stdlib_module_names if method else dir(builtins))


def _spans(parts: Sequence[ast.AST], line: int) -> bool:
    return any(contains(part, line) for part in parts)
