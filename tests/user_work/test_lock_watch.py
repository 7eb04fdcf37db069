"""Holders of the write lock by program: from made-up samples, and from a real process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

import pytest

from sqlstress.report.results import Holder, Holds, WriteLock
from sqlstress.targets.sqlite.lock_holders import READ, WAL, WRITE, Lock, LockSample, TimedSample
from sqlstress.user_work import OTHERS, OURS, UNKNOWN
from sqlstress.user_work.lock_holders_view import merged_holders
from sqlstress.user_work.lock_watch import MOST, Holders, command_line_finder, shorten
from tests.analysis.hand_made import run, trial

FREE = LockSample(WAL, (Lock(READ, 9),), 1)


def lock_of(pid: int, changes: int = 1) -> LockSample:
    return LockSample(WAL, (Lock(READ, 9), Lock(WRITE, pid)), changes)


def holders_by_program(commands: Mapping[int, Sequence[str]], *looks: LockSample) -> dict[str, Holder]:
    """Return the holders by program; one sample each 0.1 s, the first at 0 s."""
    holders = Holders(lambda pid: commands.get(pid, ()))
    for number, look in enumerate(looks):
        holders.add(TimedSample(number / 10, number / 10, look))
    found = [
        Holder(program, count, Holds(*figures)) for program, count, figures in holders.as_fields()["holders"]
    ]
    return {holder.program: holder for holder in found}


def test_processes_of_one_program_are_one_holder_with_separate_holds() -> None:
    commands = {pid: ("/usr/bin/tool", "add", str(pid), "/data/app.db") for pid in (1, 2)}
    found = holders_by_program(
        commands, FREE, lock_of(1), lock_of(1), lock_of(2), lock_of(2), lock_of(2), FREE, lock_of(1)
    )
    assert list(found) == ["tool add N app.db"]
    (one,) = found.values()
    assert (one.processes, one.held.samples, one.held.times) == (2, 6, 3)
    # Process 2 was seen at 0.3 s to 0.5 s; it had the lock at 0.2 s at the earliest, and not any more at 0.6.
    assert (one.held.longest_s, one.held.most_s) == pytest.approx((0.2, 0.4))


def test_commit_between_two_samples_ends_a_hold() -> None:
    (one,) = holders_by_program({1: ["tool"]}, lock_of(1, 1), lock_of(1, 1), lock_of(1, 2)).values()
    assert (one.held.samples, one.held.times) == (3, 2)
    assert one.held.longest_s == pytest.approx(0.1)


def test_programs_are_sorted_by_share_and_include_unknown() -> None:
    found = holders_by_program(
        {1: ["tool", "5"], 2: ["tool", "--all"]}, lock_of(1), lock_of(7), FREE, lock_of(2), lock_of(2)
    )
    assert [(name, holder.held.samples) for name, holder in found.items()] == [
        ("tool --all", 2),
        ("tool 5", 1),  # a number that is equal in all its command lines
        (UNKNOWN, 1),
    ]


def test_programs_beyond_the_most_are_counted_together() -> None:
    commands = {pid: [f"tool-{'x' * pid}"] for pid in range(1, MOST + 3)}
    found = holders_by_program(commands, *map(lock_of, commands))
    assert len(found) == MOST + 1
    assert found[OTHERS].processes == 2


def test_samples_gap_and_longest_hold_are_those_of_all_programs() -> None:
    holders = Holders(lambda pid: ["tool"] * pid)
    for at_s, look in ((0.1, lock_of(1)), (0.2, lock_of(2)), (0.5, FREE), (0.6, lock_of(1))):
        holders.add(TimedSample(at_s, at_s, look))
    found = holders.as_fields()
    assert (found["samples"], found["longest_gap_s"]) == (4, pytest.approx(0.3))
    anybody = Holds(*found["held"])
    assert (anybody.samples, anybody.times) == (3, 2)
    assert (anybody.longest_s, anybody.most_s) == pytest.approx((0.1, 0.5))


def test_program_has_its_longest_hold_and_all_samples_of_all_passes() -> None:
    def lock(longest_s: float, most_s: float) -> WriteLock:
        return WriteLock(200, 10, holders=(Holder("tool", 2, Holds(5, 3, longest_s, most_s)),))

    trials = (trial(write_lock=lock(0.3, 0.4)), trial(write_lock=lock(0.2, 0.6)), trial())
    (one,) = merged_holders(run(1, 2, *trials))
    assert (one.processes, one.held.samples, one.held.times) == (4, 10, 6)
    assert (one.held.longest_s, one.held.most_s) == (0.3, 0.4)


def test_samples_without_a_lock_have_no_holders() -> None:
    assert holders_by_program({}, FREE, FREE) == {}


def test_command_line_is_read_and_processes_of_sqlstress_have_a_label() -> None:
    ask = command_line_finder()
    imported = "from sqlstress.user_work.lock_watch import command_line_finder"
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{imported}\n"
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            while not ask(child.pid):
                time.sleep(0.01)  # the child is just starting
            assert shorten(ask(child.pid)) == ["sleep", "60"]
            # For a process with the same parent, as all of a trial have, the child is a process of sqlstress.
            asked = [sys.executable, "-c", f"{code}print(*command_line_finder()({child.pid}))"]
            said = subprocess.run(asked, capture_output=True, text=True, check=True)
            assert said.stdout.strip() == OURS
        finally:
            child.kill()
    assert ask(child.pid) == ()
