"""Search in the user's source code for a way from a query's result to a later write.

There is a way if a value of the query reaches the values of the write, or if a branch, a loop or an exception
decides by the query's result whether the write runs. The search finds too many ways rather than too few: it
follows all variables, and all functions of the user that lead to either statement.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from sqlstress.user_work.guards import LEAVING, Flow, StackEntry, contains, meeting, nodes, path_of, scope_of

_RUNS_SQL = {"execute", "executemany"}
_SAVES_LATER = {"add", "add_all", "append", "create", "insert", "merge", "put", "save"}
"""Methods that hand a row to an ORM, which may write it in a later call."""
_ROW = 1


def may_depend(
    query: Sequence[StackEntry],
    write: Sequence[StackEntry],
    by_rows: bool,
    sets: Collection[str] = (),
    others: Collection[str] = (),
) -> bool | None:
    """Return whether a write may depend on a query's result; None if the source does not show it.

    `query` and `write` are the active calls of the user's functions at either statement, outermost first.
    `by_rows` is whether a test for a missing row counts, as it does before an INSERT. `sets` are the
    columns that an UPDATE sets, and `others` those that the query reads besides: the code may check and use
    them, such as the key of the row.
    """
    names = {*sets}, {*others}
    depth = meeting(query, write)
    if depth is None or query[depth].instruction == write[depth].instruction:
        return None  # A single call of a library runs both statements.
    if any(scope_of(call.file, call.line) is None for call in (*query[depth:], *write[depth:])):
        return None
    kind, escapes, callee = _ROW, False, None
    for call in reversed(query[depth:]):
        flow = _WideFlow(call, kind, names, by_rows, escapes=escapes)
        if callee and not flow.calls(call.line, callee) and not flow.reads_property(call.line, callee, kind):
            return None  # An operator or a library calls the function.
        if call is query[depth]:
            break
        if flow.leaves_by_error():
            return True
        kind, escapes, callee = flow.return_kind() or _ROW, flow.escapes(), call
    before = query[depth].line
    for call, then in zip(write[depth:], (*write[depth + 1 :], None), strict=True):
        if flow.has_guard(before, call.line) or flow.decides_otherwise(before, call.line):
            return True
        if not then:
            return flow.reaches(before, call.line)
        if not flow.calls(call.line, then):
            return None  # A library calls the function, with unknown arguments.
        flow, before = _WideFlow(then, 0, names, by_rows, flow.arguments(call.line, then)), 0
    return None


class _WideFlow(Flow):
    """Flow of a query's result that also follows exceptions, loops and changes of objects."""

    def __init__(
        self,
        call: StackEntry,
        kind: int,
        names: tuple[set[str], set[str]],
        by_rows: bool,
        argument_kinds: dict[str, int] | None = None,
        escapes: bool = False,
    ) -> None:
        """Analyse a function as `Flow` does.

        `escapes` is whether the function in the call's line stores the query's result in its arguments.
        """
        super().__init__(call, kind, names, by_rows, argument_kinds)
        if escapes:
            for name in self._names_in_calls(call.line):
                self._kinds_by_name.setdefault(name, _ROW)
            self._follow()

    def _assign(self, node: ast.AST) -> None:
        super()._assign(node)
        self._assign_in_branch(node)

    def _names_in_calls(self, line: int) -> Iterator[str]:
        for node in nodes(self._scope):
            if isinstance(node, ast.Call) and contains(node, line):
                parts = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
                yield from (path_of(part) for part in parts if path_of(part))

    def _assign_in_branch(self, node: ast.AST) -> None:
        """Follow the result into variables that are set in a branch that depends on the result."""
        test = node.subject if isinstance(node, ast.Match) else getattr(node, "test", None)
        is_tried = isinstance(node, ast.Try) and self._kind and _spans(node.body, self._line)
        is_branch = isinstance(node, ast.If | ast.While | ast.Match) and test and self._kind_of(test)
        if not is_tried and not is_branch:
            return
        for part in nodes(node):
            targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
            for target in targets:
                if target is not None and (name := path_of(target)):
                    self._kinds_by_name.setdefault(name, _ROW)

    def escapes(self) -> bool:
        """Return whether the function stores the result outside of its own variables."""
        scope = self._scope
        names = [argument.arg for argument in ast.walk(scope) if isinstance(argument, ast.arg)]
        return any(name.partition(".")[0] in names or "." in name for name in self._kinds_by_name) or any(
            isinstance(node, ast.Global | ast.Nonlocal) for node in nodes(scope)
        )

    def decides_otherwise(self, after: int, line: int) -> bool:
        """Return whether a loop, an exception or a later save decides by the result if `line` runs."""
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
                if saves and self._check_kind(node.test):
                    return True
        return False

    def calls(self, line: int, then: StackEntry) -> bool:
        """Return whether an expression in a line calls the function of `then` by its name."""
        name = getattr(scope_of(then.file, then.line), "name", None)
        return any(
            isinstance(node, ast.Call)
            and contains(node, line)
            and path_of(node.func).rpartition(".")[2] == name
            for node in nodes(self._scope)
        )

    def reads_property(self, line: int, callee: StackEntry, kind: int) -> bool:
        """Return whether a line reads a property whose function is `callee`; follow its value if so."""
        name = getattr(scope_of(callee.file, callee.line), "name", None)
        paths = {
            path_of(node)
            for node in nodes(self._scope)
            if isinstance(node, ast.Attribute) and contains(node, line) and node.attr == name
        }
        for path in filter(None, paths):
            self._kinds_by_name[path] = kind
        self._follow()
        return bool(paths)

    def arguments(self, line: int, then: StackEntry) -> dict[str, int]:
        """Return the kinds of the variables that the function of `then` receives from a line."""
        scope = scope_of(then.file, then.line)
        kinds = self.parameters(line, then)
        if scope is not None and scope in ast.walk(self._scope):
            kinds = {**self._kinds_by_name, **kinds}
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) and self._uses_result_at(line):
            collected = (scope.args.vararg, scope.args.kwarg, *scope.args.kwonlyargs)
            kinds.update({argument.arg: _ROW for argument in collected if argument})
        return kinds

    def _uses_result_at(self, line: int) -> bool:
        """Return whether an argument of a call in a line depends on the result."""
        calls = (node for node in nodes(self._scope) if isinstance(node, ast.Call) and contains(node, line))
        return any(
            self._kind_of(argument)
            for call in calls
            for argument in (*call.args, *(word.value for word in call.keywords))
        )

    def _kind_of(self, node: ast.expr) -> int:
        if _is_cut_to_its_beginning(node):
            return 0
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.comprehension)]
        conditions = [condition for part in parts for condition in (part.iter, *part.ifs)]
        return super()._kind_of(node) or max(map(self._kind_of, conditions), default=0)

    def reaches(self, after: int, line: int) -> bool:
        """Return whether the result, without other columns, reaches the write that a line runs."""
        statements = [
            node for node in nodes(self._scope) if isinstance(node, ast.stmt) and contains(node, line)
        ]
        innermost = max(statements, key=lambda node: (node.lineno, -(node.end_lineno or 0)), default=None)
        if innermost is None:
            return True
        parts: list[ast.AST] = [innermost]
        until = line
        if isinstance(innermost, ast.With | ast.AsyncWith):  # The end of the block runs the write.
            parts = [*innermost.items]
            until = innermost.end_lineno or line
        elif isinstance(innermost, ast.If | ast.While):
            parts = [innermost.test]
        elif isinstance(innermost, ast.For | ast.AsyncFor):
            parts = [innermost.iter]
        runs_sql = any(_runs_sql(node) for part in parts for node in ast.walk(part))
        if any(map(self._uses_result, parts)):
            return True
        return not runs_sql and any(
            self._changes_object(node)
            for node in nodes(self._scope)
            if after <= getattr(node, "lineno", 0) <= until
        )

    def _uses_result(self, part: ast.AST) -> bool:
        """Return whether a statement uses the result, other than as the object that executes SQL."""
        if isinstance(part, ast.Call) and _runs_sql(part):
            return any(map(self._uses_result, (*part.args, *(word.value for word in part.keywords))))
        if isinstance(part, ast.Subscript | ast.Attribute) and self._names_others(part):
            return False
        if isinstance(part, ast.expr) and path_of(part):
            return self._kind_of(part) > 0
        return any(map(self._uses_result, ast.iter_child_nodes(part)))

    def _changes_object(self, node: ast.AST) -> bool:
        """Return whether a statement stores the result in an object, or may change an object of it."""
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
        if _only_shows(call.func):
            return False
        changed = [argument for argument in call.args if path_of(argument)]
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Attribute):
            changed.append(call.func.value)
        return any(map(self._kind_of, changed))


def _runs_sql(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RUNS_SQL


def _is_cut_to_its_beginning(node: ast.expr) -> bool:
    """Return whether a slice leaves only the constant beginning of an f-string: `f"hello {name}"[:5]`."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.JoinedStr)):
        return False
    first, cut = next(iter(node.value.values), None), node.slice
    if not (isinstance(first, ast.Constant) and isinstance(first.value, str) and isinstance(cut, ast.Slice)):
        return False
    end = cut.upper.value if isinstance(cut.upper, ast.Constant) else None
    return cut.lower is None and isinstance(end, int) and 0 <= end <= len(first.value)


def _only_shows(function: ast.expr) -> bool:
    """Return whether a function is one of Python's own, which does not change an object of an ORM."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant):
        return True
    root, _, method = path_of(function).partition(".")
    return root in (sys.stdlib_module_names if method else dir(builtins))


def _spans(parts: Sequence[ast.AST], line: int) -> bool:
    return any(contains(part, line) for part in parts)
