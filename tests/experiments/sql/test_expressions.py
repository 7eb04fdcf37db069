"""Expressions are worth what pgbench says they are, and what is wrong with one is told where it stands."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.experiments.sql.expressions import (
    LEAST,
    MOST,
    NoValue,
    Reckoner,
    Value,
    divided,
    read,
    remainder,
)
from tests.drawing import CHARACTERS
from tests.example_report import assert_golden_texts

RECORDED: dict[str, str] = json.loads(
    Path(__file__).with_name("pgbench_expressions.json").read_text(encoding="utf-8")
)["values"]
"""Written by record_pgbench.py."""
OTHERWISE = dict.fromkeys(("abs(-9223372036854775808)", "5.0 / 0", "-(2.5 * 2) / int(2 - 2.5)"), "error")
"""What has no value, and pgbench goes on with: an overflow, infinity."""


def value(text: str, **variables: Value) -> Value:
    compiled = Reckoner(Random(1), {}).expression(read("x.sql", text, 0, len(text)))
    return compiled({"default_seed": 1, **variables})


def shown(text: str) -> str:
    """Return what pgbench's debug() would say."""
    try:
        found = value(text)
    except (UsageError, NoValue):
        return "error"
    match found:
        case None:
            return "null"
        case bool():
            return f"boolean {str(found).lower()}"
        case int():
            return f"int {found}"
    number = float(str(found))
    return "double Infinity" if number == math.inf else f"double {number:.15g}"


def test_each_expression_is_worth_what_the_real_pgbench_said() -> None:
    expected = {**RECORDED, **OTHERWISE}
    assert {text: shown(text) for text in expected} == expected
    kinds = {one.split()[0] for one in RECORDED.values()}
    assert len(RECORDED) > 300 and kinds == {"int", "double", "boolean", "null", "error"}


WRONG = [
    *("1 +", "", "(1", "1 2", "x + 1", "1 + sin(2)", "random(1)", "1 + permute(0, 9)", "6 & 3", "hash()"),
    *("least()", "1 is 2", "case 1 end", "case when 1 else 2 end", "1 < 2 < 3"),
    *("9" * 5000, "(" * 5000, "-" * 5000 + "1"),
]


def refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read("x.sql", text, 0, len(text))
    return str(caught.value)


def test_what_is_wrong_is_told_with_its_place_and_what_was_expected() -> None:
    assert_golden_texts("expressions-refused.txt", {repr(text)[:40]: refused(text) for text in WRONG})


@given(st.text(CHARACTERS, max_size=40) | st.text("0123456789+-*/%<>=() .:xandornulcsewh,#|&~", max_size=40))
def test_whatever_stands_there_it_has_a_value_or_an_error_of_ours(text: str) -> None:
    try:
        value(text, x=1)
    except (UsageError, NoValue) as error:
        assert str(error)


@given(st.integers(LEAST, MOST), st.integers(LEAST, MOST))
def test_division_is_that_of_c(left: int, right: int) -> None:
    if right == 0 or (left, right) == (LEAST, -1):
        with pytest.raises(NoValue):
            divided(left, right)
        return
    quotient, rest = divided(left, right), remainder(left, right)
    assert quotient * right + rest == left and abs(rest) < abs(right) and (rest == 0 or rest * left > 0)


@pytest.mark.parametrize(
    ("held", "expected"), [("7", 8), (" -2 ", -1), ("2.5", 3.5), ("null", None), (1.5, 2.5), (None, None)]
)
def test_a_text_in_a_variable_is_read_as_the_number_that_it_is(held: Value, expected: Value) -> None:
    assert value(":x + 1", x=held) == expected


@pytest.mark.parametrize(
    ("text", "held"),
    [
        *((":x + 1", held) for held in ("", "abc", b"7", "9" * 30 + "x")),
        *((text, 1) for text in (":y", "sqrt(-1)", "ln(0)", "exp(1e6)", "pow(0, -1)")),
    ],
)
def test_what_has_no_value_says_so(text: str, held: Value) -> None:
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
def test_what_is_drawn_lies_within_its_bounds(text: str, a: int, width: int) -> None:
    assert all(a <= value(text, a=a, b=a + width) <= a + width for _ in range(20))  # type: ignore[operator]


def share_of_first(text: str, draws: int = 4000) -> float:
    draw = Reckoner(Random(1), {}).expression(read("x", text, 0, len(text)))
    return sum(draw({}) == 1 for _ in range(draws)) / draws


def test_distributions_have_the_shapes_that_pgbench_documents() -> None:
    """The expected shares follow from the formulas of pgbench's documentation."""
    assert share_of_first("random(1, 10)") == pytest.approx(0.1, abs=0.02)
    exponential = (1 - math.exp(-0.5)) / (1 - math.exp(-5))
    assert share_of_first("random_exponential(1, 10, 5.0)") == pytest.approx(exponential, abs=0.03)
    zipfian = 1 / sum(1 / rank**1.5 for rank in range(1, 11))
    assert share_of_first("random_zipfian(1, 10, 1.5)") == pytest.approx(zipfian, abs=0.03)
    middle = share_of_first("random_gaussian(-3, 5, 2.5)")
    normal = math.erf(2.5 / 9 / math.sqrt(2)) / math.erf(2.5 / math.sqrt(2))
    assert middle == pytest.approx(normal, abs=0.03)
