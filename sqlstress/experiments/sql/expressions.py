"""Expressions of scripts: read with pgbench's precedence, checked, and compiled to calls of the variables.

Source: https://www.postgresql.org/docs/current/pgbench.html, and PostgreSQL 15, src/bin/pgbench. Integers are
those of C with 64 bits: a result that does not fit is an error, and so is a division by zero, of doubles too;
what has no value, such as the root of a negative number, is an error where pgbench goes on with NaN. NULL
among the operands makes NULL. The random numbers have pgbench's distributions, over streams of ours; a hash
is pgbench's own.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, NamedTuple

from sqlstress.errors import UsageError
from sqlstress.user_work.statements import Place, place_of

Value = int | float | bool | str | bytes | None
"""What a variable holds. Text is read as a number where an expression asks for one."""
Variables = dict[str, Value]
Reckoned = Callable[[Variables], Value]


class Constant(NamedTuple):
    value: Value


class Variable(NamedTuple):
    name: str
    place: Place


class Call(NamedTuple):
    """A function or an operator, by its name in FUNCTIONS or among those that `Reckoner` knows itself."""

    name: str
    arguments: tuple[Expression, ...]


Expression = Constant | Variable | Call


def nodes(expression: Expression) -> Iterator[Expression]:
    """Yield an expression, and all that stand in it."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from nodes(argument)


def draws(expression: Expression) -> bool:
    """Return whether an expression draws a random number."""
    return any(isinstance(node, Call) and node.name in RANDOM for node in nodes(expression))


class NoValue(Exception):
    """An expression that has no value: says why."""


# What values are, and how they are taken for one another.


LEAST, MOST = -(1 << 63), (1 << 63) - 1
_WRAP = (1 << 64) - 1
_INTEGER = re.compile(r"\s*[-+]?\d{1,19}\s*")
_WORDS: dict[str, Value] = {
    **dict.fromkeys(("true", "yes", "on", "t", "y"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n"), False),
    "null": None,
}


def _integer(number: int) -> int:
    if LEAST <= number <= MOST:
        return number
    raise NoValue("the result does not fit into 64 bits")


def meant(text: str) -> Value:
    """Return what a text means in an expression, as pgbench reads variables. Raises NoValue."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return _integer(int(text)) if _INTEGER.fullmatch(text) else float(text)
    except ValueError as error:
        raise NoValue(f"{text[:40]!r} is not a number") from error


def number_of(value: Value) -> Value:
    """Return a variable as expressions have it: a text means what it says."""
    if isinstance(value, bytes):
        raise NoValue("a blob is not a number")
    return meant(value) if isinstance(value, str) else value


def whole(value: Value) -> int:
    """Return a value as an integer: a double is rounded to the nearest, of two as near to the even one."""
    if value.__class__ is int:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return _integer(round(value))
    raise NoValue(f"{value!r:.40} is not an integer")


def double(value: Value) -> float:
    """Return a number as a double."""
    if isinstance(value, float):
        return value
    if value.__class__ is int:
        return float(value)
    raise NoValue(f"{value!r:.40} is not a number")


def _truth(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    raise NoValue(f"{value!r:.40} is not a boolean")


def holds(value: Value) -> bool:
    """Return whether a condition of `\\if` holds: a number but 0 does, NULL does not."""
    if isinstance(value, str | bytes):
        raise NoValue("text is not a condition")
    return bool(value)


# Functions and operators.


class Function(NamedTuple):
    """What it does with values that are not NULL, and how many of them it takes."""

    call: Callable[..., Value]
    least: int
    most: int


_MANY = 100
_EXACT = 1 << 53
"""Up to this a double can tell every integer from the next one."""
_LEAST_GAUSSIAN = 2.0
_LEAST_ZIPFIAN, _MOST_ZIPFIAN = 1.001, 1000.0
_MURMUR, _MURMUR_TIMES_8, _MURMUR_SHIFT = 0xC6A4A7935BD1E995, 0x35253C9ADE8F4CA8, 47


def _mixed(integers: Callable[[int, int], Value], doubles: Callable[[float, float], Value]) -> Function:
    """Return what reckons with integers where both are, else with doubles."""

    def operate(left: Value, right: Value) -> Value:
        if left.__class__ is int and right.__class__ is int:
            return integers(left, right)
        if isinstance(left, float) or isinstance(right, float):
            return doubles(double(left), double(right))
        return integers(whole(left), whole(right))

    return Function(operate, 2, 2)


def divided(left: int, right: int) -> int:
    """Divide integers as C does: towards zero."""
    if right == 0:
        raise NoValue("division by zero")
    quotient = abs(left) // abs(right)
    return _integer(quotient if (left < 0) == (right < 0) else -quotient)


def remainder(left: Value, right: Value) -> int:
    """Return what a division as C's leaves: with the sign of the dividend."""
    dividend, divisor = whole(left), whole(right)
    if divisor == 0:
        raise NoValue("division by zero")
    rest = abs(dividend) % abs(divisor)
    return -rest if dividend < 0 else rest


def _quotient(left: float, right: float) -> float:
    if right == 0:
        raise NoValue("division by zero")
    return left / right


def _absolute(value: Value) -> Value:
    return abs(value) if isinstance(value, float) else _integer(abs(whole(value)))


def _extreme(choose: Callable[..., float]) -> Function:
    def call(*values: Value) -> Value:
        return choose(map(double if any(isinstance(value, float) for value in values) else whole, values))

    return Function(call, 1, _MANY)


def _real(call: Callable[..., float], count: int) -> Function:
    def checked(*values: Value) -> Value:
        try:
            return call(*map(double, values))
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            raise NoValue(f"it has no value for {', '.join(map(str, values))}") from error

    return Function(checked, count, count)


def _murmur2(value: Value, seed: Value) -> Value:
    """Return the MurmurHash2 of a 64-bit integer."""
    hashed, bits = (whole(seed) & _WRAP) ^ _MURMUR_TIMES_8, whole(value) * _MURMUR & _WRAP
    bits = (bits ^ bits >> _MURMUR_SHIFT) * _MURMUR & _WRAP
    hashed = (hashed ^ bits) * _MURMUR & _WRAP
    hashed = (hashed ^ hashed >> _MURMUR_SHIFT) * _MURMUR & _WRAP
    hashed ^= hashed >> _MURMUR_SHIFT
    return hashed - (1 << 64) if hashed > MOST else hashed


def _range(low: Value, high: Value) -> tuple[int, int]:
    """Return the first of the integers between two, both included, and how many there are."""
    first, last = whole(low), whole(high)
    if first > last:
        raise NoValue(f"there is no integer from {first} to {last}")
    if last - first >= 1 << 63:
        raise NoValue("the range is too large")
    return first, last - first + 1


def _random(stream: Random, low: Value, high: Value) -> Value:
    first, count = _range(low, high)
    return first + (int(count * stream.random()) if count < _EXACT else stream.randrange(count))


def _gaussian(stream: Random, low: Value, high: Value, parameter: Value) -> Value:
    (first, count), width = _range(low, high), double(parameter)
    if not width >= _LEAST_GAUSSIAN:
        raise NoValue(f"the parameter of random_gaussian must be at least {_LEAST_GAUSSIAN}, not {width}")
    while not -width <= (drawn := stream.gauss(0.0, 1.0)) < width:
        pass
    return first + int(count * (drawn + width) / (2 * width))


def _exponential(stream: Random, low: Value, high: Value, parameter: Value) -> Value:
    (first, count), decay = _range(low, high), double(parameter)
    if not decay > 0:
        raise NoValue(f"the parameter of random_exponential must be above 0, not {decay}")
    cut = math.exp(-decay)
    share = -math.log(cut + (1 - cut) * (1 - stream.random())) / decay
    return first + min(int(count * share), count - 1)


def _zipfian(stream: Random, low: Value, high: Value, parameter: Value) -> Value:
    """Draw by rejection. Source: L. Devroye, Non-Uniform Random Variate Generation, p. 550-551."""
    (first, count), skew = _range(low, high), double(parameter)
    if not _LEAST_ZIPFIAN <= skew <= _MOST_ZIPFIAN:
        raise NoValue(
            f"the parameter of random_zipfian must be from {_LEAST_ZIPFIAN} to {_MOST_ZIPFIAN:g}, not {skew}"
        )
    top = 2.0 ** (skew - 1)
    while count > 1:
        try:
            rank = math.floor(math.pow(1 - stream.random(), -1 / (skew - 1)))
        except OverflowError:
            continue  # far beyond any count
        if rank > count:
            continue
        ratio = (1 + 1 / rank) ** (skew - 1)
        if stream.random() * rank * (ratio - 1) / (top - 1) <= ratio / top:
            return first - 1 + rank
    return first


RANDOM: dict[str, Function] = {
    "random": Function(_random, 2, 2),
    "random_gaussian": Function(_gaussian, 3, 3),
    "random_exponential": Function(_exponential, 3, 3),
    "random_zipfian": Function(_zipfian, 3, 3),
}
"""What draws: it takes a stream of random numbers before its values."""
FUNCTIONS: dict[str, Function] = {
    **RANDOM,
    "+": _mixed(lambda a, b: _integer(a + b), operator.add),
    "-": _mixed(lambda a, b: _integer(a - b), operator.sub),
    "*": _mixed(lambda a, b: _integer(a * b), operator.mul),
    "/": _mixed(divided, _quotient),
    "%": Function(remainder, 2, 2),
    "<": _mixed(operator.lt, operator.lt),
    "<=": _mixed(operator.le, operator.le),
    ">": _mixed(operator.gt, operator.gt),
    ">=": _mixed(operator.ge, operator.ge),
    "=": _mixed(operator.eq, operator.eq),
    "<>": _mixed(operator.ne, operator.ne),
    "!=": _mixed(operator.ne, operator.ne),
    "not": Function(lambda value: not _truth(value), 1, 1),
    "abs": Function(_absolute, 1, 1),
    "least": _extreme(min),
    "greatest": _extreme(max),
    "double": Function(double, 1, 1),
    "int": Function(whole, 1, 1),
    "mod": Function(remainder, 2, 2),
    "pi": Function(lambda: math.pi, 0, 0),
    "sqrt": _real(math.sqrt, 1),
    "ln": _real(math.log, 1),
    "exp": _real(math.exp, 1),
    "pow": _real(math.pow, 2),
    "power": _real(math.pow, 2),
    "hash": Function(_murmur2, 1, 2),
}
_CALLABLE = sorted(name for name in FUNCTIONS if name.isidentifier() and name != "not")

# Reading.


_TOKEN = re.compile(
    r"""(?P<space>(?:\s|\\\r?\n)+)
    |(?P<double>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
    |(?P<integer>\d+)
    |(?P<variable>:\w+)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign><=|>=|<>|!=|<<|>>|.)
    |(?P<end>\Z)""",
    re.VERBOSE | re.DOTALL,
)
_BINARY = {
    "or": 1,
    "and": 2,
    "is": 4,
    **dict.fromkeys(("<", "<=", "=", "<>", "!=", ">", ">="), 5),
    **dict.fromkeys(("+", "-"), 7),
    **dict.fromkeys(("*", "/", "%"), 8),
}
_NOT, _COMPARED, _SIGNED = 3, 5, 9
_CONSTANTS: dict[str, Value] = {"null": None, "true": True, "false": False}
_RESERVED = {"and", "or", "is", "when", "then", "else", "end"}
_REFUSED = {
    *("<<", ">>", "&", "|", "#", "~"),
    *("isnull", "notnull", "debug", "permute", "hash_fnv1a", "hash_murmur2"),
}
"""What pgbench has beside, and scripts in the wild do without."""
_DEEPEST = 100


def read(file: str, text: str, start: int, end: int) -> Expression:
    """Return the expression that stands in a text from one place to another. Raises UsageError."""
    reader = _Reader(file, text, start, end)
    expression = reader.expression()
    if reader.next.lastgroup != "end":
        raise reader.expected("an operator, or the end of the line")
    return expression


class _Reader:
    """Goes through the tokens one by one."""

    def __init__(self, file: str, text: str, start: int, end: int) -> None:
        self._file, self._text = file, text
        self._tokens = [one for one in _TOKEN.finditer(text, start, end) if one.lastgroup != "space"]
        self._at = self._depth = 0
        for token in self._tokens:
            if token[0].lower() in _REFUSED:
                raise self._place(token).error(f"{token[0]} is not supported")

    @property
    def next(self) -> re.Match[str]:
        return self._tokens[self._at]

    @property
    def _word(self) -> str:
        return self.next[0].lower()

    def _place(self, token: re.Match[str]) -> Place:
        return place_of(self._file, self._text, token.start())

    def expected(self, what: str) -> UsageError:
        """Return an error that says what should stand where the next token stands."""
        there = f'"{self.next[0]}"' if self.next[0] else "the end of the line"
        return self._place(self.next).error(f"expected {what}, found {there}")

    def _taken(self) -> re.Match[str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes(self, word: str) -> bool:
        """Take the next token if it is this one; return whether it was."""
        return self._word == word and bool(self._taken())

    def _must(self, word: str) -> None:
        if not self._takes(word):
            raise self.expected(word.upper() if word.isalpha() else f'"{word}"')

    def expression(self, least: int = 1) -> Expression:
        """Read an expression whose operators bind at least so strongly."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._place(self.next).error(f"nested more than {_DEEPEST} levels deep")
        left, compared = self._operand(), False
        while (level := _BINARY.get(self._word, 0)) >= least:
            token = self._taken()
            if level == _COMPARED and compared:
                raise self._place(token).error("comparisons cannot be chained: join them with AND")
            compared = level == _COMPARED
            name = token[0].lower()
            left = self._test(left) if name == "is" else Call(name, (left, self.expression(level + 1)))
        self._depth -= 1
        return left

    def _test(self, left: Expression) -> Expression:
        negated, word = self._takes("not"), self._word
        if word not in _CONSTANTS:
            raise self.expected("NULL, TRUE or FALSE")
        self._taken()
        test = Call("is", (left, Constant(_CONSTANTS[word])))
        return Call("not", (test,)) if negated else test

    def _operand(self) -> Expression:
        kind, word = self.next.lastgroup, self._word
        if kind == "end" or word in _RESERVED or (kind == "sign" and word not in ("(", "-", "+")):
            raise self.expected("a value")
        token = self._taken()
        match word:
            case "(":
                inner = self.expression()
                self._must(")")
                return inner
            case "-" if self.next.lastgroup == "integer":
                return self._integer(self._taken(), "-")  # the least integer has no positive one
            case "-":
                return Call("-", (Constant(0), self.expression(_SIGNED)))
            case "+":
                return self.expression(_SIGNED)
            case "not":
                return Call("not", (self.expression(_NOT),))
            case "case":
                return self._case()
            case "null" | "true" | "false":
                return Constant(_CONSTANTS[word])
        if kind == "integer":
            return self._integer(token, "")
        if kind == "double":
            return Constant(float(word))
        return Variable(token[0][1:], self._place(token)) if kind == "variable" else self._call(token)

    def _integer(self, token: re.Match[str], sign: str) -> Constant:
        # Python reads no integers of thousands of digits.
        number = int(sign + token[0]) if len(token[0]) < 100 else MOST + 1
        if not LEAST <= number <= MOST:
            raise self._place(token).error("the integer does not fit into 64 bits")
        return Constant(number)

    def _case(self) -> Expression:
        parts: list[Expression] = []
        while self._takes("when"):
            parts.append(self.expression())
            self._must("then")
            parts.append(self.expression())
        if not parts:
            raise self.expected("WHEN")
        parts.append(self.expression() if self._takes("else") else Constant(None))
        self._must("end")
        return Call("case", tuple(parts))

    def _call(self, token: re.Match[str]) -> Expression:
        name, place = token[0].lower(), self._place(token)
        if self._word != "(":
            raise place.error(f'expected a value, found "{token[0]}": write a variable as :{token[0]}')
        if name not in _CALLABLE:
            raise place.error(f"no such function: {token[0]}. Use one of {', '.join(_CALLABLE)}")
        self._taken()
        arguments: list[Expression] = []
        while not self._takes(")"):
            if arguments:
                self._must(",")
            arguments.append(self.expression())
        _, least, most = FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            count = f"{least}" if least == most else f"{least} or {'more' if most == _MANY else most}"
            wanted = f"{count} argument{'s' * (count != '1')}"
            raise place.error(f"{name} takes {wanted}, not {len(arguments)}")
        if name == "hash" and len(arguments) == 1:
            arguments.append(Variable("default_seed", place))
        return Call(name, tuple(arguments))


# Compiling.


class Reckoner:
    """Compiles expressions for one process, over its stream of random numbers."""

    def __init__(self, stream: Random, fixed: Mapping[str, Value]) -> None:
        """`fixed` are the variables that no script sets."""
        self._stream, self._fixed = stream, fixed

    def expression(self, expression: Expression) -> Reckoned:
        """Return what reckons an expression. It raises NoValue."""
        return self._compiled(self._folded(expression))

    def _folded(self, expression: Expression) -> Expression:
        """Reckon what is known beforehand; what has no value is told where it is met, if it is."""
        if isinstance(expression, Call):
            arguments = tuple(map(self._folded, expression.arguments))
            expression = Call(expression.name, arguments)
            if expression.name not in RANDOM and all(isinstance(one, Constant) for one in arguments):
                with suppress(NoValue):
                    return Constant(self._compiled(expression)({}))
        elif isinstance(expression, Variable) and expression.name in self._fixed:
            with suppress(NoValue):
                return Constant(number_of(self._fixed[expression.name]))
        return expression

    def _compiled(self, expression: Expression) -> Reckoned:
        if isinstance(expression, Constant):
            value = expression.value
            return lambda _: value
        if isinstance(expression, Variable):
            return _looked_up(expression.name)
        name, arguments = expression.name, list(map(self._compiled, expression.arguments))
        match name:
            case "and" | "or":
                return _both(*arguments, ends=name == "or")
            case "case":
                return _chosen(arguments)
            case "is":
                left, right = arguments
                return lambda variables: left(variables) is right(variables)
        call: Callable[..., Any] = FUNCTIONS[name].call
        if name == "random" and all(isinstance(one, Constant) for one in expression.arguments):
            with suppress(NoValue):
                return self._drawn(*(argument({}) for argument in arguments))
        return _applied(partial(call, self._stream) if name in RANDOM else call, arguments)

    def _drawn(self, low: Value, high: Value) -> Reckoned:
        """Return what draws from bounds that are known, as most scripts do for each transaction."""
        (first, count), uniform = _range(low, high), self._stream.random
        if count >= _EXACT:
            raise NoValue
        return lambda _: first + int(count * uniform())


def _looked_up(name: str) -> Reckoned:
    def look(variables: Variables) -> Value:
        try:
            value = variables[name]
        except KeyError:
            raise NoValue(f"the variable :{name} has no value") from None
        return value if value.__class__ is int else number_of(value)

    return look


def _applied(call: Callable[..., Value], arguments: Sequence[Reckoned]) -> Reckoned:
    if len(arguments) == 2:
        left, right = arguments

        def apply_both(variables: Variables) -> Value:
            first, second = left(variables), right(variables)
            return None if first is None or second is None else call(first, second)

        return apply_both

    def apply(variables: Variables) -> Value:
        values = [argument(variables) for argument in arguments]
        return None if None in values else call(*values)

    return apply


def _both(left: Reckoned, right: Reckoned, *, ends: bool) -> Reckoned:
    """Return AND, which `ends` at False, or OR, which ends at True; as in pgbench, NULL comes first."""

    def both(variables: Variables) -> Value:
        first = left(variables)
        if first is None or _truth(first) is ends:
            return first
        second = right(variables)
        return None if second is None else _truth(second)

    return both


def _chosen(arguments: Sequence[Reckoned]) -> Reckoned:
    *pairs, otherwise = arguments
    whens = list(zip(pairs[::2], pairs[1::2], strict=True))

    def choose(variables: Variables) -> Value:
        for when, then in whens:
            if holds(when(variables)):
                return then(variables)
        return otherwise(variables)

    return choose
