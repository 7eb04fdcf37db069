"""A processor kept busy: python -m benchmarks.busy [SEED]; with a seed by turns, 0.1 to 3 s at a time."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from benchmarks.document import CHECKOUT


@contextmanager
def beside(processors: int, by_turns: bool = False) -> Iterator[None]:
    """Keep so many processors busy meanwhile; by turns, as a machine's other users do."""
    command = [sys.executable, "-m", "benchmarks.busy"]
    burning = [
        subprocess.Popen([*command, *([str(seed)] if by_turns else [])], cwd=CHECKOUT)
        for seed in range(processors)
    ]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


if __name__ == "__main__":
    draw = Random(int(sys.argv[1])) if sys.argv[1:] else None
    while True:
        until = time.monotonic() + (draw.uniform(0.1, 3.0) if draw else 3.0)
        while time.monotonic() < until:
            sum(range(10_000))
        time.sleep(draw.uniform(0.1, 3.0) if draw else 0.0)
