"""A command line, run in this process and judged by what holds whatever it is given."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlstress.cli.commands import run
from tests.cli.conftest import Said
from tests.drawing import examples

MOST_S = 5.0
"""Processor time that a case may take."""
LONGEST = 420
"""Characters of a line of complaint, and what stands before it."""
CODES = frozenset({0, 1, 2, 4})

Drawn = TypeVar("Drawn", bound=Callable[..., None])


class Judge:
    """Runs command lines; counts what became of them."""

    def __init__(self, capture: pytest.CaptureFixture[str], record: Callable[[str, object], None]) -> None:
        self._capture, self.record = capture, record
        self.codes: Counter[int] = Counter()
        """Exit code → how many cases ended with it."""

    def __call__(self, *arguments: str) -> Said:
        """Run a command line: no traceback, a line or two of complaint, nothing that a terminal obeys."""
        began = time.process_time()
        code = run(arguments)
        took_s = time.process_time() - began
        said = Said(code, *self._capture.readouterr())
        self.codes[code] += 1
        assert code in CODES
        assert "did not expect" not in said.err and "Traceback" not in said.out + said.err
        assert (code == 0) == (not said.lines)
        assert len(said.lines) <= 2 and all(len(line) <= LONGEST for line in said.lines)
        assert all(line.isprintable() for line in said.lines + said.out.split("\n"))
        assert took_s < MOST_S, f"{took_s:.1f} s"
        return said

    def cases(self, drawn: st.SearchStrategy[Any], check: Callable[[Any], None], number: int) -> None:
        """Check so many drawn cases, and record how many ended with which exit code."""
        many = settings(max_examples=number, suppress_health_check=list(HealthCheck))
        many(given(drawn)(check))()
        self.record("exit codes", dict(self.codes))


@pytest.fixture
def judge(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_testsuite_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
) -> Judge:
    """Judge command lines in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return Judge(capsys, lambda name, value: record_testsuite_property(f"{request.node.name}: {name}", value))


def amounts(share: float, many: int) -> Callable[[Drawn], Drawn]:
    """Run a test with a share of the usual number of cases, and with many where it is asked for long ones."""

    def marked(test: Drawn) -> Drawn:
        numbers = [pytest.param(examples(share), id="drawn"), pytest.param(many, marks=pytest.mark.long)]
        drawn: Drawn = pytest.mark.hypothesis(pytest.mark.parametrize("number", numbers)(test))
        return drawn

    return marked
