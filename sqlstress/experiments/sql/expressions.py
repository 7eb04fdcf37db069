"""Expressions of scripts, evaluated by SQLite with pgbench's functions.

Like pgbench, sqlstress evaluates expressions in the client, also if the statements run on a server. It uses a
private SQLite database in memory.

Source: https://www.postgresql.org/docs/current/pgbench.html, and PostgreSQL 15, src/bin/pgbench.

pgbench reports an error for an overflow of integers, where SQLite returns a double, and for a division by
zero, where SQLite returns NULL. So a double is an error in an expression of integers, and NULL is an error in
an expression without NULL. Neither is detected inside a condition, such as `:n / 0 > 1`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.user_work.statements import Position, position_at

if TYPE_CHECKING:
    import sqlite3

Number = int | float | None
Value = int | float | bool | str | bytes | None
"""Value of a script's variable. Expressions convert a text to a number by `parse_number`."""
Variables = dict[str, Value]
Evaluate = Callable[[Variables], Number]


class Expression(NamedTuple):
    """Expression of a script, such as `:n + random(1, 10)`, translated to SQL for SQLite."""

    sql: str
    variables: Mapping[str, Position]
    """Names of the variables in the expression, with the position of their first use."""
    draws: bool = False
    """Whether the expression draws random numbers."""
    has_doubles: bool = False
    """Whether the value may be a double even if all variables are integers, as in `:n * 0.5`."""
    has_null: bool = False
    """Whether the value may be NULL even if no variable is NULL, as in a CASE without ELSE."""


TRUE = Expression("1", {})


class NoValue(Exception):
    """Error: an expression has no value, for example because of a division by zero."""


LEAST, MOST = -(1 << 63), (1 << 63) - 1
_WRAP = (1 << 64) - 1
_INTEGER = re.compile(r"\s*[-+]?\d{1,19}\s*")
_WORDS: dict[str, Number] = {
    **dict.fromkeys(("true", "yes", "on", "t", "y"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n"), False),
    "null": None,
}
_OVERFLOW = "an integer does not fit into 64 bits"


def _fit(number: int) -> int:
    if LEAST <= number <= MOST:
        return number
    raise NoValue(_OVERFLOW)


def parse_number(text: str) -> Number:
    """Return the number in a variable's text, by pgbench's rules. Raise NoValue if there is no number."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return _fit(int(text)) if _INTEGER.fullmatch(text) else float(text)
    except ValueError as error:
        raise NoValue(f"{text[:40]!r} is not a number") from error


def number_of(value: object) -> Number:
    """Return the number in a variable; None for NULL. Raise NoValue if there is no number."""
    if value.__class__ is int:
        return value
    number = value if value is None or isinstance(value, int | float) else parse_number(str(value))
    if number != number:  # SQLite would turn NaN into NULL.
        raise NoValue("NaN is not a number")
    return number


def _to_integer(value: float) -> int:
    return value if isinstance(value, int) else _fit(round(value))


_EXACT = 1 << 53
"""Largest integer up to which a double represents every integer."""
_LEAST_GAUSSIAN = 2.0
_LEAST_ZIPFIAN, _MOST_ZIPFIAN = 1.001, 1000.0
_MURMUR, _MURMUR_TIMES_8, _MURMUR_SHIFT = 0xC6A4A7935BD1E995, 0x35253C9ADE8F4CA8, 47
_FNV_BASIS, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
_PERMUTE_ROUNDS = 4


def _remainder(left: float, right: float) -> int:
    """Return the remainder of a division as in C, with the sign of the dividend."""
    dividend, divisor = _to_integer(left), _to_integer(right)
    rest = abs(dividend) % abs(divisor)
    return -rest if dividend < 0 else rest


def _extreme(choose: Callable[..., float], *values: float) -> float:
    return choose(map(float, values) if float in map(type, values) else values)


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits > MOST else bits


def _murmur2(default: float, value: float, seed: float | None = None) -> int:
    hashed = (_to_integer(default if seed is None else seed) & _WRAP) ^ _MURMUR_TIMES_8
    bits = _to_integer(value) * _MURMUR & _WRAP
    bits = (bits ^ bits >> _MURMUR_SHIFT) * _MURMUR & _WRAP
    hashed = (hashed ^ bits) * _MURMUR & _WRAP
    hashed = (hashed ^ hashed >> _MURMUR_SHIFT) * _MURMUR & _WRAP
    return _signed(hashed ^ hashed >> _MURMUR_SHIFT)


def _fnv1a(default: int, value: float, seed: float | None = None) -> int:
    hashed = _FNV_BASIS ^ (_to_integer(default if seed is None else seed) & _WRAP)
    for octet in (_to_integer(value) & _WRAP).to_bytes(8, "little"):
        hashed = (hashed ^ octet) * _FNV_PRIME & _WRAP
    return _signed(hashed)


def _permute(default: int, value: float, size: float, seed: float | None = None) -> int:
    """Return `value` mapped by a pseudorandom permutation of 0 to `size` - 1.

    A Feistel network is applied repeatedly, until the result is below `size` (cycle walking). The seed is
    `seed`, or else `default` (the variable default_seed).
    """
    count = _to_integer(size)
    if count < 1:
        raise NoValue(f"the size of permute must be above 0, not {count}")
    half = ((count - 1).bit_length() + 1) // 2
    at, mask, key = _to_integer(value) % count, (1 << half) - 1, default if seed is None else seed
    while True:
        left, right = at >> half, at & mask
        for number in range(_PERMUTE_ROUNDS):
            left, right = right, left ^ (_murmur2(key, right * _PERMUTE_ROUNDS + number) & mask)
        at = left << half | right
        if at < count:
            return at


def _range(low: float, high: float) -> tuple[int, int]:
    """Return (first, count) of the integers from `low` to `high`. Raise NoValue if none, or too many."""
    first, last = _to_integer(low), _to_integer(high)
    if first > last:
        raise NoValue(f"there is no integer from {first} to {last}")
    if last - first >= 1 << 63:
        raise NoValue("the range is too large")
    return first, last - first + 1


def _draw(stream: Random, first: int, count: int) -> int:
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
    """Return a Zipf-distributed integer (Devroye, Non-Uniform Random Variate Generation, p. 550-551)."""
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
            continue  # The drawn rank is larger than any possible `count`.
        if rank > count:
            continue
        ratio = (1 + 1 / rank) ** (skew - 1)
        if stream.random() * rank * (ratio - 1) / (top - 1) <= ratio / top:
            return first - 1 + rank
    return first


_RANDOM = {"random", "random_gaussian", "random_exponential", "random_zipfian"}
"""Functions of scripts whose Python code gets the random number generator as first argument."""
_DOUBLES = {"double", "pi", "sqrt", "ln", "exp", "pow", "power"}
"""Functions that return a double even for integer arguments."""
_MANY = range(1, 17)
"""Permitted numbers of arguments of least() and greatest(): 1 to 16, as in pgbench."""
_FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "random": (lambda stream, low, high: _draw(stream, *_range(low, high)), 2),
    "random_gaussian": (_gaussian, 3),
    "random_exponential": (_exponential, 3),
    "random_zipfian": (_zipfian, 3),
    "hash": (_murmur2, 2, 3),
    "hash_murmur2": (_murmur2, 2, 3),
    "hash_fnv1a": (_fnv1a, 2, 3),
    "permute": (_permute, 3, 4),
    "mod": (_remainder, 2),
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
"""pgbench's functions by name: Python code, then permitted numbers of arguments in SQL.

The hash functions and permute have an argument more than in pgbench: `read` inserts the variable default_seed
as their first argument. No function gets NULL: `Evaluator` returns NULL for such calls.
"""

_TOKEN = re.compile(
    r"""(?:\s|\\\r?\n)+
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    |(?P<variable>:\w+)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign><=|>=|<>|!=|[-+*/%<>=(),])
    |(?P<unknown>.)""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = {
    **{word: word for word in ("and", "or", "not", "is", "null", "case", "when", "then", "else", "end")},
    "true": "1",
    "false": "0",  # With 1 for true, 2 IS TRUE is false, as in pgbench.
}
_NULL = re.compile(r"(?<!\bis )(?<!\bis not )\bnull\b")
_PREFIX = "pgbench_"
"""Prefix of pgbench's functions in SQL, because SQLite has other functions with names such as random."""
_SEEDED = re.compile(rf"{_PREFIX}(?:hash\w*|permute) \(")
"""Pattern (in SQL) of the calls in which `read` inserts the variable default_seed as first argument."""
_LONE_RANDOM = re.compile(rf"{_PREFIX}random \([^()]*\)")
"""Pattern of an expression that is a single call of random."""


def read(file: str, text: str, start: int, end: int) -> Expression:
    """Return the expression in `text` from `start` to `end`. Raise UsageError if SQLite rejects it."""
    parts: list[str] = []
    words: list[str] = []
    variables: dict[str, Position] = {}
    has_doubles = False
    tokens = [token for token in _TOKEN.finditer(text, start, end) if token.lastgroup]
    for token in tokens:
        place, part, word = position_at(file, text, token.start()), token[0], token[0].lower()
        match token.lastgroup:
            case "number":
                if math.isinf(float(part)):
                    raise place.error("the number is too large")
                has_doubles = has_doubles or not part.isdigit()
            case "variable":
                variables.setdefault(part[1:], place)
            case "word":
                words.append(word)
                part = _PREFIX + word if word in _FUNCTIONS else _KEYWORDS.get(word, "")
                if not part:
                    raise place.error(f'no such function: "{token[0]}". Write a variable as :{token[0]}')
            case "unknown":
                raise place.error(f'"{part}" is not supported in an expression')
        parts.append(part)
    sql, place = " ".join(parts), position_at(file, text, tokens[0].start() if tokens else start)
    if _SEEDED.search(sql):
        sql = _SEEDED.sub(r"\g<0> :default_seed ,", sql)
        variables.setdefault("default_seed", place)
    expression = Expression(
        sql,
        variables,
        draws=not _RANDOM.isdisjoint(words),
        has_doubles=has_doubles or not _DOUBLES.isdisjoint(words),
        has_null=bool(_NULL.search(sql)) or words.count("case") > words.count("else"),
    )
    with closing(Evaluator(Random())) as evaluator:
        problem = evaluator.problem(expression)
    if problem:
        raise place.error(f"SQLite refuses the expression: {problem.replace(_PREFIX, '')}")
    return expression


class Evaluator:
    """Evaluator of expressions: a SQLite database in memory with pgbench's functions.

    `stream` is the generator of the random numbers.
    """

    def __init__(self, stream: Random) -> None:
        self._stream = stream
        self._opened: sqlite3.Connection | None = None
        self._current: tuple[Expression, dict[str, Number]] = TRUE, {}
        self._error: BaseException | None = None
        self._arguments: tuple[Any, ...] = ()

    def _connection(self) -> sqlite3.Connection:
        import sqlite3  # Scripts without expressions do not need sqlite3.

        if self._opened is None:
            self._opened = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            for name, (call, *counts) in _FUNCTIONS.items():
                bound = partial(call, self._stream) if name in _RANDOM else call
                for count in counts:
                    self._opened.create_function(_PREFIX + name, count, self._guard(name, bound))
        return self._opened

    def _guard(self, name: str, call: Callable[..., float]) -> Callable[..., Number]:
        """Return `call` as an SQL function that stores its exception in `_error`.

        sqlite3 replaces the exception by an error without its text. `evaluate` raises the stored exception.
        """

        def run(*values: Any) -> Number:
            self._arguments = values
            if None in values:
                return None
            try:
                if float in map(type, values):
                    self._refuse_overflow()
                result = call(*values)
                return _fit(result) if isinstance(result, int) else result
            except ZeroDivisionError:
                self._error = NoValue("division by zero")
            except (ValueError, OverflowError):
                self._error = NoValue(f"{name} has no value for {', '.join(map(str, values))}")
            except BaseException as error:
                self._error = error
            raise self._error

        return run

    def _refuse_overflow(self) -> None:
        """Raise NoValue if the current expression has no double. Called if SQLite returned a double.

        SQLite computes a double from integers only if an integer overflows.
        """
        expression, values = self._current
        if not expression.has_doubles and float not in map(type, values.values()):
            raise NoValue(_OVERFLOW)

    def _refuse_division(self) -> None:
        """Raise NoValue if the current expression has no NULL. Called if SQLite returned NULL.

        SQLite computes NULL from numbers if it divides by zero, or if the result is not a number.
        """
        expression, values = self._current
        if not expression.has_null and None not in values.values():
            raise NoValue("division by zero, or the result is not a number")

    def problem(self, expression: Expression) -> str:
        """Return the reason why SQLite rejects an expression; empty for a valid expression."""
        connection = self._connection()
        try:
            values = dict.fromkeys(expression.variables)
            connection.execute(f"EXPLAIN SELECT 1 WHERE {expression.sql}", values).close()
        except connection.Error as error:
            return str(error)
        return ""

    def compile(self, expression: Expression) -> Evaluate:
        """Return a function that computes the expression from variables. The function may raise NoValue."""
        connection = self._connection()
        cursor, failure = connection.cursor(), connection.Error
        execute, fetch = cursor.execute, cursor.fetchone
        sql, names = f"SELECT {expression.sql}", [*expression.variables]

        def evaluate(variables: Variables) -> Number:
            try:
                values = {name: number_of(variables[name]) for name in names}
                self._current = expression, values
                execute(sql, values)
                value: Number = fetch()[0]
            except KeyError as error:
                raise NoValue(f"the variable :{error.args[0]} has no value") from None
            except failure as error:
                problem, self._error = self._error, None
                raise problem or NoValue(f"SQLite cannot evaluate the expression: {error}") from None
            if value is None:
                self._refuse_division()
            elif value.__class__ is float:
                self._refuse_overflow()
            return value

        return self._draws(names, evaluate) if _LONE_RANDOM.fullmatch(expression.sql) else evaluate

    def _draws(self, names: list[str], evaluate: Evaluate) -> Evaluate:
        """Return a faster `evaluate` for an expression that is a call of random, such as random(1, :n).

        The range is computed only if one of the variables `names` has changed, so most calls do not need
        SQLite. Values are compared by identity, because 7 == 7.0, but 7 / 2 differs from 7.0 / 2 in SQL.
        """
        stream, absent, first, count = self._stream, object(), 0, 0
        # Variables when SQLite computed the range. No variable is called "", so the first call computes it.
        held: list[tuple[str, object]] = [("", None)]

        def draw(variables: Variables) -> Number:
            nonlocal first, count, held
            for name, value in held:
                if variables.get(name, absent) is not value:
                    break
            else:
                return _draw(stream, first, count)
            drawn = evaluate(variables)
            if drawn is not None:
                first, count = _range(*self._arguments)
                held = [(name, variables[name]) for name in names]
            return drawn

        return draw

    def close(self) -> None:
        if self._opened:
            self._opened.close()
