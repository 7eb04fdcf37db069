"""What our processes took of the processors, with real ones that start others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from sqlstress.machine.foreign_load import KEEPS_ACCOUNT, Family

BURNS = "import time\nuntil = time.process_time() + {}\nwhile time.process_time() < until: pass\n"
WAITS = "input()\n"


@contextmanager
def running(code: str, *given: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program that says when it has come so far, and goes on when it gets a line."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            own = psutil.Process(process.pid)
            for one in (*own.children(recursive=True), own):
                one.kill()


def heard(process: subprocess.Popen[str]) -> None:
    assert process.stdout and process.stdout.readline() == "so far\n"


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def starting(code: str, call: str = "Popen") -> str:
    """Return a program that starts another one."""
    return f"import subprocess, sys\none = subprocess.{call}([sys.executable, '-c', {code!r}])\n"


SAYS = "print('so far', flush=True)\n"


def spent(family: Family) -> float:
    found = family.spent_s()
    assert found is not None
    return found


def test_what_a_grandchild_takes_is_ours() -> None:
    with running(starting(BURNS.format(0.4) + SAYS + "time.sleep(60)") + WAITS) as process:
        heard(process)
        assert spent(Family(process.pid)) >= 0.3  # in ticks of 10 ms, cut off


@pytest.mark.skipif(not KEEPS_ACCOUNT, reason="this system keeps no account of those that have ended")
@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.thorough
def test_what_one_took_that_has_ended_stays_ours(changing: bool) -> None:
    code = starting(SAYS + WAITS + BURNS.format(0.4))
    with running(code + "one.wait()\n" + SAYS + "input()") as process:
        heard(process)
        ours = Family(process.pid, changing=changing)
        before = spent(ours)  # it runs yet, and has its own account
        go_on(process)
        heard(process)
        assert spent(ours) - before >= 0.3


@pytest.mark.thorough
def test_where_no_account_is_kept_one_that_has_ended_counts_as_it_was_seen_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sqlstress.machine.foreign_load.KEEPS_ACCOUNT", False)
    monkeypatch.setattr(
        "sqlstress.machine.foreign_load._processor_s", lambda process: sum(process.cpu_times()[:2])
    )
    child = starting(BURNS.format(0.4) + SAYS + "time.sleep(60)")
    with running(child + WAITS + "one.kill()\none.wait()\n" + SAYS + "input()") as process:
        heard(process)
        ours = Family(process.pid)
        before = spent(ours)
        go_on(process)
        heard(process)
        assert spent(ours) >= before >= 0.3


@pytest.mark.skipif(not KEEPS_ACCOUNT, reason="this system keeps no account of those that have ended")
def test_one_that_was_started_later_is_found_where_they_come_and_go() -> None:
    later = starting(BURNS.format(0.4) + SAYS + "time.sleep(60)")
    with running(SAYS + WAITS + later + WAITS) as process:
        heard(process)
        steady, changing = Family(process.pid), Family(process.pid, changing=True)
        before = spent(steady), spent(changing)
        go_on(process)
        heard(process)
        assert spent(changing) - before[1] >= 0.3
        assert spent(steady) - before[0] < 0.3


def test_of_one_that_is_not_there_any_more_nothing_is_known() -> None:
    with running(SAYS + WAITS) as process:
        family = Family(process.pid)
        assert spent(family) >= 0
    assert family.spent_s() is None
