"""Compiles scripts: each command to a step, which costs as little as can be, since it counts as latency."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.sql.script.expressions import Reckoned, Reckoner, Variables, number_of
from sqlstress.experiments.sql.script.functions import NoValue, double, holds
from sqlstress.experiments.sql.script.tree import Command, If, Script, Set, Sleep, Sql, Value
from sqlstress.user_work.statements import Place

Step = Callable[[Variables], None]


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
        self._reckoner = Reckoner(source, fixed)
        self._database, self._around = database, around or Plain()
        self._sleep = sleep or time.sleep

    def steps(self, commands: Sequence[Command]) -> list[Step]:
        """Return the steps of commands, in their order."""
        return [self._step(command) for command in commands]

    def _step(self, command: Command) -> Step:
        match command:
            case Set():
                return self._set(command)
            case Sleep():
                return self._slept(command)
            case Sql():
                return self._around.statement(command, _located(command.place, self._sql(command)))
            case If():
                return self._if(command)

    def _set(self, command: Set) -> Step:
        name, value = command.name, self._reckoner.expression(command.expression)

        def step(variables: Variables) -> None:
            variables[name] = value(variables)

        return _placed(command.place, step)

    def _slept(self, command: Sleep) -> Step:
        value, unit_s, sleep = self._reckoner.expression(command.expression), command.unit_s, self._sleep

        def step(variables: Variables) -> None:
            seconds = double(number_of(value(variables))) * unit_s
            if not 0 <= seconds <= 3600:
                raise NoValue("a sleep lasts from 0 to 3,600 seconds")
            sleep(seconds)

        return _placed(command.place, step)

    def _if(self, command: If) -> Step:
        branches = [
            (_placed(one.place, _condition(self._reckoner.expression(one.condition))), self.steps(one.body))
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


def _placed(place: Place, step: Callable[[Variables], Any]) -> Callable[[Variables], Any]:
    """Return a step that says of what has no value where it stands."""

    def placed(variables: Variables) -> Any:
        try:
            return step(variables)
        except NoValue as error:
            raise Failed(f"{place}: {error}") from None

    return placed


def _located(place: Place, run: Step) -> Step:
    """Return a statement that leaves its place with the error that it meets."""

    def located(variables: Variables) -> None:
        try:
            run(variables)
        except NoValue as error:
            raise Failed(f"{place}: {error}") from None
        except Exception as error:
            error.place = place  # type: ignore[attr-defined]
            raise

    return located


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
