"""The search for the highest rate through the command line: real windows, short ones."""

import shutil
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import sqlstress
from sqlstress.engine.trial import TrialRunner
from sqlstress.report import Trial
from sqlstress.report.case import Case
from sqlstress.studies import limit
from tests.cli.conftest import Cli, saved, valid
from tests.example_report import example_report
from tests.pages import ROOT
from tests.rate_report import late, rate_trial

CAPACITY = 2_000
OPTIONS = ("limit", "-o", "limit.json", "--no-progress", "--dir", ".")


class Windows:
    """Made-up windows of a store with a limited rate of operations; one of them may be interrupted."""

    stop_at: int | None = None
    late_s = 0.0
    """Delay with which the harness begins operations."""
    failing_over = 1 << 62
    cases: list[Case]

    def __init__(self) -> None:
        self.cases = []

    def run(self, runner: TrialRunner, case: Case, index: int) -> Trial:
        self.cases.append(case)
        if len(self.cases) == self.stop_at:
            runner.signals.caught = 2
            runner.signals.check()
        if case.arrivals:
            failed = 900 * (case.arrivals.rate > self.failing_over)
            found = replace(rate_trial(case.arrivals.rate, CAPACITY, index, case.duration_s), failed=failed)
            return late(found, self.late_s) if self.late_s else found
        return example_report().runs[0].trials[0]


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Windows:
    made_up = Windows()
    monkeypatch.setattr(TrialRunner, "run", lambda runner, case, index: made_up.run(runner, case, index))
    return made_up


def test_limit_is_between_the_highest_rate_that_holds_and_the_next(windows: Windows, cli: Cli) -> None:
    said = cli(*OPTIONS, "--p99", "10ms", "-c", "3")
    assert said.code == 0
    # p99 is 0.67 ms over the share that is left: 10 ms at 1,866/s.
    expected = (
        "Holds 1,620/s: most windows keep p99 within 10ms. Does not hold 1,980/s. The limit is about 1,790"
    )
    assert expected in said.text
    report = valid("limit.json")
    assert [run.case.arrivals is None for run in report.runs] == [True] + [False] * (len(report.runs) - 1)
    assert {case.concurrency for case in windows.cases} == {3}


def test_options_of_the_load_and_the_arrivals_reach_every_window(windows: Windows, cli: Cli) -> None:
    said = cli(*OPTIONS, "--p50", "10ms", "--arrival", "even", "--read-ratio", "0", "--duration", "500ms")
    assert said.code == 0
    closed, *at_rates = windows.cases
    assert (closed.arrivals, closed.duration_s, closed.repeat) == (None, 0.5, 1)
    assert all(case.arrivals and case.arrivals.spacing == "even" for case in at_rates)
    assert all((case.spec.read_ratio, case.duration_s) == (0.0, 0.5) for case in at_rates)


def test_operations_that_fail_break_the_promise_and_are_no_failure(windows: Windows, cli: Cli) -> None:
    windows.failing_over = 1_200
    said = cli(*OPTIONS, "--p99", "10ms")
    assert said.code == 0
    assert "The limit is about 1,240/s." in said.text
    assert "failures" in said.out


def test_ctrl_c_keeps_what_was_measured(windows: Windows, cli: Cli) -> None:
    windows.stop_at = 6
    said = cli(*OPTIONS, "--p99", "10ms")
    assert said.code == 130
    assert said.lines == ["Stopped after 5 windows; what was measured is in limit.json."]
    assert saved("limit.json").interrupted


def test_end_of_max_time_is_reported_and_exits_3_if_strict(windows: Windows, cli: Cli) -> None:
    clock = count(0.0, 0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limit.LimitStudy.__init__, "__defaults__", (lambda: next(clock),))
        found = cli(*OPTIONS, "--p99", "10ms", "--max-time", "4s", "--strict")
    assert found.code == 3
    assert "Ended early: 4 s were over (--max-time)." in found.text


def test_window_is_measured_even_after_a_slow_closed_loop(
    windows: Windows, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = count(0.0, 10.0)
    monkeypatch.setattr(limit.LimitStudy.__init__, "__defaults__", (lambda: next(clock),))
    assert cli(*OPTIONS, "--p99", "10ms", "--max-time", "4s").code == 0
    assert len(windows.cases) == 2


def test_promise_broken_at_one_per_second_is_a_complete_answer(windows: Windows, cli: Cli) -> None:
    found = cli(*OPTIONS, "--max", "50us", "--strict")
    assert found.code == 0
    assert "Does not hold 1/s: most windows miss max within 0.05ms." in found.out


def test_no_rate_is_tried_at_which_a_window_has_too_few_operations(windows: Windows, cli: Cli) -> None:
    found = cli(*OPTIONS, "--p99", "20us", "--strict")
    assert found.code == 3
    # 1,127 operations in 20 s.
    tried = {case.rate: case.duration_s for case in windows.cases if case.arrivals}
    assert min(tried) == 62 and tried[62] == pytest.approx(18.2) and tried[max(tried)] == 4.0
    assert "at lower rates a window of 20s has too few operations" in found.text


def test_late_harness_ends_the_search_at_once(windows: Windows, cli: Cli) -> None:
    windows.late_s = 0.0003
    said = cli(*OPTIONS, "--p99", "500us")
    assert said.code == 0
    closed, *saturated, first, again = [case.rate for case in windows.cases]
    assert not closed and min(saturated) >= CAPACITY >= first == again
    assert "Ended early: 2 windows in a row could not be judged." in said.text
    assert "2 windows not judged: the harness itself began operations late, by more than 50%" in said.text


def test_search_runs_the_users_scripts(windows: Windows, cli: Cli) -> None:
    said = cli(*OPTIONS, "--p99", "10ms", "sql", "-b", "bank@2", "-b", "select-only", "-c", "3")
    assert said.code == 0, said
    assert "Holds 1,620/s: " in said.text and "Does not hold 1,980/s. " in said.text
    assert "66.7% bank and 33.3% select-only" in said.text
    # sqlstress does not count the commits of a script.
    assert "The number of checkpoints in a window is unknown for this load" in said.text
    assert {(case.workload, case.concurrency) for case in windows.cases} == {("sql", 3)}
    assert len(saved("limit.json").runs) > 5


def test_search_runs_a_single_command(windows: Windows, cli: Cli) -> None:
    assert cli(*OPTIONS, "--p99", "10ms", "exec", "--timeout", "5s", "--", sys.executable, "{n}").code == 0
    assert {case.spec.command for case in windows.cases} == {(sys.executable, "{n}")}
    assert {case.spec.timeout_s for case in windows.cases} == {5.0}


def test_python_searches_too(windows: Windows, tmp_path: Path) -> None:
    options: dict[str, Any] = {"p99": "10ms", "builtin": ["bank"], "save": tmp_path / "limit.json"}
    report = sqlstress.limit("sql", directory=tmp_path, **options)
    assert report.answer == (1_620, 1_980, 1_790) and report.ok
    assert saved(tmp_path / "limit.json") == report.document
    assert sqlstress.read(tmp_path / "limit.json").answer == report.answer
    assert sqlstress.Report(example_report()).answer is None
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("keys", {"p99": "10ms"}, "'keys' is not available here"),
        ("sql", {"builtin": ["bank"]}, "no latency promise"),
        ("kv", {"p99": "10ms", "repeat": 3}, "repeat is not an option of limit"),
    ]
    for what, given, said in refused:
        with pytest.raises(sqlstress.UsageError, match=said):
            sqlstress.limit(what, **given)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words",
    [
        ("kv", "--key-space", "200", "--synchronous", "off"),
        ("sql", "-b", "bank", "--synchronous", "off"),
        ("app", "bank.py"),
    ],
    ids=lambda words: words[0],
)
def test_real_search_ends_and_leaves_no_file(words: tuple[str, ...], cli: Cli, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "app" / "bank.py", "bank.py")
    options = ("--duration", "150ms", "--warmup", "100ms", "-c", "2", "--max-time", "2s")
    said = cli("limit", *words, *OPTIONS[1:], "--p99", "100ms", *options)
    assert said.code == 0, said.err
    report = saved("limit.json")
    assert report.limit and report.limit.promise.bounds == {"p99": 0.1}
    assert len(report.runs) > 1 and {run.case.workload for run in report.runs} == {words[0]}
    assert all(run.verdict.status == "ok" for run in report.runs)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == [
        "bank.py",
        "limit.json",
    ]
