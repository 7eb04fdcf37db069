"""Scripts in the dialect of pgbench: SQL statements, and lines of backslash commands between them.

A script is parsed, checked, and compiled to steps. A step is a function that gets the variables and runs one
command. The overhead of a step must be small, because it counts as latency. Variables become parameters of
statements, never SQL text.

Source: https://www.postgresql.org/docs/current/pgbench.html
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiments.sql.expressions import TRUE, Evaluator, Expression, NoValue, Variables
from sqlstress.experiments.sql.expressions import read as read_expression
from sqlstress.options.sql_text import SQLITE, Dialect
from sqlstress.races.traced_statements import ScriptUse
from sqlstress.user_work.statements import Position, Statement, position_at, split_statements, tokens

if TYPE_CHECKING:
    from sqlstress.targets.views import Session

S = TypeVar("S")
T = TypeVar("T")
Step = Callable[[Variables], Any]

BASE = ("client_id", "default_seed", "random_seed", "scale")
"""Names of the variables that every script has."""
_NAME = re.compile(r"\w+", re.ASCII)
_LINE = re.compile(r"(?:[^\n\\]|\\\r?\n|\\)*")
_META = re.compile(r"\\([A-Za-z]\w*)?[ \t]*")
_LENGTH = re.compile(r":\w+|[\d.]+")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_COMMANDS = ("set", "if", "elif", "else", "endif", "sleep", "gset")
_DEEPEST = 50


class Set(NamedTuple):
    name: str
    expression: Expression
    place: Position


class Sleep(NamedTuple):
    expression: Expression
    unit_s: float
    place: Position


class Sql(NamedTuple):
    statement: Statement
    prefix: str | None = None
    r"""Prefix of the variables, one per column, that \gset after this query sets; None without \gset."""


class Branch(NamedTuple):
    expression: Expression
    body: tuple[Command, ...]
    place: Position


class If(NamedTuple):
    r"""An \if with its branches. The last branch, the \else, is always present, but may be empty."""

    branches: tuple[Branch, ...]


Command = Set | Sleep | Sql | If


class Script(NamedTuple):
    name: str
    commands: tuple[Command, ...]


def leading(script: Script) -> int:
    r"""Return the number of leading \set commands: those before any other command."""
    database_commands = (
        position for position, command in enumerate(script.commands) if not isinstance(command, Set)
    )
    return next(database_commands, len(script.commands))


def walked(commands: Collection[Command]) -> Iterator[Set | Sleep | Sql | Branch]:
    """Yield all commands in the order of the text, including those in branches of an If."""
    for command in commands:
        if isinstance(command, If):
            for branch in command.branches:
                yield branch
                yield from walked(branch.body)
        else:
            yield command


def statements(commands: Collection[Command]) -> Iterator[Sql]:
    """Yield all SQL statements in the order of the text, including those in branches of an If."""
    return (command for command in walked(commands) if isinstance(command, Sql))


def sets(commands: Collection[Command]) -> set[str]:
    r"""Return the names of variables set by \set commands."""
    return {command.name for command in walked(commands) if isinstance(command, Set)}


def script_uses(commands: Collection[Command]) -> Iterator[tuple[Position, ScriptUse]]:
    r"""Yield each statement's position, with the variables that it sets (\gset) and those that an \if tests.

    If an \if tests a variable that a query sets, the statements in the \if depend on the query. The search
    for races needs these dependencies. The variables that a `SELECT *` with \gset sets are not known.
    """
    for sql, (conditions, otherwise) in _with_conditions(commands, (frozenset(), frozenset())):
        results = _results(sql, commands) if sql.prefix is not None else frozenset[str]()
        yield sql.statement.place, ScriptUse(results, conditions, otherwise)


def _with_conditions(
    commands: Collection[Command], tested: tuple[frozenset[str], frozenset[str]]
) -> Iterator[tuple[Sql, tuple[frozenset[str], frozenset[str]]]]:
    r"""Yield each statement with the variables in \if commands that decide whether it runs.

    The variables are a pair of sets: those in conditions that must be true, and those in conditions that must
    be false. `tested` is this pair for the \if commands around `commands`.
    """
    for command in commands:
        if isinstance(command, Sql):
            yield command, tested
        elif isinstance(command, If):
            conditions, otherwise = tested
            for branch in command.branches:
                variables = frozenset(branch.expression.variables)
                yield from _with_conditions(branch.body, (conditions | variables, otherwise))
                otherwise |= variables


def _results(query: Sql, commands: Collection[Command]) -> frozenset[str]:
    r"""Return the variables that a query's \gset sets, and the variables that a \set computes from them."""
    prefix, columns = query.prefix or "", query.statement.words
    used = {
        name
        for command in walked(commands)
        if not isinstance(command, Sql)
        for name in command.expression.variables
    }
    results = {
        name for name in used if name.startswith(prefix) and name.removeprefix(prefix).lower() in columns
    }
    for command in walked(commands):
        if isinstance(command, Set) and results & set(command.expression.variables):
            results.add(command.name)
    return frozenset(results)


def states_behind(commands: Collection[Command], states: set[S], moved: Callable[[Sql, S], S]) -> set[S]:
    r"""Return the states in which a script can be after `commands`, if it is in one of `states` before.

    A state is, for example, whether a transaction is open. `moved` returns the state after a statement, given
    the state before. There can be several states because each branch of an \if may lead to another state.
    """
    for command in commands:
        if isinstance(command, If):
            states = set().union(*(states_behind(branch.body, states, moved) for branch in command.branches))
        elif isinstance(command, Sql):
            states = {moved(command, state) for state in states}
    return states


def read(file: str, text: str, variables: Collection[str] = (), dialect: Dialect = SQLITE) -> Script:
    """Return the parsed script. Raise UsageError if it is invalid, or uses a variable without a value.

    `variables` are the names of variables that have values at the start, in addition to BASE.
    """
    script = _Reader(file, text, dialect).script()
    if not any(statements(script.commands)):
        raise position_at(file, text, 0).error("the script has no SQL")
    defined = {*BASE, *variables}
    for command in walked(script.commands):
        if isinstance(command, Sql):
            needed = [(token.text[1:], command.statement.place) for token in command.statement.parameters]
        else:
            needed = [*command.expression.variables.items()]
        for name, place in needed:
            if name not in defined:
                raise place.error(
                    f"the variable :{name} has no value: \\set it first, or use -D {name}=VALUE"
                )
        if isinstance(command, Sql) and command.prefix is not None:
            # The variables that a \gset sets are unknown before the script runs. So the check ends here.
            break
        defined |= {command.name} if isinstance(command, Set) else set()
    return script


class _Meta(NamedTuple):
    """Line with a backslash command."""

    name: str
    place: Position
    start: int
    """Offset of the command's arguments in the text."""
    end: int


class _Reader:
    def __init__(self, file: str, text: str, dialect: Dialect) -> None:
        self._file, self._text, self._dialect = file, text, dialect
        self._parts = self._cut_text()

    def script(self) -> Script:
        commands, closing = self._body(0)
        if closing:
            raise closing.place.error(f"\\{closing.name} without \\if")
        return Script(self._file, commands)

    def _cut_text(self) -> Iterator[Sql | _Meta]:
        start = 0
        while True:
            script_tokens = tokens(self._file, self._text, start, dialect=self._dialect)
            backslash = next((token.start for token in script_tokens if token.text == "\\"), None)
            if backslash is None:
                yield from self._sql(start, len(self._text))
                return
            meta = self._meta(backslash)
            preceding = list(self._sql(start, backslash))
            start = meta.end
            if meta.name == "gset":
                yield from self._gset(preceding, meta)
                continue
            if preceding and self._text[preceding[-1].statement.end - 1] != ";":
                raise meta.place.error(f'expected ";" before \\{meta.name}: the statement does not end')
            yield from preceding
            yield meta

    def _sql(self, start: int, end: int) -> Iterator[Sql]:
        for statement in split_statements(self._file, self._text, start, end, self._dialect):
            for token in statement.parameters:
                if token.text[0] != ":":
                    problem = f"{token.text} has no value: a variable is written :name"
                    raise position_at(self._file, self._text, token.start).error(problem)
            yield Sql(statement)

    def _gset(self, preceding: list[Sql], meta: _Meta) -> Iterator[Sql]:
        prefix = self._text[meta.start : meta.end].strip()
        if prefix and not _NAME.fullmatch(prefix):
            raise self._expected(meta.start, "a prefix of letters and digits")
        if not preceding:
            raise meta.place.error("\\gset must follow a query, whose columns become variables")
        if not preceding[-1].statement.returns:
            raise meta.place.error("\\gset must follow a query, and this statement returns no row")
        yield from preceding[:-1]
        yield preceding[-1]._replace(prefix=prefix)

    def _meta(self, at: int) -> _Meta:
        place = position_at(self._file, self._text, at)
        match = _META.match(self._text, at)
        line = _LINE.match(self._text, match.end() if match else at + 1)
        assert match and line
        name = (match[1] or "").lower()
        if name not in _COMMANDS:
            *leading_names, last_name = (f"\\{command}" for command in _COMMANDS)
            raise place.error(f"\\{name} is not supported: use {', '.join(leading_names)} or {last_name}")
        return _Meta(name, place, line.start(), line.end())

    def _body(self, depth: int) -> tuple[tuple[Command, ...], _Meta | None]:
        r"""Return the commands of a branch, and the \elif, \else or \endif after it (None at the end)."""
        body: list[Command] = []
        for part in self._parts:
            if isinstance(part, Sql):
                body.append(part)
            elif part.name in ("elif", "else", "endif"):
                return tuple(body), part
            elif part.name == "if":
                body.append(self._if(part, depth + 1))
            else:
                body.append(self._set(part) if part.name == "set" else self._sleep_command(part))
        return tuple(body), None

    def _if(self, meta: _Meta, depth: int) -> If:
        if depth > _DEEPEST:
            raise meta.place.error(f"\\if more than {_DEEPEST} levels deep")
        branches: list[Branch] = []
        opening, has_else = meta, False
        while opening.name != "endif":
            has_else = opening.name == "else"
            condition: Expression = (
                self._else_condition(opening) if has_else else self._expression(opening.start, opening.end)
            )
            body, closing = self._body(depth)
            if not closing:
                raise meta.place.error("\\if without \\endif")
            if has_else and closing.name != "endif":
                raise closing.place.error(f"\\{closing.name} after \\else")
            branches.append(Branch(condition, body, opening.place))
            opening = closing
        otherwise = self._else_condition(opening)
        if not has_else:
            branches.append(Branch(otherwise, (), opening.place))
        return If(tuple(branches))

    def _else_condition(self, meta: _Meta) -> Expression:
        r"""Return the condition of an \else, or of the empty \else that an \endif implies: TRUE.

        Raise UsageError if the line has further text.
        """
        if self._text[meta.start : meta.end].strip():
            raise position_at(self._file, self._text, meta.start).error(
                f"unexpected text after \\{meta.name}"
            )
        return TRUE

    def _set(self, meta: _Meta) -> Set:
        name = _NAME.match(self._text, meta.start, meta.end)
        if not name:
            raise self._expected(meta.start, "the name of a variable")
        return Set(name[0], self._expression(name.end(), meta.end), meta.place)

    def _sleep_command(self, meta: _Meta) -> Sleep:
        words = self._text[meta.start : meta.end].split()
        unit = words[1].lower() if len(words) > 1 else "s"
        if not words or len(words) > 2 or unit not in _UNITS or not _LENGTH.fullmatch(words[0]):
            raise meta.place.error("expected \\sleep NUMBER or :VARIABLE, then us, ms or s")
        return Sleep(self._expression(meta.start, meta.start + len(words[0])), _UNITS[unit], meta.place)

    def _expression(self, start: int, end: int) -> Expression:
        return read_expression(self._file, self._text, start, end)

    def _expected(self, at: int, expected: str) -> UsageError:
        return position_at(self._file, self._text, at).error(f"expected {expected}")


class ScriptFailed(EnvironmentFailure):
    """A script failed; the message has the position in the script and the reason."""


class Compiler:
    """Compiler of scripts to steps: functions that get the variables and run one command."""

    def __init__(
        self,
        evaluator: Evaluator,
        database: Session,
        around: Callable[[Sql, Step], Step] = lambda _, run: run,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        r"""`around` gets each statement and its step, and returns the step to use instead.

        For example, `around` can add a timer. `sleep` is called for each \sleep, with the time in seconds.
        """
        self._evaluator = evaluator
        self._database, self._around, self._sleep = database, around, sleep

    def steps(self, commands: Sequence[Command]) -> list[Step]:
        """Return one step per command: a function that gets the variables and runs the command."""
        return [self._step(command) for command in commands]

    def _step(self, command: Command) -> Step:
        match command:
            case Set():
                return _with_place(command.place, self._set(command))
            case Sleep():
                return _with_place(command.place, self._sleep_command(command))
            case Sql():
                return self._around(command, _with_place(command.statement.place, self._sql(command)))
            case If():
                return self._if(command)

    def _set(self, command: Set) -> Step:
        name, value = command.name, self._evaluator.compile(command.expression)

        def step(variables: Variables) -> None:
            variables[name] = value(variables)

        return step

    def _sleep_command(self, command: Sleep) -> Step:
        value, unit_s, sleep = self._evaluator.compile(command.expression), command.unit_s, self._sleep

        def step(variables: Variables) -> None:
            length = value(variables)
            seconds = -1.0 if length is None else length * unit_s
            if not 0 <= seconds <= 3600:
                raise NoValue("a sleep must be from 0 to 3,600 seconds")
            sleep(seconds)

        return step

    def _if(self, command: If) -> Step:
        branches = [
            (_with_place(branch.place, self._evaluator.compile(branch.expression)), self.steps(branch.body))
            for branch in command.branches
        ]

        def step(variables: Variables) -> None:
            for condition, body in branches:
                if condition(variables):
                    for run in body:
                        run(variables)
                    return

        return step

    def _sql(self, command: Sql) -> Step:
        statement, prefix = command.statement, command.prefix
        if prefix is None:
            return (self._database.reads if statement.returns else self._database.runs)(statement.text)
        run = self._database.names(statement.text)

        def step(variables: Variables) -> None:
            names, rows = run(variables)
            if len(rows) != 1:
                raise NoValue(f"\\gset needs one row, and the query returned {len(rows) or 'none'}")
            variables.update(zip((f"{prefix}{name}" for name in names), rows[0], strict=True))

        return step


def _with_place(place: Position, step: Callable[[Variables], T]) -> Callable[[Variables], T]:
    """Return a function that calls `step`, and adds `place`, its position in the script, to exceptions."""

    def placed(variables: Variables) -> T:
        try:
            return step(variables)
        except NoValue as error:
            raise ScriptFailed(f"{place}: {error}") from None
        except Exception as error:
            error.place = place  # type: ignore[attr-defined]
            raise

    return placed
