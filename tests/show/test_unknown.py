"""A report of an unknown experiment is shown as such, with what all experiments have in common."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.experiment import EXPERIMENTS
from sqlstress.report import from_json, to_json
from sqlstress.show.formats import FORMATS
from sqlstress.show.github import summary, workflow_commands
from sqlstress.show.markdown import comparison_markdown
from sqlstress.show.text import WIDTH, comparison_text, report_text
from tests.analysis.comparison.sides import comparison
from tests.drawing import CHARACTERS, examples
from tests.hostile.formats import CHECKS
from tests.hostile.texts import TEXTS
from tests.unknown_report import SCRIPT, unknown_plain, unknown_report

REPORT = unknown_report(script=SCRIPT, users=7)
OF_KV = re.compile(r"% gets|int keys|byte values|read.ratio|key.space|checkpointer")


COMPARED = comparison(REPORT, REPORT)
SHOWN = {
    **{name: render(REPORT) for name, render in FORMATS.items()},
    "text": report_text(REPORT),
    "summary": summary(REPORT),
    "compare": comparison_text(COMPARED),
    "compare as Markdown": comparison_markdown(COMPARED),
    "compare as HTML": FORMATS["html"](REPORT, REPORT),
}


@pytest.mark.parametrize("name", SHOWN)
def test_every_format_names_the_experiment_and_says_nothing_of_kv(name: str) -> None:
    assert "graph" in re.sub(r"sqlstress|sqlite", "", SHOWN[name])
    assert not OF_KV.search(SHOWN[name])


def test_the_text_says_that_it_is_not_known_and_what_it_has_of_its_own() -> None:
    text = " ".join(SHOWN["text"].split())
    assert "The experiment 'graph' is unknown to this version of sqlstress" in text
    assert 'have in common: not its own script {"statements": ["SELECT 1"' in text
    assert "Lock waits up to" in report_text(unknown_report())
    assert max(map(len, SHOWN["text"].splitlines())) <= WIDTH


def test_its_table_tells_layouts_and_processes_apart() -> None:
    rows = [line.split()[:2] for line in SHOWN["text"].splitlines() if line.endswith(" ok")]
    assert rows == [[files, count] for files in ("1", "20") for count in ("1", "2", "4", "8")]


def test_its_csv_has_the_columns_that_all_have() -> None:
    (row, *_) = csv.DictReader(io.StringIO(SHOWN["csv"]))
    assert (row["workload"], row["tps"], row["concurrency"]) == ("graph", "11700.0", "1")
    assert not [name for name in row if OF_KV.search(name) or "script" in name]


def test_trackers_know_its_cases_by_what_they_say() -> None:
    names = list(json.loads(SHOWN["bmf"]))
    assert names[0].startswith('graph: 1 bucket, 1 process, script={"statements": ["SELECT 1"')
    other = json.loads(FORMATS["bmf"](unknown_report(users=8)))
    assert next(iter(other)) == "graph: 1 bucket, 1 process, users=8 (Linux x86_64)"


def test_its_keys_are_kept_when_it_is_saved_again() -> None:
    text = to_json(REPORT)
    assert json.loads(text) == unknown_plain(script=SCRIPT, users=7)
    assert from_json(text) == REPORT
    assert to_json(from_json(text)) == text


def test_another_load_of_its_own_bars_a_ratio() -> None:
    other = unknown_report(script=SCRIPT, users=8)
    text = comparison_text(comparison(REPORT, other))
    assert "NOT COMPARABLE with A: B." in text and "B/A" not in text
    assert "- Load. A: users 7. B: users 8.\n" in text
    text = comparison_text(comparison(unknown_report(users=7), unknown_report(), anyway=True))
    assert "- Load. A: users 7. B: no users.\n" in text and " B/A" in text


def test_loads_that_differ_late_differ() -> None:
    one, other = (unknown_report(script="SELECT 1" * 20 + end) for end in "ab")
    text = " ".join(comparison_text(comparison(one, other)).split())
    assert re.search(r"- Load\. A: script .{10,60} \(1\)\. B: script .{10,60} \(2\)\. ", text)


def test_another_experiment_stands_in_no_table_with_it() -> None:
    text = comparison_text(comparison(REPORT, unknown_report(workload="rows", script=SCRIPT, users=7)))
    assert "The reports have no case in common." in text


def test_what_could_not_be_written_again_is_not_read() -> None:
    deep: Any = 1
    for _ in range(30):
        deep = [deep]
    wrong = {"nested too deeply": deep, "more than 64 bits": 2**70, "surrogate pair": "\ud800", "NaN": 1e999}
    for reason, value in wrong.items():
        text = json.dumps(unknown_plain(script={"a": value})).replace("Infinity", "1e999")
        with pytest.raises(UsageError, match=rf"runs\[0\]\.case\.script: .*{reason}"):
            from_json(text)


hostile_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(CHARACTERS) | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(CHARACTERS) | st.sampled_from(TEXTS), inner),
    max_leaves=8,
)
strange_names = (st.text(CHARACTERS) | st.sampled_from(TEXTS)).filter(lambda name: name not in EXPERIMENTS)


@settings(max_examples=examples(0.4))
@given(strange_names, st.dictionaries(st.text(CHARACTERS, min_size=1), hostile_values, max_size=3))
def test_whatever_it_says_of_itself_it_is_shown_or_refused(workload: str, own: dict[str, Any]) -> None:
    common = unknown_plain(runs=2)["runs"][0]["case"]
    own = {name: value for name, value in own.items() if name not in common}
    try:
        report = from_json(json.dumps(unknown_plain(workload=workload, runs=2, **own)))
    except UsageError as error:
        assert len(str(error)) < 260 and str(error).isprintable()
        return
    assert from_json(to_json(report)) == report
    assert json.loads(to_json(report))["runs"][0]["case"] == {**common, "workload": workload, **own}
    for name, render in FORMATS.items():
        CHECKS[name](render(report))
    CHECKS["txt"](report_text(report))
    assert max(map(len, report_text(report).splitlines())) <= WIDTH
    assert list(workflow_commands(report)) == []
    CHECKS["txt"](comparison_text(comparison(report, report)))
