"""Compiles expressions: each to a call of the variables. What is known beforehand is reckoned once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from sqlstress.experiments.sql.script.draw import Draws
from sqlstress.experiments.sql.script.functions import FUNCTIONS, LAZY, RANDOM, Function, random_calls
from sqlstress.experiments.sql.script.numbers import NoValue, holds, read, truth, whole
from sqlstress.experiments.sql.script.tree import Call, Constant, Expression, Value, Variable

Variables = dict[str, Value]
Reckoned = Callable[[Variables], Value]

MISSING = "the variable :{} has no value"


class Reckoner:
    """Compiles expressions for one process, over its stream of random numbers."""

    def __init__(self, source: Random, fixed: Mapping[str, Value]) -> None:
        """`fixed` are the variables that no script sets."""
        self._draws, self._fixed = Draws(source), fixed
        self._random = random_calls(self._draws)

    def expression(self, expression: Expression) -> Reckoned:
        """Return what reckons an expression. It raises NoValue."""
        return _call_of(self._reckoned(expression))

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
            return value if value.__class__ is int else number_of(value)

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


def draws(expression: Expression) -> bool:
    """Return whether an expression draws a random number."""
    if not isinstance(expression, Call):
        return False
    return expression.name in RANDOM or any(map(draws, expression.arguments))


def number_of(value: Value) -> Value:
    """Return a variable as expressions have it: a text means what it says."""
    if isinstance(value, str):
        return read(value)
    if isinstance(value, bytes):
        raise NoValue("a blob is no number")
    return value


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
