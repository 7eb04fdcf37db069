"""Values of expressions, compared with the real pgbench and with plain Python; places of mistakes."""

import json
import math
import operator
import re
from collections.abc import Callable
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.experiments.sql.expressions import (
    LEAST,
    MOST,
    Evaluate,
    Evaluator,
    NoValue,
    Number,
    Value,
    Variables,
    read,
)
from tests.drawing import CHARACTERS
from tests.example_report import assert_golden_texts

RECORDED: dict[str, str] = json.loads(
    Path(__file__).with_name("pgbench_expressions.json").read_text(encoding="utf-8")
)["values"]
"""Written by record_pgbench.py."""
ERROR = "error"
OTHERWISE = {
    # An overflow and a division by zero, where pgbench goes on.
    "abs(-9223372036854775808)": ERROR,
    "5.0 / 0": ERROR,
    # SQL's rules for NULL.
    "null and false": "int 0",
    "0 - null and -3 = (double(7)) is null": "int 0",
    "null % 1e3 or not (4611686018427387904) = null or -3": "int 1",
    "null / true or null or 2.5 > 1 and 0 or 2.5": "int 1",
    # SQLite truncates doubles before %, and the result is a double.
    "7.5 % 2": "double 1",
    "+(4611686018427387904 % -0.5 - null)": "null",
    # -x is not 0 - x.
    "-0.0": "double -0",
}
"""Differences from pgbench, except for truth as a number."""
TRUTH = re.compile(r"\b(true|false|and|or|not|is|case)\b|[<>=]")

EVALUATOR = Evaluator(Random(1))
BASE: dict[str, Value] = {"default_seed": 1}


def value(text: str, **variables: Value) -> Number:
    return EVALUATOR.compile(read("x.sql", text, 0, len(text)))({**BASE, **variables})


def debug_text(text: str) -> str:
    """Return the value as pgbench's debug() shows it."""
    try:
        number = value(text)
    except (UsageError, NoValue):
        return ERROR
    if number is None:
        return "null"
    if isinstance(number, int):
        return f"int {number}"
    return "double Infinity" if number == math.inf else f"double {number:.15g}"


def test_expressions_have_the_values_of_the_real_pgbench() -> None:
    recorded = {
        text: answer.replace("boolean true", "int 1").replace("boolean false", "int 0")
        for text, answer in RECORDED.items()
        # pgbench refuses truth as a number and a number as truth: SQLite does not.
        if answer != ERROR or not TRUTH.search(text)
    }
    expected = {**recorded, **OTHERWISE}
    assert {text: debug_text(text) for text in expected} == expected
    assert len(recorded) > 150
    assert {answer.split()[0] for answer in recorded.values()} == {"int", "double", "null", ERROR}


WRONG = [
    *("1 +", "", "(1", "1 2", "x + 1", "1 + sin(2)", "random(1)", "random()", "6 & 3", "hash()", "1, 2"),
    *("least()", "case 1 end", "case when 1 else 2 end", "case when 1 then 2", "1 end", "(SELECT 1)", "'a'"),
    *("9" * 5000, "1e999"),
]


def refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read("x.sql", text, 0, len(text))
    return str(caught.value)


def test_mistakes_are_reported_with_their_place() -> None:
    assert_golden_texts("expressions-refused.txt", {repr(text)[:40]: refused(text) for text in WRONG})


@pytest.mark.parametrize(
    "text", ["-" * 5000 + "1", "1" + "+ 1" * 5000, "(" * 99 + "1" + "+ 1)" * 99, "(" * 5000]
)
def test_deeply_nested_expression_has_a_value_or_a_place(text: str) -> None:
    # SQLite's limit depends on its version.
    try:
        assert value(text) in (1, 5001, 100)
    except UsageError as error:
        assert str(error).startswith("x.sql:1:1: SQLite refuses the expression: ")


@given(st.text(CHARACTERS, max_size=40) | st.text("0123456789+-*/%<>=() .:xandornulcsewh,#|&~", max_size=40))
def test_any_text_has_a_value_or_an_error(text: str) -> None:
    try:
        value(text, x=1)
    except (UsageError, NoValue) as error:
        assert str(error)


# A reference implementation in plain Python.


class Tree(NamedTuple):
    """An expression, and a function that returns its value or raises Overflow or ZeroDivisionError."""

    text: str
    value: Callable[[], Number]


class Overflow(Exception):
    """An integer does not fit into 64 bits."""


def in_c(number: float) -> float:
    if math.isnan(number):
        raise ZeroDivisionError  # as for SQLite: both are NULL
    if number.__class__ is int and not LEAST <= number <= MOST:
        raise Overflow
    return number


def quotient(left: float, right: float) -> float:
    either_double = isinstance(left, float) or isinstance(right, float)
    return left / right if either_double else math.trunc(Fraction(left) / Fraction(right))


def rest(left: float, right: float) -> float:
    first, second = nearest(left), nearest(right)
    return first - second * math.trunc(Fraction(first, second))


def rest_as_in_sqlite(left: float, right: float) -> float:
    either_double = isinstance(left, float) or isinstance(right, float)
    return float(rest(math.trunc(left), math.trunc(right))) if either_double else rest(left, right)


def nearest(number: float) -> int:
    if not math.isfinite(number):
        raise Overflow
    rounded = round(number)
    in_c(rounded)
    return rounded


def lowest(left: float, right: float) -> float:
    either_double = isinstance(left, float) or isinstance(right, float)
    return min(float(left), float(right)) if either_double else min(left, right)


def applied(call: Callable[..., float], *operands: Tree) -> Callable[[], Number]:
    def run() -> Number:
        values = [operand.value() for operand in operands]
        return None if any(value is None for value in values) else in_c(call(*values))

    return run


BINARY: dict[str, Callable[..., float]] = {
    "({} + {})": operator.add,
    "({} - {})": operator.sub,
    "{} * ({})": operator.mul,
    "{} / ({})": quotient,
    "{} % ({})": rest_as_in_sqlite,
    "mod({}, {})": rest,
    "least({}, {})": lowest,
    "({} < {})": lambda left, right: int(left < right),
    "({} = {})": lambda left, right: int(left == right),
    "({} <> {})": lambda left, right: int(left != right),
}
UNARY: dict[str, Callable[..., float]] = {
    "-({})": lambda number: 0 - number,
    "abs({})": abs,
    "int({})": nearest,
    "double({})": float,
}
VARIABLES: dict[str, Number] = {"a": 7, "least": LEAST, "most": MOST, "none": None, "half": 0.5}


def leaves() -> st.SearchStrategy[Tree]:
    integers = st.integers(-20, 20) | st.integers(LEAST, MOST)
    numbers = integers.map(lambda number: Tree(f"({number})", lambda: number))
    doubles = st.sampled_from([0.0, 2.5, 3.5, 1e300]).map(lambda number: Tree(f"{number}", lambda: number))
    names = st.sampled_from([*VARIABLES]).map(lambda name: Tree(f":{name}", lambda: VARIABLES[name]))
    return numbers | doubles | names


def grown(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    def binary(form: str, left: Tree, right: Tree) -> Tree:
        return Tree(form.format(f"({left.text})", right.text), applied(BINARY[form], left, right))

    def unary(form: str, operand: Tree) -> Tree:
        return Tree(form.format(operand.text), applied(UNARY[form], operand))

    def case(when: Tree, then: Tree, otherwise: Tree) -> Tree:
        text = f"case when {when.text} then {then.text} else {otherwise.text} end"
        return Tree(text, lambda: then.value() if when.value() else otherwise.value())

    return (
        st.builds(binary, st.sampled_from([*BINARY]), inner, inner)
        | st.builds(unary, st.sampled_from([*UNARY]), inner)
        | st.builds(case, inner, inner, inner)
    )


HIDES_ZERO_DIVISION = re.compile(r"[<=>]|case|:none")
HIDES_OVERFLOW = re.compile(r"[<=>.]|case|:none|:half|double|e\+")


@given(st.recursive(leaves(), grown, max_leaves=8))
def test_expressions_have_the_values_of_plain_python(tree: Tree) -> None:
    try:
        expected = tree.value()
    except (Overflow, ZeroDivisionError) as error:
        hides = HIDES_OVERFLOW if isinstance(error, Overflow) else HIDES_ZERO_DIVISION
        with suppress(NoValue) if hides.search(tree.text) else pytest.raises(NoValue):
            value(tree.text, **VARIABLES)
        return
    number = value(tree.text, **VARIABLES)
    assert (type(number), number) == (type(expected), expected)


@given(st.sampled_from(["+", "-", "*", "/", "%"]), st.integers(LEAST, MOST), st.integers(LEAST, MOST))
def test_integers_have_the_values_of_c_or_an_error(sign: str, left: int, right: int) -> None:
    try:
        expected: Number = in_c(BINARY[next(form for form in BINARY if sign in form)](left, right))
    except (Overflow, ZeroDivisionError):
        expected = None
    for text in (f":a {sign} :b", f"{left} {sign} ({right})", f"least(:a {sign} :b, {MOST})"):
        if expected is None:
            with pytest.raises(NoValue):
                value(text, a=left, b=right)
        else:
            assert value(text, a=left, b=right) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("9223372036854775808", "an integer does not fit into 64 bits"),
        (":most + 1", "an integer does not fit into 64 bits"),
        ("(:most + 1) / 10", "an integer does not fit into 64 bits"),
        ("int((:most + 1) / 10)", "an integer does not fit into 64 bits"),
        ("random(1, :most * 2)", "an integer does not fit into 64 bits"),
        ("case when :none is null then :most + 1 else 0 end", "an integer does not fit into 64 bits"),
        ("abs(:least)", "an integer does not fit into 64 bits"),
        ("1 / (:a - 7)", "division by zero"),
        ("1 / 0 + 5", "division by zero"),
        ("least(1 % 0, 5)", "division by zero"),
        ("case when :a is null then 0 else 1 / 0 end", "division by zero"),
        ("case when :a is not null then 1 / 0 else 0 end", "division by zero"),
        ("1 / 0 > 5", "division by zero"),
        ("mod(1, 0)", "division by zero"),
    ],
)
def test_overflow_and_a_division_by_zero_are_errors(text: str, error: str) -> None:
    with pytest.raises(NoValue, match=error):
        value(text, **VARIABLES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":most + 1 > :most", 1),
        (":most + 1 + 0.5", 2.0**63),
        ("case when 1 / 0 > 0 then 1 else 2 end", 2),
        ("1 / 0 is null", 1),
        (":a <> 7 and 1 / (:a - 7) > 0", 0),
        (":a = 7 or 1 / (:a - 7) > 0", 1),
        (":none / 0", None),
    ],
)
def test_conditions_and_doubles_and_null_go_on_as_in_sqlite(text: str, expected: Number) -> None:
    assert value(text, **VARIABLES) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2 + 3 * 4", 14), ("7 - 2 - 1", 4), ("100 / 10 / 5 * 3 % 4", 2), ("-2 + -3", -5), ("- - 5 * 2", 10)],
)
def test_arithmetic_has_the_precedence_of_pgbench(text: str, expected: int) -> None:
    assert value(text) == expected


@pytest.mark.parametrize("size", [1, 2, 3, 8, 97, 1000])
def test_permute_moves_each_integer_to_another_place(size: int) -> None:
    text = "permute(:n, :size, :seed)"
    permute = EVALUATOR.compile(read("x.sql", text, 0, len(text)))
    orders = [
        [permute({"n": n, "size": size, "seed": seed, **BASE}) for n in range(size)] for seed in (5, -5)
    ]
    assert [sorted(order) for order in orders] == [list(range(size))] * 2  # type: ignore[type-var]
    assert size < 8 or (orders[0] != orders[1] and orders[0] != list(range(size)))
    assert permute({"n": size, "size": size, "seed": 5, **BASE}) == orders[0][0]


def test_error_does_not_affect_the_next_expression() -> None:
    with pytest.raises(NoValue, match="division by zero"):
        value("1 / 0")
    with pytest.raises(NoValue, match="ln has no value for 0"):
        value("ln(0)")
    assert value("1 / 1") == 1


def test_hash_fnv1a_has_the_value_of_pgbench() -> None:
    assert value("hash_fnv1a(10, 5432)") == -7793829335365542153


def test_default_seed_is_used_if_a_script_gives_none() -> None:
    for name in ("hash(5", "hash_murmur2(5", "hash_fnv1a(5", "permute(5, 1000"):
        assert value(f"{name})", default_seed=8) == value(f"{name}, 8)") != value(f"{name}, 9)")


@pytest.mark.parametrize(
    ("held", "expected"), [("7", 8), (" -2 ", -1), ("2.5", 3.5), ("null", None), (1.5, 2.5), (None, None)]
)
def test_text_in_a_variable_is_read_as_a_number(held: Value, expected: Value) -> None:
    assert value(":x + 1", x=held) == expected


@pytest.mark.parametrize(
    ("text", "held"),
    [
        *((":x + 1", held) for held in ("", "abc", b"7", "9" * 30 + "x")),
        (":x + 1", math.nan),
        *((text, 1) for text in (":y", "sqrt(-1)", "ln(0)", "exp(1e6)", "pow(0, -1)", "permute(1, 0)")),
    ],
)
def test_expression_without_a_value_raises(text: str, held: Value) -> None:
    with pytest.raises(NoValue):
        value(text, x=held)


@pytest.mark.parametrize(
    "text",
    [
        "random(:a, :b)",
        "random_gaussian(:a, :b, 2.5)",
        "random_exponential(:a, :b, 3.0)",
        "random_zipfian(:a, :b, 1.01)",
        "random_zipfian(:a, :b, 3)",
    ],
)
@given(a=st.integers(-50, 50), width=st.integers(0, 9))
def test_random_numbers_lie_within_their_bounds(text: str, a: int, width: int) -> None:
    assert all(a <= value(text, a=a, b=a + width) <= a + width for _ in range(20))  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    [
        "random(0, 7 / :x)",
        "random(:x, 5 * :x + 1e1)",
        "random(1, 9 + :most * :x)",
        "random(random(0, :x), 9)",
        "random(0, :x) + random(0, 99)",
    ],
)
@given(st.lists(st.sampled_from([1, 2, 2.0, True, "2", "x", None, -3, 2**62, "absent"])))
@example([*[2, 2.0] * 9, None, "absent"])
def test_random_follows_its_variables(text: str, held: list[Value]) -> None:
    expression = read("x.sql", text, 0, len(text))
    with closing(Evaluator(Random(1))) as kept, closing(Evaluator(Random(1))) as fresh:
        draw = kept.compile(expression)
        for x in held:
            variables: Variables = {"most": MOST} if x == "absent" else {"most": MOST, "x": x}
            assert result(draw, variables) == result(fresh.compile(expression), variables)


def result(evaluate: Evaluate, variables: Variables) -> Number | str:
    try:
        return evaluate(variables)
    except NoValue as error:
        return str(error)


@pytest.mark.parametrize("text", ["random(1, 9)", "Random(:x, 9 * :x)", "random(-:x,\\\n 1e3)"])
def test_random_needs_sqlite_only_for_new_bounds(text: str) -> None:
    evaluator = Evaluator(Random(1))
    draw = evaluator.compile(read("x.sql", text, 0, len(text)))
    draw({"x": 1})
    evaluator.close()
    assert len({draw({"x": 1}) for _ in range(100)}) > 5


def share_of_first(text: str, draws: int = 4000) -> float:
    draw = Evaluator(Random(1)).compile(read("x", text, 0, len(text)))
    return sum(draw({}) == 1 for _ in range(draws)) / draws


def test_distributions_have_the_shapes_of_pgbench() -> None:
    """The expected shares follow from the formulas of pgbench's documentation."""
    assert share_of_first("random(1, 10)") == pytest.approx(0.1, abs=0.02)
    exponential = (1 - math.exp(-0.5)) / (1 - math.exp(-5))
    assert share_of_first("random_exponential(1, 10, 5.0)") == pytest.approx(exponential, abs=0.03)
    zipfian = 1 / sum(1 / rank**1.5 for rank in range(1, 11))
    assert share_of_first("random_zipfian(1, 10, 1.5)") == pytest.approx(zipfian, abs=0.03)
    middle = share_of_first("random_gaussian(-3, 5, 2.5)")
    normal = math.erf(2.5 / 9 / math.sqrt(2)) / math.erf(2.5 / math.sqrt(2))
    assert middle == pytest.approx(normal, abs=0.03)
