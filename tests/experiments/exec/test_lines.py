"""Programs that answer lines: every answer is counted, and no program survives the trial."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from sqlstress.experiments.exec.programs import LONGEST_ANSWER, CommandExit, Dialogue
from tests.experiments.exec.test_worker import PYTHON, has_ended

ECHO = "import sys\nfor line in sys.stdin: print('ok', line.strip(), flush=True)"


@contextmanager
def dialogue(code: str, timeout_s: float = 30.0) -> Iterator[Dialogue]:
    one = Dialogue(os.environ, [*PYTHON, code], 2, timeout_s)
    try:
        yield one
    finally:
        pid = one.pid
        if pid is not None:
            one.leave()
            assert has_ended(pid)
        one.close()


def test_program_is_started_once_and_answers_each_line() -> None:
    with dialogue(ECHO) as one:
        assert [one.ask(b"%d\n" % number) for number in (1, 2)] == ["ok 1", "ok 2"]
        pid = one.pid
        assert one.ask(b"3\n") == "ok 3" and one.pid == pid
        assert one.leave() == CommandExit(0, False, False)


def test_line_may_have_a_windows_line_end() -> None:
    with dialogue(
        "import sys; input(); sys.stdout.buffer.write(b'ok 1\\r\\n'); sys.stdout.flush(); input()"
    ) as one:
        assert one.ask(b"1\n") == "ok 1"


def test_ended_program_is_started_again() -> None:
    code = "import sys; print('ok', sys.stdin.readline().strip(), flush=True); sys.exit(3)"
    with dialogue(code) as one:
        assert one.ask(b"1\n") == "ok 1"
        assert one.ask(b"2\n") == CommandExit(3, False, False)
        assert one.ask(b"3\n") == "ok 3"


@pytest.mark.parametrize(
    ("code", "too_late"),
    [
        ("import time; time.sleep(1000)", True),
        ("import os, time; os.close(1); time.sleep(1000)", False),
        (f"import time; print('x' * {2 * LONGEST_ANSWER}, end='', flush=True); time.sleep(1000)", None),
    ],
)
@pytest.mark.thorough
def test_program_without_answer_is_killed(code: str, too_late: bool | None) -> None:
    with dialogue(code, timeout_s=0.3 if too_late else 30.0) as one:
        answer = one.ask(b"1\n")
        if too_late is None:  # the whole part of the answer that is examined
            assert isinstance(answer, str) and len(answer) == LONGEST_ANSWER
        else:
            assert isinstance(answer, CommandExit) and (answer.too_late, answer.stayed) == (
                too_late,
                not too_late,
            )
            assert one.pid is None


def test_answer_of_several_lines_is_one_text() -> None:
    with dialogue("input(); print('ok\\nok', flush=True); input()") as one:
        assert one.ask(b"1\n") == "ok\nok"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups")
def test_program_is_ended_at_the_end_of_the_trial() -> None:
    one = Dialogue(os.environ, [*PYTHON, ECHO], 2, 30.0)
    one.ask(b"1\n")
    pid = one.pid
    assert pid is not None and psutil.pid_exists(pid)
    one.end()
    assert has_ended(pid)
    assert one._running
    one._running.communicate()  # a process that continues has to wait for it


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the files of a process")
def test_open_files_of_a_program_and_its_children_are_known(tmp_path: object) -> None:
    from sqlstress.experiments.exec.sampling import family, open_files_of

    path = f"{tmp_path}/kv.db"
    code = f"import subprocess, sys; subprocess.run([{PYTHON[0]!r}, '-c', {_HOLDS.format(path)!r}])"
    with dialogue(code) as one:
        assert one.ask(b"1\n") == "ok"
        assert one.pid is not None
        time.sleep(0.05)
        found = [path in {file.name for file in open_files_of(pid)} for pid in family(one.pid)]
        assert found == [False, True]


_HOLDS = "file = open({!r}, 'w'); input(); print('ok', flush=True); input()"
