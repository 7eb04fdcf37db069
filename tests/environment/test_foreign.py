"""What others take of the processors: the arithmetic by hand, and a real neighbour."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

from sqlstress.environment.foreign import Look, Shares, Watch, look, shares, throttled

S = 10**9


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (Look(S, 0.0, 0.0, 0.0), Shares(0.0, 0.0)),
        (Look(S, 2.0, 2.0, 0.0), Shares(0.0, 0.0)),
        (Look(S, 2.0, 0.5, 0.0), Shares(0.75, 0.0)),
        (Look(S, 1.0, 1.0, 0.5), Shares(0.0, 0.25)),
        (Look(S, 1.0, 1.1, 0.0), Shares(0.0, 0.0)),
        (Look(S, 9.0, 0.0, 9.0), Shares(1.0, 1.0)),
    ],
    ids=["idle", "all is ours", "others", "a hypervisor", "ticks that disagree", "more than there is"],
)
def test_what_was_not_ours_was_others(last: Look, expected: Shares) -> None:
    assert shares(Look(0, 0.0, 0.0, 0.0), last, processors=2) == pytest.approx(expected)


def busy() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "while True: pass"])


def watched(pids: tuple[int, ...], seconds: float = 0.6) -> Shares | None:
    begun = time.perf_counter_ns()
    watch = Watch(pids, begun, begun + int(seconds * S))
    while time.perf_counter_ns() < begun + seconds * S:
        watch.pulse()
        time.sleep(0.02)
    return watch.shares()


def test_a_neighbour_that_burns_a_processor_is_seen_and_as_ours_is_not() -> None:
    with busy() as process:
        try:
            time.sleep(0.2)
            foreign, own = watched((os.getpid(),)), watched((os.getpid(), process.pid))
        finally:
            process.kill()
    assert foreign and own
    # It may have to share its processor with other tests.
    assert foreign.foreign > 0.1 / (psutil.cpu_count() or 1)
    assert own.foreign < 1


def test_looks_that_cost_much_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[object] = []

    def costly(own: Iterable[psutil.Process]) -> Look | None:
        taken.append(own)
        time.sleep(0.03)
        return look(own)

    monkeypatch.setattr("sqlstress.environment.foreign.look", costly)
    watched((os.getpid(),), 0.6)
    assert 1 <= len(taken) <= 2


def test_looks_outside_of_the_load_say_nothing() -> None:
    now = time.perf_counter_ns()
    for begins, ends in ((now + 100 * S, now + 200 * S), (now - 2 * S, now - S)):
        watch = Watch((os.getpid(),), begins, ends)
        watch.pulse()
        watch.pulse()
        assert watch.shares() is None


def test_looks_that_are_too_near_to_each_other_say_nothing() -> None:
    now = time.perf_counter_ns()
    watch = Watch((os.getpid(),), now, now + S)
    watch.pulse()
    watch.pulse()
    assert watch.shares() is None


def test_a_process_that_has_ended_is_no_reason_to_fail() -> None:
    with busy() as process:
        process.kill()
    gone = psutil.Process(os.getpid())
    assert look([gone])
    assert watched((process.pid,), 0.15) is None


def test_heat_is_counted_over_all_processors(tmp_path: Path) -> None:
    assert throttled(tmp_path) is None
    for number in range(3):
        folder = tmp_path / f"cpu{number}" / "thermal_throttle"
        folder.mkdir(parents=True)
        (folder / "core_throttle_count").write_text(f"{number}\n")
        (folder / "package_throttle_count").write_text("1\n")
    assert throttled(tmp_path) == 6
    (tmp_path / "cpu0" / "thermal_throttle" / "core_throttle_count").write_text("hot\n")
    assert throttled(tmp_path) is None
