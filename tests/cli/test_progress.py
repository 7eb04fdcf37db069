"""Tests of the progress bar: its text, and that only terminals get it."""

import os
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress.cli.measure import Bar, clock_text, watcher
from sqlstress.engine.study import Observer, Progress
from sqlstress.experiments.crash.study import progress_of as rounds_done
from sqlstress.statistics.sequential import looks
from sqlstress.studies.ab import pair_progress as pairs_done
from tests.ab_report import TEST, ab_report, around
from tests.crash_report import KILLS
from tests.engine.processes import Command, sqlstress
from tests.rows import thorough

SHORT = ("-c", "1,2", "--driver", "dry", "--key-space", "500", "--repeat", "1")


class FakeTqdm:
    """Records the drawn text."""

    def __init__(self) -> None:
        self.n, self.total, self.unit, self.desc = 0.0, 1.0, "", ""
        self.drawn: list[str] = []

    def set_description_str(self, desc: str, refresh: bool) -> None:
        assert not refresh
        self.desc = desc

    def refresh(self) -> None:
        self.drawn.append(f"{self.desc} {self.unit}")


class Shown:
    """A bar, its clock, and its drawn text."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tqdm = FakeTqdm()
        self.bar = Bar(self.tqdm, lambda: self.now)

    def after(self, seconds: float, progress: Progress) -> str:
        """Return the last drawn text after `progress` was reported at `seconds`."""
        self.now = seconds
        self.bar.progress(progress)
        return self.tqdm.drawn[-1]


HALF = Progress("pair 6 of 10", 5, 10, "B/A ?", 9.0)


def test_bar_shows_position_result_and_time_left() -> None:
    shown = Shown()
    assert shown.after(0.0, HALF) == "pair 6 of 10 B/A ?   0:09 left"
    assert (shown.tqdm.n, shown.tqdm.total) == (5, 10)


def test_lines_of_a_bar_with_a_known_total_have_one_width() -> None:
    shown = Shown()
    for second, note in enumerate(("starting", "measuring", "1,234,566 TPS")):
        shown.after(second, replace(HALF, label=f"[{note[:2]}]", note=note, label_width=9, note_width=13))
    assert len({len(line) for line in shown.tqdm.drawn}) == 1


@pytest.mark.parametrize(("reports", "drawn"), [(10, range(10, 11)), (100, range(15, 21))])
def test_reports_of_a_second_are_drawn_at_a_limited_rate(reports: int, drawn: range) -> None:
    shown = Shown()
    for step in range(reports):
        shown.after(step / reports, HALF)
    assert len(shown.tqdm.drawn) in drawn


def test_end_is_drawn_even_soon_after_the_last_report() -> None:
    shown = Shown()
    shown.after(0.0, HALF)
    assert shown.after(0.001, replace(HALF, label="pair 10 of 10", done=10)).startswith("pair 10")


def test_bar_over_pairs_shows_the_estimate_and_the_time_to_the_next_look() -> None:
    def after(pairs: int, seconds: float) -> str:
        report = ab_report([around(0.97, pairs)], decided=False)
        return shown.after(seconds, pairs_done(report, looks(200), seconds))

    shown = Shown()
    assert after(1, 6) == "pair 2 of 10 B/A -5.9%   0:54 left"
    assert re.fullmatch(r"pair 9 of 10 B/A -3.0% \[-5.1% to -0.90%\]   0:12 left", after(8, 48))
    assert shown.tqdm.total == 10
    assert after(12, 72).startswith("pair 13 of 14 B/A -3.0%")
    assert shown.tqdm.total == 14


def test_bar_shows_the_time_to_a_decision_after_one_look() -> None:
    def after(ratio: float, spread: float, pairs: int, pair_s: float) -> Progress:
        report = ab_report([around(ratio, pairs, spread)], replace(TEST, max_time_s=180.0))
        return pairs_done(report, looks(200), pairs * pair_s)

    soon, late, near = after(1.0, 0.15, 10, 5.0), after(1.0, 0.4, 10, 30.0), after(0.92, 0.2, 10, 5.0)
    assert soon.note.endswith(", decided after about 2 minutes") and 10 < soon.total < 36
    assert soon.left_s == pytest.approx(5.0 * (soon.total - 10))
    # The time suffices for 6 pairs only, so the bar expects no more.
    assert re.search(r", would take about \d\d minutes \(--max-time\)$", late.note) and late.left_s == 0
    assert near.note.endswith(", near the limit") and near.total == 36


def test_slice_without_a_partner_moves_the_bar_and_shows_no_estimate() -> None:
    shown = Shown()
    report = ab_report([[1.0]], decided=False)
    report = replace(report, runs=report.runs[:1])
    assert shown.after(0.0, pairs_done(report, looks(200), 3.0)).startswith("pair 1 of 10 B/A ?")
    assert shown.tqdm.n == 0.5


def test_progress_bar_of_rounds_shows_the_results() -> None:
    shown = Shown()
    for rounds, seconds in ((10, 3.0), (100, 30.0)):
        shown.after(seconds, rounds_done(replace(KILLS, rounds=rounds, kills=3 * rounds, seconds=seconds)))
    assert shown.tqdm.drawn == [
        "round 10 of 100 30 kills, 0 lost, 0 torn   0:27 left",
        "round 100 of 100 300 kills, 0 lost, 0 torn   0:00 left",
    ]


def test_closed_terminal_stops_no_measurement() -> None:
    def gone() -> None:
        raise OSError(5, "Input/output error")

    shown = Shown()
    shown.tqdm.refresh = gone  # type: ignore[method-assign]
    shown.bar.progress(HALF)


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


def test_invisible_bar_is_not_drawn() -> None:
    with watcher(visible=False) as observer:
        assert type(observer) is Observer


@pytest.mark.thorough
def test_standard_error_stays_empty_when_it_is_not_a_terminal(tmp_path: Path) -> None:
    code, _, errors = sqlstress(tmp_path, *SHORT, "--duration", "50ms", "--warmup", "50ms")
    assert (code, errors) == (0, "")


def on_terminal(place: Path, *arguments: str, columns: int = 80, stream: str = "stderr") -> tuple[int, str]:
    """Run a command one of whose streams is a terminal; return its exit code and the text drawn there."""
    if sys.platform == "win32":
        raise AssertionError("there are no pseudo-terminals")
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    options: dict[str, Any] = {stream: theirs}
    with Command(place, *arguments, **options) as command:
        os.close(theirs)
        drawn = b"".join(_until_closed(ours))
        code, _, _ = command.finish()
    os.close(ours)
    return code, drawn.decode()


def _until_closed(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(descriptor, 1 << 16)
        except OSError:  # Linux raises EIO when the other end is closed
            return
        if not data:
            return
        yield data


on_posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


@on_posix
@pytest.mark.parametrize(
    ("variables", "wanted"),
    [({}, True), thorough({"NO_COLOR": "1"}, False), thorough({"TERM": "dumb"}, False)],
)
def test_terminal_gets_colours_unless_turned_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], wanted: bool
) -> None:
    for name, value in {"TERM": "xterm", "NO_COLOR": "", **variables}.items():
        monkeypatch.setenv(name, value)
    code, drawn = on_terminal(tmp_path, "-c", "1", "--ops", "9", "--key-space", "50", stream="stdout")
    assert code == 0 and " ok" in drawn.replace("\033[32m", "")
    assert ("\033[32mok" in drawn) == wanted == ("\033" in drawn)


@pytest.mark.thorough
@on_posix
def test_on_a_terminal_every_case_is_shown_with_tps_and_time_left(tmp_path: Path) -> None:
    code, drawn = on_terminal(tmp_path, *SHORT, "--duration", "700ms", "--warmup", "200ms")
    lines = [line for line in re.split(r"[\r\n]+", drawn) if line.strip()]
    assert code == 0
    assert any(
        re.fullmatch(r"\[1/2\] 1 bucket, 1 process +\|.*\| +[\d,]+ TPS +0:0\d left", line) for line in lines
    )
    assert any(line.startswith("[2/2] 1 bucket, 2 processes |") for line in lines)
    widths = {len(line) for line in lines}
    assert max(widths) <= 80
    assert len({len(line) for line in lines if "left" in line}) == 1
    assert lines[0].startswith("examining this machine |")
    assert "\n" not in drawn
    assert drawn.endswith("\r" + " " * max(widths) + "\r")  # erased at the end


@pytest.mark.thorough
@on_posix
def test_on_a_terminal_too_the_bar_can_be_switched_off(tmp_path: Path) -> None:
    arguments: tuple[Any, ...] = (*SHORT, "--duration", "50ms", "--warmup", "50ms", "--no-progress")
    assert on_terminal(tmp_path, *arguments) == (0, "")
