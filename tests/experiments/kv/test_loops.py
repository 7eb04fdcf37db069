"""Which loop drives a load: chosen, fallen back to, told, and never confused with the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sqlstress.analysis.baseline import check
from sqlstress.analysis.comparison import compare
from sqlstress.engine.session import not_native
from sqlstress.errors import UsageError
from sqlstress.plan import cases_of
from sqlstress.report import Report, from_json, to_json
from sqlstress.report.case import Case
from sqlstress.show.text import report_text
from sqlstress.studies.slices import check_loops
from sqlstress.targets import sqlite
from sqlstress.targets.sqlite.connections import lacks
from tests.example_report import example_report

EXAMPLE = example_report()
TEXT = to_json(EXAMPLE)
LACKING = "nothing was built"


def loop_of(**given: Any) -> str:
    (case,) = cases_of({"concurrency": "1", **given})
    loop: str = case.spec.loop
    return loop


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "lacks_native", lambda driver: LACKING)


def driven(loop: str) -> Report:
    """Return the example report, as if this loop had driven its loads."""
    runs = [
        replace(run, case=replace(run.case, spec=replace(run.case.spec, loop=loop))) for run in EXAMPLE.runs
    ]
    return replace(EXAMPLE, runs=tuple(runs))


@pytest.mark.skipif(lacks("sqlite3") is not None, reason="there is no native loop here")
@pytest.mark.parametrize("driver", ["sqlite3", "apsw", "dry"])
def test_the_native_loop_drives_a_load_of_which_nothing_else_is_said(driver: str) -> None:
    assert loop_of(driver=driver) == loop_of(driver=driver, loop="native") == "native"
    assert loop_of(driver=driver, loop="python") == "python"


@pytest.mark.usefixtures("lacking")
def test_where_there_is_none_python_does_and_it_is_said_why() -> None:
    (case,) = cases_of({"concurrency": "1"})
    assert (case.spec.loop, not_native(case)) == ("python", LACKING)


@pytest.mark.usefixtures("lacking")
def test_what_was_asked_for_and_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=rf"--loop native .*sqlite3: {LACKING}\. Use --loop python\."):
        loop_of(loop="native")


def test_nothing_is_said_of_a_loop_that_was_chosen() -> None:
    (case,) = cases_of({"concurrency": "1", "loop": "python"})
    assert not_native(case) is None
    assert not_native(Case(workload="classic")) is None


def test_a_report_that_does_not_say_it_is_of_python_s_loop() -> None:
    old = from_json(TEXT.replace(',\n      "loop": "python"', ""))
    assert '"loop"' in TEXT
    assert {run.case.spec.loop for run in old.runs} == {"python"}


@pytest.mark.parametrize(("loop", "words"), [("native", "native loop"), ("python", "Python loop")])
def test_the_line_above_the_table_says_which(loop: str, words: str) -> None:
    assert f"; {words};" in " ".join(report_text(driven(loop)).split())


def test_figures_of_both_loops_are_set_in_no_ratio() -> None:
    both = (("A", driven("python")), ("B", driven("native")))
    (reasons,) = {table.reasons(1) for table in compare(both).tables}
    assert reasons == ("what drove the load, the native loop or Python's, differs",)
    with pytest.raises(UsageError, match="what drove the load"):
        check(driven("python"), driven("native"), "tps", 0.1)


def test_an_a_b_test_of_both_loops_is_one_only_where_an_arm_says_so() -> None:
    a, b = (Case(spec=replace(Case().spec, loop=loop)) for loop in ("native", "python"))
    check_loops((a, a), [{}, {}])
    check_loops((a, b), [{"loop": "native"}, {}])
    with pytest.raises(UsageError, match=r'the native loop would drive .* A.*--a "--loop python"'):
        check_loops((a, b), [{}, {}])
    with pytest.raises(UsageError, match='--b "--loop python"'):
        check_loops((b, a), [{}, {}])
