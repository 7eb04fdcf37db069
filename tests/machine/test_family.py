"""Processor time of our processes, with real processes that start others."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from sqlstress.machine.foreign_load import COUNTS_ENDED_CHILDREN, Family

BURNS = "import time\nuntil = time.process_time() + {}\nwhile time.process_time() < until: pass\n"
WAITS = "input()\n"


@contextmanager
def running(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program that prints a line at a point and continues when it gets a line."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            parent = psutil.Process(process.pid)
            for each_process in (*parent.children(recursive=True), parent):
                each_process.kill()


def await_line(process: subprocess.Popen[str]) -> None:
    assert process.stdout and process.stdout.readline() == "so far\n"


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def starting(code: str, call: str = "Popen") -> str:
    """Return a program that starts a child with this code."""
    return f"import subprocess, sys\none = subprocess.{call}([sys.executable, '-c', {code!r}])\n"


SAYS = "print('so far', flush=True)\n"


def spent(family: Family) -> float:
    spent_s = family.spent_s()
    assert spent_s is not None
    return spent_s


def test_time_of_a_grandchild_is_ours() -> None:
    with running(starting(BURNS.format(0.4) + SAYS + "time.sleep(60)") + WAITS) as process:
        await_line(process)
        assert spent(Family(process.pid)) >= 0.3  # in ticks of 10 ms, cut off


@pytest.mark.skipif(not COUNTS_ENDED_CHILDREN, reason="this system keeps no account of those that have ended")
@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.thorough
def test_time_of_an_ended_child_stays_ours(changing: bool) -> None:
    code = starting(SAYS + WAITS + BURNS.format(0.4))
    with running(code + "one.wait()\n" + SAYS + "input()") as process:
        await_line(process)
        ours = Family(process.pid, changing=changing)
        before = spent(ours)  # the child still runs, and has its own account
        go_on(process)
        await_line(process)
        assert spent(ours) - before >= 0.3


@pytest.mark.thorough
def test_ended_child_keeps_its_last_seen_time_without_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlstress.machine.foreign_load.COUNTS_ENDED_CHILDREN", False)
    monkeypatch.setattr(
        "sqlstress.machine.foreign_load._processor_s", lambda process: sum(process.cpu_times()[:2])
    )
    child = starting(BURNS.format(0.4) + SAYS + "time.sleep(60)")
    with running(child + WAITS + "one.kill()\none.wait()\n" + SAYS + "input()") as process:
        await_line(process)
        ours = Family(process.pid)
        before = spent(ours)
        go_on(process)
        await_line(process)
        assert spent(ours) >= before >= 0.3


@pytest.mark.skipif(not COUNTS_ENDED_CHILDREN, reason="this system keeps no account of those that have ended")
def test_later_child_is_found_in_a_changing_family() -> None:
    later = starting(BURNS.format(0.4) + SAYS + "time.sleep(60)")
    with running(SAYS + WAITS + later + WAITS) as process:
        await_line(process)
        steady, changing = Family(process.pid), Family(process.pid, changing=True)
        before = spent(steady), spent(changing)
        go_on(process)
        await_line(process)
        assert spent(changing) - before[1] >= 0.3
        assert spent(steady) - before[0] < 0.3


def test_time_of_an_ended_family_is_unknown() -> None:
    with running(SAYS + WAITS) as process:
        family = Family(process.pid)
        assert spent(family) >= 0
    assert family.spent_s() is None
