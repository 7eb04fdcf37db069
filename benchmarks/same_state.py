"""Does each trial begin in the same state? The first has new processes and new files.
Later ones have processes that stayed and restored files, in the cache of the system or not any more.

    python -m benchmarks.same_state --rounds 12

Each round has new files and measures all three, the last two in an order that changes; synchronous=NORMAL, so
that a shared disk hides less. The ratios hold together with 95 %.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from benchmarks.document import CHECKOUT
from sqlstress.engine.pool import Crew, modules
from sqlstress.engine.study import NOBODY
from sqlstress.engine.trial import TrialRunner
from sqlstress.plan import cases_of
from sqlstress.statistics.compare import Passes
from sqlstress.system.interrupt import StopSignals
from sqlstress.system.processes import starting
from sqlstress.targets.sqlite.copies import Copy

FIRST, LATER, COLD = "first", "later", "cold"


@contextmanager
def evicted() -> Iterator[None]:
    """Let the files of the next trial be read from the disk (Linux)."""
    restore = Copy.restore

    def cold(self: Copy, paths: Sequence[Path], pulse: object) -> list[Path]:
        found = restore(self, paths, lambda: None)
        for path in paths[0].parent.iterdir():
            if sys.platform == "linux" and path.is_file():
                descriptor = os.open(path, os.O_RDONLY)
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)
        return found

    with patch.object(Copy, "restore", cold):
        yield


def measured(number: int, options: dict[str, object]) -> dict[str, float]:
    """Return the TPS of a round's trials."""
    (case,) = cases_of({**options, "synchronous": "normal", "seed": 7})
    found = {}
    with (
        StopSignals() as signals,
        TemporaryDirectory(dir=CHECKOUT) as own,
        starting(modules([case])) as starter,
        Crew() as crew,
    ):
        runner = TrialRunner(Path(own), False, signals, NOBODY, 100 * number, starter, crew=crew)
        found[FIRST] = runner.run(case, 0).tps
        for name in (LATER, COLD) if number % 2 else (COLD, LATER):
            if name == COLD:
                with evicted():
                    found[name] = runner.run(case, 1).tps
            else:
                found[name] = runner.run(case, 1).tps
    return found


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="Does each trial begin in the same state?")
    parser.add_argument("--rounds", type=int, default=12)
    asked = parser.parse_args(given)
    for buckets, processes in ((1, 4), (20, 4)):
        rounds = [measured(n, {"buckets": buckets, "concurrency": processes}) for n in range(asked.rounds)]
        figures = {name: {n: found[name] for n, found in enumerate(rounds)} for name in (FIRST, LATER, COLD)}
        passes = Passes(figures, 0.05, 2)
        for name in (FIRST, COLD):
            ratio = passes.ratio(LATER, name)
            assert ratio
            print(
                f"{processes} processes, {buckets} file(s): {name} over later {ratio.estimate:.2f} "
                f"({ratio.low:.2f} to {ratio.high:.2f}), {ratio.pairs} rounds"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
