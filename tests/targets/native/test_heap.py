"""A worker of the native loop keeps what its C library has once had of the system."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from sqlstress.targets.native import extension, lacking
from tests.pages import ROOT

FAULTS_OF_LUCK, FAULTS_OF_CHANCE = 250, 50
"""Of some 500 pages."""


@pytest.mark.skipif(lacking(extension) is not None, reason="nothing was built here")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")
def test_memory_that_was_given_back_is_there_again_without_a_page_fault() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.targets.native.heap_stage"],
        cwd=ROOT,
        # Else it is up to what the process has allocated before, which is the luck that is taken away.
        env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "131072"},
        capture_output=True,
        text=True,
        check=True,
    )
    before, after = map(int, done.stdout.split())
    assert before > FAULTS_OF_LUCK
    assert after < FAULTS_OF_CHANCE
