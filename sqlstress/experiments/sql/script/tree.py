"""What a script is when it has been read."""

from __future__ import annotations

from typing import NamedTuple

from sqlstress.user_work.statements import Place, Statement

Value = int | float | bool | str | bytes | None
"""What a variable holds. Text is read as a number where an expression asks for one."""


class Constant(NamedTuple):
    value: Value


class Variable(NamedTuple):
    name: str
    place: Place


class Call(NamedTuple):
    """A function or an operator, by its name in `functions.FUNCTIONS` or among the lazy ones."""

    name: str
    arguments: tuple[Expression, ...]
    place: Place


Expression = Constant | Variable | Call


class Set(NamedTuple):
    name: str
    expression: Expression
    place: Place


class Sleep(NamedTuple):
    expression: Expression
    unit_s: float
    place: Place


class Sql(NamedTuple):
    statement: Statement
    place: Place
    prefix: str | None = None
    """What the names of the columns have before them that become variables; None: none do."""


class Branch(NamedTuple):
    condition: Expression
    body: tuple[Command, ...]
    place: Place


class If(NamedTuple):
    """The first branch whose condition holds is taken, or the other one."""

    branches: tuple[Branch, ...]
    otherwise: tuple[Command, ...]


Command = Set | Sleep | Sql | If


class Script(NamedTuple):
    name: str
    commands: tuple[Command, ...]
