"""Reads the expressions of scripts: precedence and words are those of pgbench."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import ClassVar, NamedTuple

from sqlstress.errors import UsageError
from sqlstress.experiments.sql.script.functions import (
    FUNCTIONS,
    LAZY,
    LEAST,
    MANY,
    MOST,
    OPERATORS,
    RANDOM,
    SEED,
    SEEDED,
    Draws,
    Function,
    NoValue,
    holds,
    meant,
    random_calls,
    truth,
    whole,
)
from sqlstress.experiments.sql.script.tree import Call, Constant, Expression, Value, Variable
from sqlstress.user_work.statements import Place, place_of

_TOKEN = re.compile(
    r"""(?P<space>(?:\s|\\\r?\n)+)
    |(?P<double>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
    |(?P<integer>\d+)
    |(?P<variable>:\w+)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign><=|>=|<>|!=|<<|>>|[-+*/%<>=()&|#~,])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_BINARY = {
    "or": 1,
    "and": 2,
    **dict.fromkeys(("is", "isnull", "notnull"), 4),
    **dict.fromkeys(("<", "<=", "=", "<>", "!=", ">", ">="), 5),
    **dict.fromkeys(("|", "#", "&", "<<", ">>"), 6),
    **dict.fromkeys(("+", "-"), 7),
    **dict.fromkeys(("*", "/", "%"), 8),
}
_NOT, _COMPARED, _TILDE = 3, 5, 6
_TURNED = {">": "<", ">=": "<="}
_CONSTANTS: dict[str, Value] = {"null": None, "true": True, "false": False}
_RESERVED = {"and", "or", "not", "is", "isnull", "notnull", "case", "when", "then", "else", "end"}
_DEEPEST = 100


class _Token(NamedTuple):
    kind: str
    text: str
    start: int

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind in ("word", "sign") else ""


def read(file: str, text: str, start: int, end: int) -> Expression:
    """Return the expression that stands in a text from one place to another. Raises UsageError."""
    reader = _Reader(file, text, start, end)
    found = reader.expression()
    if reader.next.kind != "end":
        raise reader.expected("an operator, or the end of the line")
    return found


class _Reader:
    """Goes through the tokens one by one."""

    def __init__(self, file: str, text: str, start: int, end: int) -> None:
        self._file, self._text = file, text
        found = (_Token(str(one.lastgroup), one[0], one.start()) for one in _TOKEN.finditer(text, start, end))
        self._tokens = [token for token in found if token.kind != "space"]
        last = self._tokens[-1] if self._tokens else None
        self._tokens.append(_Token("end", "", last.start + len(last.text) if last else end))
        self._at = self._depth = 0

    @property
    def next(self) -> _Token:
        return self._tokens[self._at]

    def _taken(self) -> _Token:
        token = self.next
        self._at += token.kind != "end"
        return token

    def _take(self, *words: str) -> str:
        """Take the next token if it is one of these; return it, or nothing."""
        word = self.next.word
        return self._taken().word if word in words else ""

    def _must(self, *words: str) -> None:
        if not self._take(*words):
            raise self.expected(" or ".join(words).upper() if words[0].isalpha() else f'"{words[0]}"')

    def _place(self, token: _Token) -> Place:
        return place_of(self._file, self._text, token.start)

    def expected(self, what: str) -> UsageError:
        """Return an error that says what should stand where the next token stands."""
        found = f'"{self.next.text}"' if self.next.text else "the end of the line"
        return self._place(self.next).error(f"expected {what}, found {found}")

    def expression(self, least: int = 1) -> Expression:
        """Read an expression whose operators bind at least so strongly."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._place(self.next).error(f"nested more than {_DEEPEST} levels deep")
        found, compared = self._operand(), False
        while (level := _BINARY.get(self.next.word, 0)) >= least:
            token = self._taken()
            if level == _COMPARED and compared:
                raise self._place(token).error("comparisons make no chain: write AND between two of them")
            compared = level == _COMPARED
            found = self._test(token, found) if level == _BINARY["is"] else self._binary(token, found, level)
        self._depth -= 1
        return found

    def _binary(self, token: _Token, left: Expression, level: int) -> Expression:
        right = self.expression(level + 1)
        name = "<>" if token.word == "!=" else token.word
        if name in _TURNED:
            return Call(_TURNED[name], (right, left), self._place(token))
        return Call(name, (left, right), self._place(token))

    def _test(self, token: _Token, left: Expression) -> Expression:
        place, negated = self._place(token), token.word == "notnull"
        value: Value = None
        if token.word == "is":
            negated = bool(self._take("not"))
            word = self._take(*_CONSTANTS)
            if not word:
                raise self.expected("NULL, TRUE or FALSE")
            value = _CONSTANTS[word]
        test = Call("is", (left, Constant(value)), place)
        return Call("not", (test,), place) if negated else test

    def _operand(self) -> Expression:
        token = self.next
        prefix = self._PREFIXES.get(token.word)
        if prefix:
            return prefix(self, self._taken())
        if token.kind in ("integer", "double"):
            return Constant(self._number(self._taken(), ""))
        if token.kind == "variable":
            self._taken()
            return Variable(token.text[1:], self._place(token))
        if token.kind == "word" and token.word not in _RESERVED:
            return self._named(self._taken())
        raise self.expected("a value")

    def _number(self, token: _Token, sign: str) -> Value:
        if token.kind == "double":
            return float(sign + token.text)
        # Python reads no integers of thousands of digits.
        number = int(sign + token.text) if len(token.text) < 100 else MOST + 1
        if not LEAST <= number <= MOST:
            raise self._place(token).error("the integer does not fit into 64 bits")
        return number

    def _parenthesis(self, _: _Token) -> Expression:
        found = self.expression()
        self._must(")")
        return found

    def _minus(self, token: _Token) -> Expression:
        if self.next.kind == "integer":  # the least integer has no positive one
            return Constant(self._number(self._taken(), "-"))
        return Call("-", (Constant(0), self.expression(9)), self._place(token))

    def _plus(self, _: _Token) -> Expression:
        return self.expression(9)

    def _tilde(self, token: _Token) -> Expression:
        return Call("#", (self.expression(_TILDE + 1), Constant(-1)), self._place(token))

    def _not(self, token: _Token) -> Expression:
        return Call("not", (self.expression(_NOT),), self._place(token))

    def _case(self, token: _Token) -> Expression:
        parts: list[Expression] = []
        while self._take("when"):
            parts.append(self.expression())
            self._must("then")
            parts.append(self.expression())
        if not parts:
            raise self.expected("WHEN")
        parts.append(self.expression() if self._take("else") else Constant(None))
        self._must("end")
        return Call("case", tuple(parts), self._place(token))

    _PREFIXES: ClassVar[dict[str, Callable[[_Reader, _Token], Expression]]] = {
        "(": _parenthesis,
        "-": _minus,
        "+": _plus,
        "~": _tilde,
        "not": _not,
        "case": _case,
    }

    def _named(self, token: _Token) -> Expression:
        name, place = token.word, self._place(token)
        if name in _CONSTANTS:
            return Constant(_CONSTANTS[name])
        if self.next.text != "(":
            raise place.error(f'expected a value, found "{token.text}": a variable is written :{token.text}')
        if name in OPERATORS or (name not in FUNCTIONS and name not in RANDOM):
            raise place.error(f"there is no function {token.text}: there are {', '.join(_callable())}")
        self._taken()
        arguments = self._arguments()
        if len(arguments) == SEEDED.get(name):
            arguments.append(Variable(SEED, place))
        least, most = _arity(name)
        if not least <= len(arguments) <= most:
            raise place.error(_wanted(name, least, most, len(arguments)))
        return Call(name, tuple(arguments), place)

    def _arguments(self) -> list[Expression]:
        found: list[Expression] = []
        if self._take(")"):
            return found
        found.append(self.expression())
        while self._take(","):
            found.append(self.expression())
        self._must(")")
        return found


def _arity(name: str) -> tuple[int, int]:
    if name in RANDOM:
        return RANDOM[name]
    known = FUNCTIONS.get(name)
    return (known.least, known.most) if known else LAZY[name]


def _wanted(name: str, least: int, most: int, found: int) -> str:
    least -= name in SEEDED
    count = f"{least}" if least == most else f"{least} or more" if most == MANY else f"{least} or {most}"
    return f"{name} takes {count} argument{'s' * (count != '1')}, not {found}"


def _callable() -> list[str]:
    return sorted({*FUNCTIONS, *RANDOM} - OPERATORS)


# Compiles expressions: each to a call of the variables. What is known beforehand is reckoned once.


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
        return meant(value)
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
