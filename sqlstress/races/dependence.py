"""Search in the user's Python code for SQL writes that depend on the result of an earlier query.

For example, `n = query("SELECT n")` and then `execute("UPDATE ... SET n = ?", n - 1)`: a value of the result
reaches the write. A write also depends on a query if the result decides, by a branch, a loop or an exception,
whether the write runs. In case of doubt the search finds a dependence.

A stack has the user's functions that were running at a statement, outermost first. Each expression has a
kind, which is a number: 0 if the value does not depend on the query, ROW (1) for a row of the query or for a
variable that is set in a branch on the row, and larger numbers for values in a row; see `guards`.
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
    absence_counts: bool,
    sets: Collection[str] = (),
    others: Collection[str] = (),
) -> bool | None:
    """Return whether a write may depend on a query; None if the source does not show it.

    For example, the result is True for `SELECT n`, and then `UPDATE ... SET n = ?` with the value `n - 1`.

    - query_stack, write_stack: the user's functions that were running at each statement
    - absence_counts: whether a test for a missing row, as in `if row is None`, is a dependence
    - sets: the columns that the write sets, if the write is an UPDATE
    - others: the other columns that the query reads, such as the key. A use of their values in the write is
      no dependence.
    """
    names = {*sets}, {*others}
    depth = common_depth(query_stack, write_stack)
    if depth is None:
        # The stacks have no function in common, so different threads ran the query and the write. If the
        # result stays in the query's thread, the result cannot reach the write.
        return None if _leaves_thread(query_stack, names, absence_counts) else False
    if query_stack[depth].instruction == write_stack[depth].instruction:
        return None  # A single call of a library runs both query and write.
    stacks = (*query_stack[depth:], *write_stack[depth:])
    if any(scope_of(entry.file, entry.line) is None for entry in stacks):
        return None
    kind, escapes, callee = ROW, False, None
    for entry in reversed(query_stack[depth:]):
        flow = _WideFlow(entry, kind, names, absence_counts, escapes=escapes)
        if (
            callee
            and not flow.calls(entry.line, callee)
            and not flow.reads_property(entry.line, callee, kind)
        ):
            return None  # An operator or a library calls `callee`, so the source does not show the call.
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
        flow, before = _WideFlow(called, 0, names, absence_counts, flow.arguments(entry.line, called)), 0
    return None


def combines(first_stack: Sequence[StackEntry], then_stack: Sequence[StackEntry]) -> bool:
    """Return whether the code compares, adds or subtracts the results of two queries; False if unknown.

    An example is `total = checking + savings`. The arguments are the stacks of the two queries.
    """
    depth = common_depth(first_stack, then_stack)
    if depth is None or scope_of(first_stack[depth].file, first_stack[depth].line) is None:
        return False
    first = Flow(first_stack[depth], ROW, (set(), set()), absence_counts=False)
    then = Flow(then_stack[depth], ROW, (set(), set()), absence_counts=False)
    return any(
        (first.has(left) and then.has(right)) or (first.has(right) and then.has(left))
        for left, right in first.operands()
    )


def passes_both(
    first_stack: Sequence[StackEntry], then_stack: Sequence[StackEntry], write_stack: Sequence[StackEntry]
) -> bool:
    """Return whether a call that runs a write has the results of two queries as arguments; False if unknown.

    An example is `execute("INSERT ...", (debit, credit))`. The arguments are the stacks of the queries and of
    the write.
    """
    depth = common_depth(first_stack, then_stack)
    if depth is None or common_depth(then_stack, write_stack) != depth:
        return False
    scope = scope_of(write_stack[depth].file, write_stack[depth].line)
    if scope is None:
        return False
    first = Flow(first_stack[depth], ROW, (set(), set()), absence_counts=False)
    then = Flow(then_stack[depth], ROW, (set(), set()), absence_counts=False)
    calls = (node for node in nodes(scope) if isinstance(node, ast.Call))
    return any(
        contains(call, write_stack[depth].line)
        and any(map(first.has, arguments_of(call)))
        and any(map(then.has, arguments_of(call)))
        for call in calls
    )


def processes_rows(stack: Sequence[StackEntry]) -> bool:
    """Return whether the function that runs a query loops over the rows with `for`; False if unknown.

    `stack` has the user's functions that were running at the query. The last of them runs the query.
    """
    if not stack or scope_of(stack[-1].file, stack[-1].line) is None:
        return False
    flow = Flow(stack[-1], ROW, (set(), set()), absence_counts=False)
    return any(map(flow.has, flow.iterated()))


def _leaves_thread(
    stack: Sequence[StackEntry], names: tuple[set[str], set[str]], absence_counts: bool
) -> bool:
    """Return whether a query's result may leave the thread that ran the query; True if unknown.

    For example, a function in the thread stores the result in `self.rows` or in a global variable.

    - names: the columns that the write changes, and the other columns that the query reads
    - absence_counts: whether a test for a missing row, as in `if row is None`, is a dependence
    """
    if not stack or any(scope_of(entry.file, entry.line) is None for entry in stack):
        return True
    kind, callee = ROW, None
    for entry in reversed(stack):
        flow = _WideFlow(entry, kind, names, absence_counts)
        if (
            callee
            and not flow.calls(entry.line, callee)
            and not flow.reads_property(entry.line, callee, kind)
        ):
            return True  # An operator or a library calls `callee`, so the source does not show the call.
        if flow.escapes() or flow.leaves_by_error():
            return True
        kind, callee = flow.return_kind(), entry
        if not kind:
            return False
    return True


class _WideFlow(Flow):
    """Search in a function for variables and writes that may depend on a query.

    The search finds more than `Flow`. For example, a write depends on the query if the write is in a loop
    over the rows, or in the `except` block of the query.
    """

    def __init__(
        self,
        entry: StackEntry,
        kind: int,
        names: tuple[set[str], set[str]],
        absence_counts: bool,
        argument_kinds: dict[str, int] | None = None,
        escapes: bool = False,
    ) -> None:
        """Analyse the function of `entry`; see `Flow` for the parameters except `escapes`.

        The line of `entry` may call a function that runs the query. `escapes` is whether this function may
        store a row in its arguments, or in its object if it is a method. For example, after
        `store.load(cache)` the row may be in `store` or in `cache`.
        """
        super().__init__(entry, kind, names, absence_counts, argument_kinds)
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
        """Mark all variables that are set in a branch on the query's result as dependent on the query.

        For example, after `if row: price = 5`, the query has decided whether price is 5. So the variable
        price gets the kind ROW, like the row itself, although the value is a constant.
        """
        test = condition_of(node)
        # If the body of a `try` statement runs the query, the query's success decides which blocks run.
        is_tried = isinstance(node, ast.Try) and self._kind and _spans(node.body, self._line)
        is_branch = isinstance(node, ast.If | ast.While | ast.Match) and test and self._kind_of(test)
        if not is_tried and not is_branch:
            return
        for part in nodes(node):
            for target in targets_of(part):
                if name := path_of(target):
                    self._kinds_by_name.setdefault(name, ROW)

    def escapes(self) -> bool:
        """Return whether the function may store the query's result in an argument, object or global."""
        scope = self._scope
        names = [argument.arg for argument in ast.walk(scope) if isinstance(argument, ast.arg)]
        return any(name.partition(".")[0] in names or "." in name for name in self._kinds_by_name) or any(
            isinstance(node, ast.Global | ast.Nonlocal) for node in nodes(scope)
        )

    def decides_otherwise(self, after: int, line: int) -> bool:
        """Return whether a query decides, other than by a guard such as `if n > 0`, whether a write runs.

        For example, the write is in a loop over the rows, or in the `except` block of the query. `after` is
        the line of the query, and `line` the line of the write.
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
            # A branch such as `if row: session.add(row)` passes a row to an ORM, which writes the row later.
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
        """Return whether code on `line` calls, by name, the function that `callee` shows as running."""
        name = getattr(scope_of(callee.file, callee.line), "name", None)
        return any(
            isinstance(node, ast.Call)
            and contains(node, line)
            and path_of(node.func).rpartition(".")[2] == name
            for node in nodes(self._scope)
        )

    def reads_property(self, line: int, callee: StackEntry, kind: int) -> bool:
        """Return whether code on `line` reads a property whose getter is the function of `callee`.

        For example, the code reads the property "stock", whose getter runs the query. If so, this method also
        sets the kind of this property, so that the search treats the property as a result of the query.
        `kind` is the kind of the value that the getter returns, such as ROW for a row.
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
        """Return the kind of each variable that the function of `callee` gets from its call on `line`.

        For example, {"row": ROW} if the call passes a row of the query as the argument `row`.
        """
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

        For example, `execute("UPDATE ...", n - 1)` has the value as an argument. Or the code sets `row.n`,
        and then calls `row.save()`. `after` is the query's line: earlier assignments do not count.
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
        """Return whether a statement saves a row object, but writes no value of the query's result.

        For example: `player.name = "anna"`, and then `player.save(only=[Player.name])`. Only the name is
        written, and "anna" is not from the query. `after` is the query's line: earlier assignments do not
        count.
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
        # In `cursor.execute(sql, values)`, only the arguments count. The cursor itself may have the rows of
        # the query, but does not pass them to the write.
        if isinstance(part, ast.Call) and _runs_sql(part):
            return any(map(self._uses_result, arguments_of(part)))
        if isinstance(part, ast.Call) and self._kind and contains(part, self._line):
            return True  # The call runs the query, as the argument `find(name)` of `add(find(name))` does.
        if isinstance(part, ast.Subscript | ast.Attribute) and self._names_others(part):
            return False
        if isinstance(part, ast.expr) and path_of(part):
            return self._kind_of(part) > 0
        return any(map(self._uses_result, ast.iter_child_nodes(part)))

    def _changes_object(self, node: ast.AST) -> bool:
        """Return whether a statement such as `row.n -= 1` or `update(row)` may change a row object."""
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
    """Return whether an expression keeps only constant text, as `f"hello {name}"[:5]` does.

    The slice cuts off the value of `name`. So it does not depend on the query, even if `name` does.
    """
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.JoinedStr)):
        return False
    first, cut = next(iter(node.value.values), None), node.slice
    if not (isinstance(first, ast.Constant) and isinstance(first.value, str) and isinstance(cut, ast.Slice)):
        return False
    end = cut.upper.value if isinstance(cut.upper, ast.Constant) else None
    return cut.lower is None and isinstance(end, int) and 0 <= end <= len(first.value)


def _is_pythons_own(function: ast.expr) -> bool:
    """Return whether a function, such as `print`, is part of Python. Such functions change no row objects."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant):
        return True
    root, _, method = path_of(function).partition(".")
    return root in (sys.stdlib_module_names if method else dir(builtins))


def _spans(parts: Sequence[ast.AST], line: int) -> bool:
    return any(contains(part, line) for part in parts)
