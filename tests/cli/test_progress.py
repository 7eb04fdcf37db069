"""Tests of the progress bar: what it says, and that it is there only for who can see it."""

from __future__ import annotations

import os
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress.cli.progress import Bar, clock_text, expected_s, watcher
from sqlstress.engine.observer import Nobody
from sqlstress.experiments.methods.spec import Method
from sqlstress.plan import cases_of
from sqlstress.report.case import Case
from tests.engine.processes import Command, sqlstress
from tests.example_report import example_report

RUN = example_report().runs[0]
CASES = (Case(concurrency=1), Case(concurrency=16, buckets=20))
SHORT = ("-c", "1,2", "--driver", "dry", "--key-space", "500")


class FakeTqdm:
    """Takes down what would be drawn."""

    def __init__(self) -> None:
        self.n, self.total, self.unit, self.desc = 0.0, 1.0, "", ""
        self.drawn: list[str] = []
        self.places: list[float] = []

    def set_description_str(self, desc: str, refresh: bool) -> None:
        assert not refresh
        self.desc = desc

    def refresh(self) -> None:
        self.drawn.append(f"{self.desc} {self.unit}")
        self.places.append(self.n)


class Show:
    """A bar, its clock, and what it drew."""

    def __init__(self, cases: tuple[Case, ...] = CASES) -> None:
        self.now = 100.0
        self.tqdm = FakeTqdm()
        self.cases = cases
        self.bar = Bar(self.tqdm, cases, lambda: self.now)

    def begin(self, index: int) -> None:
        self.bar.case_begins(index, len(self.cases), self.cases[index])

    @property
    def last(self) -> str:
        return self.tqdm.drawn[-1]


@pytest.fixture
def show() -> Iterator[Show]:
    show = Show()
    yield show
    assert show.tqdm.places == sorted(show.tqdm.places)
    assert all(0 <= place <= 1 for place in show.tqdm.places)


def test_a_case_is_named_with_its_number(show: Show) -> None:
    show.begin(1)
    show.bar.phase("preparing")
    assert re.fullmatch(r"\[2/2\] 20 files, 16 processes +preparing +\d:\d\d left", show.last)


def test_every_line_is_as_wide_as_every_other(show: Show) -> None:
    for index in (0, 1):
        show.begin(index)
        show.bar.phase("starting")
        show.bar.phase("measuring")
        show.bar.tick(0)
        show.now += 0.5
        show.bar.tick(617_283)
    assert len({len(line) for line in show.tqdm.drawn}) == 1
    assert "1,234,566 TPS" in show.last


def test_the_tps_of_the_moment_follows_what_was_done_in_the_last_second(show: Show) -> None:
    show.begin(0)
    show.bar.phase("measuring")
    for step in range(60):
        show.bar.tick(step * 100 if step < 30 else 3000 + (step - 30) * 50)
        show.now += 0.1
    assert " 500 TPS " in show.last


def test_before_anything_was_done_the_phase_is_shown(show: Show) -> None:
    show.begin(0)
    show.bar.phase("measuring")
    show.bar.tick(0)
    show.now += 0.1
    show.bar.tick(0)
    assert " measuring " in show.last


def test_the_published_script_counts_pairs() -> None:
    show = Show((Case(workload="classic", ops=5000),))
    show.begin(0)
    show.bar.tick(0)
    show.now += 1.0
    show.bar.tick(2000)
    assert " 1,000 TPS " in show.last


def test_time_that_is_left_runs_down_while_a_case_is_measured(show: Show) -> None:
    show.begin(0)
    whole = show.bar.left_s()
    assert whole == pytest.approx(sum(map(expected_s, CASES)))
    show.now += 1.5
    assert show.bar.left_s() == pytest.approx(whole - 1.5)


def test_a_journal_a_transaction_and_a_time_out_change_how_long_cycles_are_expected_to_take() -> None:
    delete, delete_tx, wal, wal_tx, _ = map(expected_s, cases_of({}, "cycles"))
    assert delete > wal > wal_tx
    assert delete > delete_tx
    (short,) = cases_of({"settings": "delete", "cycles": 100_000, "timeout": "2s"}, "cycles")
    assert expected_s(short) == pytest.approx(2, abs=1)


def test_the_cycles_that_are_usual_are_expected_to_take_seconds() -> None:
    assert 2 < sum(map(expected_s, cases_of({}, "cycles"))) < 15


def test_a_case_that_takes_longer_than_expected_leaves_the_others_time_alone(show: Show) -> None:
    show.begin(0)
    show.now += 500.0
    assert show.bar.left_s() == pytest.approx(expected_s(CASES[1]))


def test_finished_cases_teach_how_long_the_others_take(show: Show) -> None:
    show.begin(0)
    show.bar.phase("measuring")
    show.now += 3 * expected_s(CASES[0])
    show.bar.tick(0)
    show.bar.case_ends(RUN)
    show.begin(1)
    show.bar.phase("preparing")
    assert show.bar.left_s() == pytest.approx(3 * expected_s(CASES[1]))


def test_while_something_is_waited_for_the_time_runs_on_but_is_not_drawn_at_every_call(show: Show) -> None:
    show.begin(0)
    show.bar.phase("verifying")
    drawn = len(show.tqdm.drawn)
    for _ in range(100):
        show.now += 0.01
        show.bar.waiting()
    assert 8 <= len(show.tqdm.drawn) - drawn <= 10
    assert "verifying" in show.last


def test_a_terminal_that_is_gone_stops_no_measurement(show: Show) -> None:
    def gone() -> None:
        raise OSError(5, "Input/output error")

    show.tqdm.refresh = gone  # type: ignore[method-assign]
    show.begin(0)
    show.bar.phase("measuring")
    show.bar.tick(5)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00"),
        (-3, "0:00"),
        (9.4, "0:09"),
        (59.6, "1:00"),
        (90, "1:30"),
        (3599, "59:59"),
        (7501, "2:05:01"),
    ],
)
def test_times_are_written_as_a_clock_does(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


def test_more_work_is_expected_to_take_longer() -> None:
    case = Case()
    longer = [
        replace(case, **change)
        for change in (
            {"duration_s": 9.0},
            {"warmup_s": 9.0},
            {"repeat": 2},
            {"concurrency": 8},
            {"buckets": 9},
        )
    ]
    assert all(expected_s(each) > expected_s(case) for each in longer)
    assert expected_s(Case(ops=2000)) > expected_s(Case(ops=1000))
    assert expected_s(Case(workload="classic", ops=5000)) < 10


def test_the_guess_of_a_method_knows_what_a_row_costs_and_where_its_time_out_is() -> None:
    def cell(name: str, transaction: bool = False, scale: int = 1000, timeout_s: float = 60.0) -> Case:
        return Case(workload="methods", spec=Method("insert", name, transaction, scale, timeout_s))

    commits, rows, bulk = (expected_s(each) for each in (cell("1b1"), cell("1b1", True), cell("BLK")))
    assert commits > rows > bulk
    assert expected_s(cell("BLK", scale=100_000)) > bulk
    assert expected_s(cell("1b1", timeout_s=1.0)) < commits


def test_who_cannot_see_it_gets_no_bar() -> None:
    with watcher(CASES, visible=False) as observer:
        assert type(observer) is Nobody


def test_standard_error_stays_empty_when_it_is_not_a_terminal(tmp_path: Path) -> None:
    code, _, errors = sqlstress(tmp_path, *SHORT, "--duration", "50ms", "--warmup", "50ms")
    assert (code, errors) == (0, "")


def on_terminal(place: Path, *arguments: str, columns: int = 80) -> tuple[int, str]:
    """Run a command whose standard error is a terminal; return its exit code and what it drew."""
    if sys.platform == "win32":
        raise AssertionError("there are no pseudo-terminals")
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with Command(place, *arguments, stderr=theirs) as command:
        os.close(theirs)
        drawn = b"".join(_until_closed(ours))
        code, _, _ = command.finish()
    os.close(ours)
    return code, drawn.decode()


def _until_closed(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(descriptor, 1 << 16)
        except OSError:  # Linux says EIO when the other end is closed
            return
        if not data:
            return
        yield data


on_posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


@on_posix
def test_on_a_terminal_every_case_is_shown_with_tps_and_time_left(tmp_path: Path) -> None:
    code, drawn = on_terminal(tmp_path, *SHORT, "--duration", "700ms", "--warmup", "200ms")
    lines = [line for line in re.split(r"[\r\n]+", drawn) if line.strip()]
    assert code == 0
    assert any(
        re.fullmatch(r"\[1/2\] 1 file, 1 process +\|.*\| +[\d,]+ TPS +0:0\d left", line) for line in lines
    )
    assert any(line.startswith("[2/2] 1 file, 2 processes |") for line in lines)
    widths = {len(line) for line in lines}
    assert max(widths) <= 80
    assert len({len(line) for line in lines if "left" in line}) == 1
    assert lines[0].startswith("examining this machine |")
    assert "\n" not in drawn
    assert drawn.endswith("\r" + " " * max(widths) + "\r")  # wiped off at the end


@pytest.mark.thorough
@on_posix
def test_on_a_terminal_too_the_bar_can_be_switched_off(tmp_path: Path) -> None:
    arguments: tuple[Any, ...] = (*SHORT, "--duration", "50ms", "--warmup", "50ms", "--no-progress")
    assert on_terminal(tmp_path, *arguments) == (0, "")
