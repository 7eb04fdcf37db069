"""Compiles scripts: each expression to a call of the variables, each command to a step.

What is known beforehand is reckoned once. A step costs as little as can be, since it counts as latency.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.sql.script.draw import Draws
from sqlstress.experiments.sql.script.functions import FUNCTIONS, LAZY, RANDOM, Function, random_calls
from sqlstress.experiments.sql.script.numbers import NoValue, double, holds, read, truth, whole
from sqlstress.experiments.sql.script.tree import (
    Command,
    Constant,
    Expression,
    If,
    Script,
    Set,
    Sleep,
    Sql,
    Value,
    Variable,
)
from sqlstress.own.statements import Place

Variables = dict[str, Value]
Reckoned = Callable[[Variables], Value]
Step = Callable[[Variables], None]

MISSING = "the variable :{} has no value"


class Failed(EnvironmentFailure):
    """A script can't go on: says where, and why."""


class Database(Protocol):
    """What runs SQL."""

    def runs(self, sql: str) -> Callable[[Variables], Any]:
        """Return what runs a statement that returns no rows."""

    def reads(self, sql: str) -> Callable[[Variables], Any]:
        """Return what runs a statement and reads all its rows."""

    def names(self, sql: str) -> Callable[[Variables], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        """Return what runs a statement: the names of its columns, and its rows."""


class Around(Protocol):
    """What is done beside each statement."""

    def statement(self, sql: Sql, run: Step) -> Step:
        """Return what runs a statement, or what runs it and more."""


class Plain:
    """Nothing is done beside."""

    def statement(self, sql: Sql, run: Step) -> Step:
        return run


class Compiler:
    """Compiles for one process: its stream of random numbers, its database."""

    def __init__(
        self,
        source: Random,
        database: Database,
        fixed: Mapping[str, Value],
        around: Around | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        """`fixed` are the variables that no script sets; `around` is what is done beside each statement."""
        self._draws = Draws(source)
        self._random = random_calls(self._draws)
        self._database, self._fixed, self._around = database, fixed, around or Plain()
        self._sleep = sleep or time.sleep

    def steps(self, commands: Sequence[Command]) -> list[Step]:
        """Return the steps of commands, in their order."""
        return [self._step(command) for command in commands]

    def expression(self, expression: Expression) -> Reckoned:
        """Return what reckons an expression. It raises NoValue."""
        found = self._reckoned(expression)
        if isinstance(found, Constant):
            value = found.value
            return lambda _: value
        return found

    def _step(self, command: Command) -> Step:
        match command:
            case Set():
                return self._set(command)
            case Sleep():
                return self._slept(command)
            case Sql():
                return self._around.statement(command, _told(command.place, self._sql(command)))
            case If():
                return self._if(command)

    def _set(self, command: Set) -> Step:
        name, value = command.name, self.expression(command.expression)

        def step(variables: Variables) -> None:
            variables[name] = value(variables)

        return _placed(command.place, step)

    def _slept(self, command: Sleep) -> Step:
        value, unit_s, sleep = self.expression(command.expression), command.unit_s, self._sleep

        def step(variables: Variables) -> None:
            seconds = double(_number(value(variables))) * unit_s
            if not 0 <= seconds <= 3600:
                raise NoValue("a sleep lasts from 0 to 3,600 seconds")
            sleep(seconds)

        return _placed(command.place, step)

    def _if(self, command: If) -> Step:
        branches = [
            (_placed(one.place, _condition(self.expression(one.condition))), self.steps(one.body))
            for one in command.branches
        ]
        otherwise = self.steps(command.otherwise)

        def step(variables: Variables) -> None:
            taken = next((body for holds, body in branches if holds(variables)), otherwise)
            for each in taken:
                each(variables)

        return step

    def _sql(self, command: Sql) -> Step:
        statement = command.statement
        if command.prefix is not None:
            return _gset(self._database.names(statement.text), command.prefix)
        return (self._database.reads if statement.returns else self._database.runs)(statement.text)

    def _reckoned(self, expression: Expression) -> Constant | Reckoned:
        if isinstance(expression, Constant):
            return expression
        if isinstance(expression, Variable):
            return self._variable(expression)
        found = [self._reckoned(argument) for argument in expression.arguments]
        if expression.name in LAZY:
            return _LAZY[expression.name]([_call_of(one) for one in found])
        values = [one.value for one in found if isinstance(one, Constant)]
        known = len(values) == len(found)
        if expression.name in RANDOM:
            return self._random_call(expression.name, values if known else None, found)
        call = _null_is_null(expression.name)
        if known and expression.name != "debug":
            try:
                return Constant(call(*values))
            except NoValue:
                pass  # it is told where it is met, if it is
        return _called(call, [_call_of(one) for one in found])

    def _variable(self, variable: Variable) -> Constant | Reckoned:
        name = variable.name
        if name in self._fixed:
            value = self._fixed[name]
            if not isinstance(value, str):
                return Constant(value)

        def look(variables: Variables) -> Value:
            try:
                value = variables[name]
            except KeyError:
                raise NoValue(MISSING.format(name)) from None
            return value if value.__class__ is int else _number(value)

        return look

    def _random_call(
        self, name: str, known: Sequence[Value] | None, found: Sequence[Constant | Reckoned]
    ) -> Reckoned:
        if name == "random" and known and None not in known:
            try:
                draw = self._draws.between(*map(whole, known))
            except NoValue:
                pass  # it is told where it is met
            else:
                return lambda _: draw()
        return _called(_but_null(self._random[name]), [_call_of(one) for one in found])


def sets(commands: Collection[Command]) -> Iterator[str]:
    """Yield the variables that commands set by \\set."""
    for command in commands:
        if isinstance(command, Set):
            yield command.name
        elif isinstance(command, If):
            for branch in command.branches:
                yield from sets(branch.body)
            yield from sets(command.otherwise)


def leading(script: Script) -> int:
    """Return how many commands at the beginning only set variables: they need no database."""
    return next(
        (place for place, command in enumerate(script.commands) if not isinstance(command, Set)),
        len(script.commands),
    )


def _number(value: Value) -> Value:
    """Return a variable as expressions have it: a text means what it says."""
    if isinstance(value, str):
        return read(value)
    if isinstance(value, bytes):
        raise NoValue("a blob is no number")
    return value


def _placed(place: Place, step: Callable[[Variables], Any]) -> Callable[[Variables], Any]:
    """Return a step that says of what has no value where it stands."""

    def placed(variables: Variables) -> Any:
        try:
            return step(variables)
        except NoValue as error:
            raise Failed(f"{place}: {error}") from None

    return placed


def _told(place: Place, run: Step) -> Step:
    """Return a statement that leaves its place with the error that it meets."""

    def told(variables: Variables) -> None:
        try:
            run(variables)
        except NoValue as error:
            raise Failed(f"{place}: {error}") from None
        except Exception as error:
            error.place = place  # type: ignore[attr-defined]
            raise

    return told


def _condition(value: Reckoned) -> Callable[[Variables], bool]:
    return lambda variables: holds(value(variables))


def _gset(
    run: Callable[[Variables], tuple[Sequence[str], Sequence[Sequence[Any]]]], prefix: str
) -> Callable[[Variables], None]:
    def step(variables: Variables) -> None:
        names, rows = run(variables)
        if len(rows) != 1:
            raise NoValue(f"\\gset needs one row, and the query returned {len(rows) or 'none'}")
        variables.update(zip((f"{prefix}{name}" for name in names), rows[0], strict=True))

    return step


def _call_of(found: Constant | Reckoned) -> Reckoned:
    if isinstance(found, Constant):
        value = found.value
        return lambda _: value
    return found


def _null_is_null(name: str) -> Function:
    known = FUNCTIONS[name]
    return known.call if known.takes_null else _but_null(known.call)


def _but_null(call: Function) -> Function:
    def checked(*values: Value) -> Value:
        return None if None in values else call(*values)

    return checked


def _called(call: Function, arguments: Sequence[Reckoned]) -> Reckoned:
    if len(arguments) == 1:
        (only,) = arguments
        return lambda variables: call(only(variables))
    if len(arguments) == 2:
        first, second = arguments
        return lambda variables: call(first(variables), second(variables))
    return lambda variables: call(*(argument(variables) for argument in arguments))


def _and(arguments: Sequence[Reckoned]) -> Reckoned:
    return _three_valued(*arguments, ends=False)


def _or(arguments: Sequence[Reckoned]) -> Reckoned:
    return _three_valued(*arguments, ends=True)


def _three_valued(left: Reckoned, right: Reckoned, *, ends: bool) -> Reckoned:
    """Return AND, which `ends` at False, or OR, which ends at True; as in pgbench, NULL comes first."""

    def both(variables: Variables) -> Value:
        first = left(variables)
        if first is None or truth(first) is ends:
            return first
        second = right(variables)
        return None if second is None else truth(second)

    return both


def _case(arguments: Sequence[Reckoned]) -> Reckoned:
    *pairs, otherwise = arguments
    whens = list(zip(pairs[::2], pairs[1::2], strict=True))

    def choose(variables: Variables) -> Value:
        for when, then in whens:
            if holds(when(variables)):
                return then(variables)
        return otherwise(variables)

    return choose


_LAZY: dict[str, Callable[[Sequence[Reckoned]], Reckoned]] = {"and": _and, "or": _or, "case": _case}
