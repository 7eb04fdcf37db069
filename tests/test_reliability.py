"""Tests of reports/reliability.md, and of what writes it."""

import re
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from tests.reliability import AREAS, PAGE, ROOT, Fault, Result, Watch, difference, main, merged, page, read

KILLED = Fault("workers", "a worker killed", "exit code 4", "tests/test_a.py::test_killed")
STOPPED = Fault("stop", "Ctrl-C", "exit code 130", "tests/test_a.py::test_stopped")
MONDAY = "Linux, 2026-01-01"
NOWHERE = Fault("stop", "Ctrl-C", "exit code 130", "tests/test_b.py::test_gone")


def watched(**ended: tuple[Fault, str]) -> Watch:
    """Return the record of a run of tests with these names."""
    found = Watch()
    for name, (fault, outcome) in ended.items():
        found.faults[name], found.ended[name] = [fault], outcome
    return found


def report(**fields: Any) -> Any:
    return SimpleNamespace(**{"nodeid": "test", "skipped": False, "passed": False, "when": "call", **fields})


@pytest.mark.thorough
def test_page_has_exactly_one_row_per_marker() -> None:
    command = [sys.executable, "-m", "tests.reliability", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    stale = "reports/reliability.md is stale: run python -m tests.reliability PATHS OF THE TESTS"
    assert done.returncode == 0, f"{stale}\n{done.stdout}{done.stderr}"


def test_every_row_of_the_page_states_its_result_and_system() -> None:
    rows = read(PAGE.read_text(encoding="utf-8"))
    assert len(rows) > 20
    for passed, where in rows.values():
        assert re.fullmatch(r"[1-9]\d*|\d+, \d+ skipped: .+", passed)
        assert re.fullmatch(r"\w+, [\d-]+( to [\d-]+)?(; .+)?", where)


def test_page_is_read_back_as_it_was_written() -> None:
    rows = {KILLED: Result("1", MONDAY), STOPPED: Result("0, 2 skipped: no such signal", MONDAY)}
    assert read(page(rows)) == rows


def test_equal_phrases_share_a_row_and_sections_state_their_dates() -> None:
    tuesday = "Linux, 2026-01-02"
    text = page({STOPPED: Result("1", tuesday), NOWHERE: Result("3", MONDAY)})
    assert text.count("\n| Ctrl-C |") == 1
    assert "Run on Linux, 2026-01-01 to 2026-01-02." in text
    assert [result.passed for result in read(text).values()] == ["1", "3"]


def test_markers_without_rows_and_rows_without_markers_are_reported() -> None:
    told = difference(
        Counter([KILLED, STOPPED]), page({STOPPED: Result("1", MONDAY), NOWHERE: Result("1", MONDAY)})
    )
    assert [line[0] for line in told] == ["-", "+"]
    assert "test_gone" in told[0]
    assert "test_killed" in told[1]


def test_changed_phrase_makes_the_page_stale() -> None:
    before = Fault(KILLED.area, "a worker stopped", KILLED.outcome, KILLED.test)
    assert len(difference(Counter([KILLED]), page({before: Result("1", MONDAY)}))) == 2


def test_cases_of_a_test_are_counted_by_result() -> None:
    ran = watched(a=(KILLED, "passed"), b=(KILLED, "skipped: no such signal"), c=(KILLED, "passed"))
    assert dict(ran.results()) == {KILLED: "2, 1 skipped: no such signal"}


def test_faults_that_did_not_run_keep_their_previous_result() -> None:
    ran = watched(a=(KILLED, "passed"))
    before = dict.fromkeys((KILLED, STOPPED, NOWHERE), Result("1", "then"))
    rows = merged(Counter([KILLED, STOPPED]), ran, before, "now")
    assert rows == {KILLED: Result("1", "now"), STOPPED: Result("1", "then")}


def test_marker_without_all_its_tests_has_no_row() -> None:
    ran = watched(a=(KILLED, "passed"))
    assert merged(Counter([KILLED, KILLED]), ran, {}, "now") == {}


def test_page_is_not_written_if_a_test_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    before = PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(pytest, "main", lambda *_, **__: pytest.ExitCode.TESTS_FAILED)
    with pytest.raises(SystemExit, match=r"is not written: pytest ended with .*TESTS_FAILED"):
        main([])
    assert PAGE.read_text(encoding="utf-8") == before


def test_skipped_and_passed_tests_are_recorded() -> None:
    watch = Watch()
    watch.pytest_runtest_logreport(report(nodeid="a", when="setup", passed=True))
    watch.pytest_runtest_logreport(report(nodeid="b", skipped=True, longrepr=("f", 1, "Skipped: no signals")))
    watch.pytest_runtest_logreport(report(nodeid="c", passed=True))
    watch.pytest_runtest_logreport(report(nodeid="c", when="teardown", passed=True))
    assert watch.ended == {"b": "skipped: no signals", "c": "passed"}


@pytest.mark.parametrize(
    ("area", "injected", "outcome"),
    [("worker", "killed", "told"), ("workers", "", "told"), ("workers", "a | b", "told"), ("stop", "a", "")],
)
def test_marker_with_table_syntax_is_refused(area: str, injected: str, outcome: str) -> None:
    with pytest.raises(ValueError, match=r"test_a.py::test_a: "):
        Fault(area, injected, outcome, "test_a.py::test_a")


def test_every_area_has_a_heading_of_its_own() -> None:
    assert len({*AREAS.values()}) == len(AREAS)
