"""Code in a Python process of its own."""

import subprocess
import sys
from pathlib import Path

from tests.pages import ROOT


def run_python(folder: Path, code: str, *words: str) -> str:
    """Return the standard output of code that must exit with 0.

    The process runs in `folder` and finds this checkout. It gets no other variables.
    """
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
