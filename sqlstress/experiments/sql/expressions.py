"""Expressions of scripts: SQLite evaluates them, with pgbench's functions.

pgbench evaluates expressions in the client, also of scripts for a server. Therefore a private SQLite database
in memory evaluates them for both targets: no measured connection, transaction or trace contains them.
Source: https://www.postgresql.org/docs/current/pgbench.html, and PostgreSQL 15, src/bin/pgbench.

SQLite makes a double of an integer that overflows, and NULL of a division by zero. Arithmetic is therefore
translated to calls of functions that raise an error. The rest is SQL: truth is 1 or 0.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import lru_cache, partial
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.errors import UsageError
from sqlstress.user_work.statements import Place, place_of

if TYPE_CHECKING:
    import sqlite3

Number = int | float | None
Value = int | float | bool | str | bytes | None
"""Content of a variable. Expressions read text as a number."""
Variables = dict[str, Value]


class Expression(NamedTuple):
    """A checked expression."""

    sql: str
    """Translation, with a numbered parameter for each variable."""
    variables: Mapping[str, Place]
    """Names of the variables in the order of the parameters, each with its first place."""
    draws: bool
    """Whether it draws random numbers."""


TRUE = Expression("1", {}, False)


class NoValue(Exception):
    """An expression has no value. The text is the reason."""


# Values.


LEAST, MOST = -(1 << 63), (1 << 63) - 1
_WRAP = (1 << 64) - 1
_INTEGER = re.compile(r"\s*[-+]?\d{1,19}\s*")
_WORDS: dict[str, Number] = {
    **dict.fromkeys(("true", "yes", "on", "t", "y"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n"), False),
    "null": None,
}


def _fit(number: int) -> int:
    if LEAST <= number <= MOST:
        return number
    raise NoValue("the result does not fit into 64 bits")


def meant(text: str) -> Number:
    """Return the number that a text means in pgbench's variables. Raises NoValue."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return _fit(int(text)) if _INTEGER.fullmatch(text) else float(text)
    except ValueError as error:
        raise NoValue(f"{text[:40]!r} is not a number") from error


def number_of(value: object) -> Number:
    """Return the number in a variable. Raises NoValue."""
    if value.__class__ is int:
        return value
    number = value if value is None or isinstance(value, int | float) else meant(str(value))
    if number != number:  # SQLite would make NULL of it
        raise NoValue("NaN is not a number")
    return number


def _to_integer(value: float) -> int:
    """Return the nearest integer; of two equally near, the even integer."""
    return value if isinstance(value, int) else _fit(round(value))


# Functions. NULL never reaches them: `Evaluator` returns NULL for it.


_EXACT = 1 << 53
"""Limit up to which doubles represent every integer."""
_LEAST_GAUSSIAN = 2.0
_LEAST_ZIPFIAN, _MOST_ZIPFIAN = 1.001, 1000.0
_MURMUR, _MURMUR_TIMES_8, _MURMUR_SHIFT = 0xC6A4A7935BD1E995, 0x35253C9ADE8F4CA8, 47
_PERMUTE_ROUNDS = 6


def divide(left: float, right: float) -> float:
    """Return the quotient. Integers are divided as in C: towards zero."""
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left: float, right: float) -> int:
    """Return the remainder as in C: with the sign of the dividend."""
    dividend, divisor = _to_integer(left), _to_integer(right)
    rest = abs(dividend) % abs(divisor)
    return -rest if dividend < 0 else rest


def _extreme(choose: Callable[..., float], *values: float) -> float:
    return choose(map(float, values) if any(isinstance(value, float) for value in values) else values)


def _murmur2(default: int, value: float, seed: float | None = None) -> int:
    """Return the MurmurHash2 of a 64-bit integer."""
    hashed, bits = (
        (_to_integer(default if seed is None else seed) & _WRAP) ^ _MURMUR_TIMES_8,
        _to_integer(value) * _MURMUR & _WRAP,
    )
    bits = (bits ^ bits >> _MURMUR_SHIFT) * _MURMUR & _WRAP
    hashed = (hashed ^ bits) * _MURMUR & _WRAP
    hashed = (hashed ^ hashed >> _MURMUR_SHIFT) * _MURMUR & _WRAP
    hashed ^= hashed >> _MURMUR_SHIFT
    return hashed - (1 << 64) if hashed > MOST else hashed


@lru_cache(maxsize=16)
def _permute_keys(mask: int, size: int, seed: int) -> Sequence[tuple[int, ...]]:
    stream = Random(seed & _WRAP)

    def draw() -> int:
        return stream.getrandbits(64) & mask

    return [(draw() | 1, draw(), draw() | 1, draw(), stream.randrange(size)) for _ in range(_PERMUTE_ROUNDS)]


def _permute(default: int, value: float, size: float, seed: float | None = None) -> int:
    """Return the new position of an integer, by pgbench's rounds over keys from Python's generator."""
    count = _to_integer(size)
    if count < 1:
        raise NoValue(f"the size of permute must be above 0, not {count}")
    length = count.bit_length() - 1
    mask, last, key = (1 << length) - 1, count - 1, _to_integer(default if seed is None else seed)

    def scramble(bits: int, factor: int, key: int) -> int:
        """Permute the integers up to the mask: multiply by an odd factor, XOR, and rotate."""
        bits = (bits * factor ^ key) & mask
        return (bits << 1 & mask) | bits >> (length - 1)

    at = (_to_integer(value) & _WRAP) % count
    for low, low_key, high, high_key, offset in _permute_keys(mask, count, key) if last else ():
        if at <= mask:
            at = scramble(at, low, low_key)
        if last - at <= mask:
            at = last - scramble(last - at, high, high_key)
        at = (at + offset) % count
    return at


def _range(low: float, high: float) -> tuple[int, int]:
    """Return the first integer of a range, and the number of integers; both bounds are included."""
    first, last = _to_integer(low), _to_integer(high)
    if first > last:
        raise NoValue(f"there is no integer from {first} to {last}")
    if last - first >= 1 << 63:
        raise NoValue("the range is too large")
    return first, last - first + 1


def _random(stream: Random, low: float, high: float) -> int:
    first, count = _range(low, high)
    return first + (int(count * stream.random()) if count < _EXACT else stream.randrange(count))


def _gaussian(stream: Random, low: float, high: float, width: float) -> int:
    first, count = _range(low, high)
    if not width >= _LEAST_GAUSSIAN:
        raise NoValue(f"the parameter of random_gaussian must be at least {_LEAST_GAUSSIAN}, not {width}")
    while not -width <= (drawn := stream.gauss(0.0, 1.0)) < width:
        pass
    return first + int(count * (drawn + width) / (2 * width))


def _exponential(stream: Random, low: float, high: float, decay: float) -> int:
    first, count = _range(low, high)
    if not decay > 0:
        raise NoValue(f"the parameter of random_exponential must be above 0, not {decay}")
    cut = math.exp(-decay)
    share = -math.log(cut + (1 - cut) * (1 - stream.random())) / decay
    return first + min(int(count * share), count - 1)


def _zipfian(stream: Random, low: float, high: float, skew: float) -> int:
    """Draw by rejection. Source: L. Devroye, Non-Uniform Random Variate Generation, p. 550-551."""
    first, count = _range(low, high)
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


_RANDOM = {"random", "random_gaussian", "random_exponential", "random_zipfian"}
"""Functions whose first argument is a stream of random numbers."""
_SEEDED = {"hash", "hash_murmur2", "permute"}
"""Functions whose first argument is the seed for scripts that give none."""
_MANY = range(1, 17)
"""Numbers of arguments of least and greatest: pgbench's limit is 16."""
_FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "random": (_random, 2),
    "random_gaussian": (_gaussian, 3),
    "random_exponential": (_exponential, 3),
    "random_zipfian": (_zipfian, 3),
    "hash": (_murmur2, 2, 3),
    "hash_murmur2": (_murmur2, 2, 3),
    "permute": (_permute, 3, 4),
    "+": (operator.add, 2),
    "-": (operator.sub, 2),
    "*": (operator.mul, 2),
    "/": (divide, 2),
    "%": (remainder, 2),
    "mod": (remainder, 2),
    "abs": (abs, 1),
    "least": (partial(_extreme, min), *_MANY),
    "greatest": (partial(_extreme, max), *_MANY),
    "double": (float, 1),
    "int": (_to_integer, 1),
    "pi": (lambda: math.pi, 0),
    "sqrt": (math.sqrt, 1),
    "ln": (math.log, 1),
    "exp": (math.exp, 1),
    "pow": (math.pow, 2),
    "power": (math.pow, 2),
}
"""Functions and operators: the implementation, then the possible numbers of arguments in SQL."""


# Translation.


_TOKEN = re.compile(
    r"""(?P<space>(?:\s|\\\r?\n)+)
    |(?P<double>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
    |(?P<integer>\d+)
    |(?P<variable>:\w+)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign><=|>=|<>|!=|.)
    |(?P<end>\Z)""",
    re.VERBOSE | re.DOTALL,
)
_LEVELS = (("+", "-"), ("*", "/", "%"))
"""Operators that become calls, by their precedence. All other operators are below."""
_CONSTANTS = {"null": "NULL", "true": "1", "false": "0"}
_SQL = {
    *("and", "or", "not", "is", "when", "then", "else"),
    *("<", "<=", "=", "<>", "!=", ">", ">=", ","),
}
"""Tokens that mean the same in SQLite."""
_PREFIX = "pgbench "
"""Prefix of our functions: SQLite has a different function random."""
_DEEPEST = 100


def read(file: str, text: str, start: int, end: int) -> Expression:
    """Return the expression between two positions of a text. Raises UsageError."""
    reader = _Reader(file, text, start, end)
    place = reader.place
    expression = Expression(reader.everything(""), reader.variables, reader.draws)
    with closing(Evaluator(Random())) as evaluator:
        problem = evaluator.problem(expression)
    if problem:
        raise place.error(f"SQLite refuses the expression: {problem.replace(_PREFIX, '')}")
    return expression


class _Reader:
    """Translates tokens from left to right. SQLite finds most mistakes."""

    def __init__(self, file: str, text: str, start: int, end: int) -> None:
        self._file, self._text = file, text
        tokens = (token for token in _TOKEN.finditer(text, start, end) if token.lastgroup != "space")
        self._tokens = list(tokens)[::-1]
        self._depth = 0
        self.variables: dict[str, Place] = {}
        self.draws = False

    @property
    def _next(self) -> str:
        return self._tokens[-1][0].lower()

    @property
    def place(self) -> Place:
        """Place of the next token."""
        return place_of(self._file, self._text, self._tokens[-1].start())

    def _error(self, token: re.Match[str], problem: str) -> UsageError:
        return place_of(self._file, self._text, token.start()).error(problem)

    def everything(self, closing: str) -> str:
        """Return the SQL of all tokens before the one that closes them."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error(self._tokens[-1], f"nested more than {_DEEPEST} levels deep")
        parts: list[str] = []
        while self._next != closing or not (parts or closing):
            if not self._next:
                wanted = f'"{closing}"' if closing else "a value"
                raise self._error(self._tokens[-1], f"expected {wanted}, found the end of the line")
            parts.append(self._tokens.pop()[0] if self._next in _SQL else self._arithmetic(0))
        if closing:
            self._tokens.pop()
        self._depth -= 1
        return f"({' '.join(parts)})"

    def _arithmetic(self, level: int) -> str:
        if level == len(_LEVELS):
            return self._operand()
        left = self._arithmetic(level + 1)
        while self._next in _LEVELS[level]:
            sign = self._tokens.pop()[0]
            left = f'"{_PREFIX}{sign}"({left}, {self._arithmetic(level + 1)})'
        return left

    def _operand(self) -> str:
        sign = ""
        while self._next in ("+", "-"):
            sign += self._tokens.pop()[0].strip("+")
        negations = len(sign)
        if negations and self._tokens[-1].lastgroup == "integer":
            negations -= 1  # the least integer has no positive one
        operand = self._value(self._tokens.pop(), "-" * (len(sign) - negations))
        return f'"{_PREFIX}-"(0, ' * negations + operand + ")" * negations

    def _value(self, token: re.Match[str], sign: str) -> str:
        word = token[0].lower()
        match token.lastgroup:
            case "integer":
                # Python reads no integers of thousands of digits.
                number = int(sign + word) if len(word) < 100 else MOST + 1
                if not LEAST <= number <= MOST:
                    raise self._error(token, "the integer does not fit into 64 bits")
                return str(number)
            case "double" if math.isfinite(float(word)):
                return repr(float(word))
            case "variable":
                return self._parameter(token, token[0][1:])
            case "word" if word in _CONSTANTS:
                return _CONSTANTS[word]
            case "word" if word == "case":
                return f"(CASE {self.everything('end')[1:-1]} END)"
            case "word" if self._next == "(":
                self._tokens.pop()
                self.draws = self.draws or word in _RANDOM
                seed = [self._parameter(token, "default_seed"), ""] if word in _SEEDED else []
                return f'"{_PREFIX}{word}"({", ".join(seed)}{self.everything(")")[1:]}'
            case "word":
                raise self._error(token, f'expected a value, found "{word}": write a variable as :{token[0]}')
            case "sign" if word == "(":
                return self.everything(")")
        there = f'"{token[0]}"' if token[0] else "the end of the line"
        raise self._error(token, f"expected a value, found {there}")

    def _parameter(self, token: re.Match[str], name: str) -> str:
        self.variables.setdefault(name, place_of(self._file, self._text, token.start()))
        return f"?{[*self.variables].index(name) + 1}"


# Evaluation.


class Evaluator:
    """A SQLite database in memory with pgbench's functions, over one stream of random numbers."""

    def __init__(self, stream: Random) -> None:
        self._stream = stream
        self._opened: sqlite3.Connection | None = None
        self._error: BaseException | None = None

    def _connection(self) -> sqlite3.Connection:
        import sqlite3  # scripts without expressions need no sqlite3

        if self._opened is None:
            self._opened = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            for name, (call, *counts) in _FUNCTIONS.items():
                bound = partial(call, self._stream) if name in _RANDOM else call
                for count in counts:
                    self._opened.create_function(_PREFIX + name, count, self._guard(name, bound))
        return self._opened

    def _guard(self, name: str, call: Callable[..., float]) -> Callable[..., Number]:
        """Return a function for SQLite that stores its error, since sqlite3 reports no reason."""

        def run(*values: Any) -> Number:
            if None in values:
                return None
            try:
                result = call(*values)
                if isinstance(result, int):
                    return _fit(result)
                if result == result:
                    return result
                raise ValueError
            except ZeroDivisionError:
                self._error = NoValue("division by zero")
            except (ValueError, OverflowError):
                self._error = NoValue(f"{name} has no value for {', '.join(map(str, values))}")
            except BaseException as error:
                self._error = error
            raise self._error

        return run

    def problem(self, expression: Expression) -> str:
        """Return the reason why SQLite refuses an expression; empty if it accepts it."""
        connection = self._connection()
        try:
            values = [None] * len(expression.variables)
            connection.execute(f"EXPLAIN SELECT {_choice(expression)}", values).close()
        except connection.Error as error:
            return str(error)
        return ""

    def compile(self, expression: Expression) -> Callable[[Variables], Number]:
        """Return a function from variables to the expression's value. The function raises NoValue."""
        connection = self._connection()
        cursor, failure = connection.cursor(), connection.Error
        execute, fetch = cursor.execute, cursor.fetchone
        sql, names = f"SELECT {expression.sql}", [*expression.variables]

        def evaluate(variables: Variables) -> Number:
            try:
                execute(sql, [number_of(variables[name]) for name in names])
                value: Number = fetch()[0]
            except KeyError as error:
                raise NoValue(f"the variable :{error.args[0]} has no value") from None
            except failure as error:
                problem, self._error = self._error, None
                raise problem or NoValue(f"SQLite cannot evaluate the expression: {error}") from None
            return value

        return evaluate

    def condition(self, expression: Expression) -> Callable[[Variables], Number]:
        """Return a function from variables to 1 if the expression holds, and to 0 if it is 0 or NULL.

        In a CASE SQLite evaluates AND and OR only as far as needed.
        """
        return self.compile(expression._replace(sql=_choice(expression)))

    def close(self) -> None:
        if self._opened:
            self._opened.close()


def _choice(expression: Expression) -> str:
    return f"CASE WHEN {expression.sql} THEN 1 ELSE 0 END"
