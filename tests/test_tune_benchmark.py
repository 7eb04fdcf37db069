"""The benchmark of tune: made-up surfaces, what it writes, and how it judges."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from random import Random

import pytest

from benchmarks import tune
from benchmarks.tune import NOISES, SIZES, Found, simulated, surface, table


def test_a_surface_says_the_same_of_a_row_again_and_nothing_of_the_default() -> None:
    one = surface(Random(4))
    rows = list(product(*map(range, SIZES)))
    assert [one(row) for row in rows] == [one(row) for row in rows]
    assert one((0,) * len(SIZES)) == 0
    assert len({one(row) for row in rows}) > 20


def test_a_search_that_is_made_up_loses_nothing_beyond_the_grid() -> None:
    found = simulated("quiet", 0.02, 3)
    assert found.loss >= 0
    assert found.of_default >= found.loss - 0.05
    assert 100 <= found.slices <= 135


def test_a_loss_of_more_than_a_twentieth_is_not_near() -> None:
    near, far = math.log(1 / 0.951), math.log(1 / 0.949)
    text = table([Found("x", near, 0.2, 100), Found("x", far, 0.2, 110), Found("y", 0.0, 0.0, 90)])
    assert "| x | 2 | 50.0% | 5.0% | 18.1% | 105 |" in text
    assert "| y | 1 | 100.0% | 0.0% | 0.0% | 90 |" in text


def test_it_writes_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune.main(["--searches", "1", "--output", str(tmp_path / "tune.md")]) == 0
    found = json.loads((tmp_path / "tune.json").read_text(encoding="utf-8"))
    assert [one["setting"] for one in found] == list(NOISES)
    text = (tmp_path / "tune.md").read_text(encoding="utf-8")
    assert text.startswith("# tune: how near")
    assert "| noisy | 1 |" in text
