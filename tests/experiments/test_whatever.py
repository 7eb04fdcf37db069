"""An experiment shows its cases whatever their figures, in 80 columns."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.experiments.classics.spec import (
    ID_TYPES,
    METHOD_NAMES,
    PHASES,
    SCHEMAS,
    Cycling,
    Method,
    Picks,
)
from sqlstress.report import Check, Run, Verdict
from sqlstress.report.case import Case, Settings
from sqlstress.show.markdown import report_markdown
from sqlstress.show.text import WIDTH, report_text
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS, Series
from tests.drawing import examples
from tests.example_report import example_report
from tests.strategies import by_type, dataclass_strategy, trials


def names_or_unknown(*names: str) -> st.SearchStrategy[str]:
    return st.sampled_from((*names, "of another version"))


SPECS = {
    "cycles": by_type(Cycling),
    "keys": dataclass_strategy(Picks, schema=names_or_unknown(*SCHEMAS), id_type=names_or_unknown(*ID_TYPES)),
    "methods": dataclass_strategy(
        Method,
        phase=names_or_unknown(*PHASES),
        name=names_or_unknown(*METHOD_NAMES),
        scale=st.sampled_from((0, 1, 100, 3000, 1_000_000)),
    ),
}
NAMES = st.sampled_from((STATEMENTS, BEGIN_AND_COMMIT, WAL_FRAMES, CHECKPOINTED_FRAMES, WAL_RESTARTS))
VALUES = st.lists(st.integers(0, 10**13), min_size=1, max_size=9).map(tuple)
RATES = st.sampled_from((1234.5, 612_193.6, 7e15, 1e-300, float("inf"), float("nan"), 0.0, -1.0))


def cases_of(workload: str) -> st.SearchStrategy[Case]:
    return st.builds(
        Case,
        workload=st.just(workload),
        driver=st.sampled_from(("peewee", "sqlite3", "apsw")),
        concurrency=st.sampled_from((1, 2, 4, 1024)),
        settings=st.sampled_from((Settings(), Settings("delete"))) | by_type(Settings),
        spec=SPECS[workload],
    )


measured = st.builds(
    replace,
    trials,
    error=st.none(),
    outcome=st.sampled_from(("done", "done", "timeout", "limit", "of another version")),
    rows_per_s=RATES,
    series=st.lists(
        st.builds(Series, NAMES, st.just("ns"), VALUES, worker=st.sampled_from((1, 2))), max_size=5
    ).map(tuple),
    verdict=st.sampled_from(("ok", "ok", "failed")).map(lambda status: Verdict((Check("rows", status, 9),))),
)
passes = st.lists(measured, min_size=1, max_size=2).map(tuple)


@pytest.mark.thorough
@pytest.mark.parametrize("workload", SPECS)
@settings(max_examples=examples(0.25))
@given(st.data())
def test_whatever_the_figures_they_are_shown(workload: str, data: st.DataObject) -> None:
    cases = cases_of(workload)
    runs = st.builds(Run, cases, passes) | st.builds(Run, cases, skipped=st.none() | st.just("timed out"))
    report = replace(example_report(), runs=tuple(data.draw(st.lists(runs, min_size=4, max_size=9))))
    text = report_text(report)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert report_markdown(report)
    assert not re.search(r"\bnan\b|\binf\b", text)
