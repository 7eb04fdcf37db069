"""Processes are found by the mark in their environment, wherever they went."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys

from sqlstress.system.marked import end_marked

SLEEP = "import time; time.sleep(1000)"


def test_what_has_the_mark_is_ended_and_nothing_else() -> None:
    mark = secrets.token_hex(8)
    processes = [
        subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", SLEEP],
            env={**os.environ, "SQLSTRESS_TRIAL": value},
            start_new_session=True,
        )
        for value in (mark, mark + "0")
    ]
    marked, other = processes
    try:
        assert end_marked("SQLSTRESS_TRIAL", mark) == 1
        marked.wait(10)
        assert other.poll() is None
        assert end_marked("SQLSTRESS_TRIAL", mark) == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
