"""Limit of open files for Wine's server: the hard limit of this system, not the soft limit of a shell."""

import subprocess
import sys

import pytest

from tests.windows.wine import ROOT

PROGRAM = """
import resource
from tests.windows.wine import allow_descriptors
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
allowed = allow_descriptors()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
assert allowed == hard or hard == resource.RLIM_INFINITY < allowed
"""


@pytest.mark.skipif(sys.platform == "win32", reason="its limits are POSIX's, where Wine runs")
def test_soft_limit_for_wine_is_raised_to_the_hard_limit() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, check=True, timeout=60)
