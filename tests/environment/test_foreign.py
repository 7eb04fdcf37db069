"""What others take of the processors: the arithmetic by hand, and a real neighbour."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from sqlstress.machine.foreign_load import Family, Look, Shares, Watch, look, shares, throttled
from tests.environment.test_family import running

S = 10**9
PATIENCE_S = 30.0


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


def test_where_nobody_can_tell_what_is_ours_only_a_hypervisor_is_told_of() -> None:
    assert shares(Look(0, 0.0, None, 0.0), Look(S, 2.0, None, 0.5), processors=2) == Shares(None, 0.25)
    found = seen_at_last(None)
    assert found and found.foreign is None


BUSY = "while True: pass"


def seen_at_last(own: Family | None) -> Shares | None:
    """Watch for longer and longer where a look takes its time, as on a busy machine."""
    seconds = 0.6
    while not (found := watched(own, seconds)) and seconds < PATIENCE_S:
        seconds *= 2
    return found


def watched(own: Family | None, seconds: float) -> Shares | None:
    begun = time.perf_counter_ns()
    watch = Watch(own, begun, begun + int(seconds * S))
    while time.perf_counter_ns() < begun + seconds * S:
        watch.pulse()
        time.sleep(0.02)
    return watch.shares()


def test_a_neighbour_that_burns_a_processor_is_seen() -> None:
    with running("import time; time.sleep(60)") as idle, running(BUSY):
        time.sleep(0.2)
        found = seen_at_last(Family(idle.pid))
    # It may have to share its processor with other tests.
    assert found and found.foreign is not None and found.foreign > 0.1 / (psutil.cpu_count() or 1)


def test_one_that_we_have_started_is_ours() -> None:
    with running(BUSY):
        family, until = Family(), time.monotonic() + PATIENCE_S
        first = last = look(family)
        assert first and first.own is not None
        own_s = time.process_time()
        while last and last.own is not None and last.own - first.own - (time.process_time() - own_s) < 0.1:
            assert time.monotonic() < until
            time.sleep(0.05)
            last = look(family)


def test_looks_that_cost_much_are_few_and_one_that_has_ended_fails_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[object] = []

    def costly(own: Family | None) -> Look | None:
        taken.append(own)
        time.sleep(0.03)
        return look(own)

    monkeypatch.setattr("sqlstress.machine.foreign_load.look", costly)
    watched(Family(), 0.6)
    assert 1 <= len(taken) <= 2
    with running(BUSY) as process:
        family = Family(process.pid)
        assert look(family)
    assert look(family) is None
    assert watched(family, 0.15) is None


def test_looks_outside_of_the_load_or_too_near_to_each_other_say_nothing() -> None:
    now = time.perf_counter_ns()
    for begins, ends in ((now + 100 * S, now + 200 * S), (now - 2 * S, now - S)):
        watch = Watch(Family(), begins, ends)
        watch.pulse()
        watch.pulse()
        assert watch.shares() is None
    now = time.perf_counter_ns()
    watch = Watch(Family(), now, now + S)
    watch.pulse()
    watch.pulse()
    assert watch.shares() is None


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
