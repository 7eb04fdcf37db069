"""Command lines, run in this process and checked for properties that hold for any input."""

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
"""Limit of the processor time of a case, in seconds."""
LONGEST = 420
"""Maximum length of an error line, with its prefix, in characters."""
CODES = frozenset({0, 1, 2, 4})

Drawn = TypeVar("Drawn", bound=Callable[..., None])


class Judge:
    """Runs command lines and counts their exit codes."""

    def __init__(self, capture: pytest.CaptureFixture[str], record: Callable[[str, object], None]) -> None:
        self._capture, self.record = capture, record
        self.codes: Counter[int] = Counter()
        """Exit code → number of cases."""

    def __call__(self, *arguments: str) -> Said:
        """Run a command line; assert no traceback, at most two error lines, and no control characters."""
        began = time.process_time()
        code = run(arguments)
        took_s = time.process_time() - began
        output = Said(code, *self._capture.readouterr())
        self.codes[code] += 1
        assert code in CODES
        assert "did not expect" not in output.err and "Traceback" not in output.out + output.err
        assert (code == 0) == (not output.lines)
        assert len(output.lines) <= 2 and all(len(line) <= LONGEST for line in output.lines)
        assert all(line.isprintable() for line in output.lines + output.out.split("\n"))
        assert took_s < MOST_S, f"{took_s:.1f} s"
        return output

    def cases(self, drawn: st.SearchStrategy[Any], check: Callable[[Any], None], number: int) -> None:
        """Check `number` drawn cases, and record the number of cases by exit code."""
        examples_settings = settings(max_examples=number, suppress_health_check=list(HealthCheck))
        examples_settings(given(drawn)(check))()
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
    """Parametrize a test with a share of the usual number of cases, and with `many` in long runs."""

    def decorate(test: Drawn) -> Drawn:
        numbers = [pytest.param(examples(share), id="drawn"), pytest.param(many, marks=pytest.mark.long)]
        drawn: Drawn = pytest.mark.hypothesis(pytest.mark.parametrize("number", numbers)(test))
        return drawn

    return decorate
