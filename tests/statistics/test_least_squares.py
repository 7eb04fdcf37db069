"""Least squares, held against SciPy's and NumPy's."""

from __future__ import annotations

import math
from random import Random

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.search import fit


@given(st.integers(1, 6), st.integers(1, 20), st.integers(0, 2**32))
def test_it_finds_what_scipy_finds(width: int, more: int, seed: int) -> None:
    from scipy import linalg  # every worker of the suite reads this file: it takes half a second

    draw = Random(seed)
    rows = [[draw.gauss(0, 1) for _ in range(width)] for _ in range(width + more)]
    values = [draw.gauss(0, 1) for _ in rows]
    found = fit(rows, values)
    expected, _, rank, _ = linalg.lstsq(numpy.array(rows), numpy.array(values))
    assert rank == width
    assert found.degrees == more
    assert found.coefficients == pytest.approx(list(expected), rel=1e-6, abs=1e-9)
    left = numpy.array(values) - numpy.array(rows) @ expected
    matrix = numpy.linalg.inv(numpy.array(rows).T @ numpy.array(rows))
    errors = numpy.sqrt(numpy.diag(matrix) * (left @ left) / more)
    assert found.errors == pytest.approx(list(errors), rel=1e-5, abs=1e-9)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=2), st.integers(0, 2**32))
def test_what_has_no_noise_is_found_exactly(line: list[float], seed: int) -> None:
    draw = Random(seed)
    rows = [[1.0, draw.uniform(-1, 1)] for _ in range(6)]
    found = fit(rows, [line[0] + line[1] * x for _, x in rows])
    assert found.coefficients == pytest.approx(line, abs=1e-6)
    assert found.errors == pytest.approx((0.0, 0.0), abs=1e-6)


def test_columns_that_are_nearly_alike_cost_no_digits() -> None:
    rows = [[1.0, 1.0 + 1e-6 * x] for x in range(8)]
    found = fit(rows, [2.0 * a + 3.0 * b for a, b in rows])
    assert found.coefficients == pytest.approx((2.0, 3.0), rel=1e-4)


def test_as_many_rows_as_columns_leave_no_error_to_be_told() -> None:
    found = fit([[1.0, 0.0], [1.0, 1.0]], [1.0, 3.0])
    assert found.coefficients == pytest.approx((1.0, 2.0))
    assert (found.degrees, found.errors) == (0, (0.0, 0.0))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[1.0, 2.0]],
        [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]],
        [[1.0, 0.0], [2.0, 0.0]],
        [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]],
    ],
    ids=["nothing", "fewer rows", "twice the other", "nothing in it", "adds up to another"],
)
def test_what_is_not_determined_is_refused(rows: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"fewer rows|follows"):
        fit(rows, [math.pi] * len(rows))
