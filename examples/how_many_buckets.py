"""How many buckets does this disk reward? Measure some layouts, and stop where more bring no more.

    python examples/how_many_buckets.py [FOLDER]

The databases go into a fresh folder of ours below FOLDER (or here), and are removed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import sqlstress

LAYOUTS = (1, 2, 4, 8, 16)
GAIN = 1.1
"""A layout that brings less than this is not worth its buckets."""


def show(progress: sqlstress.Progress) -> None:
    """Say how far it is, on one line of a terminal."""
    if sys.stderr.isatty():
        print(f"\r{progress.label:<30} {progress.left_s:>5.0f} s left", end="", file=sys.stderr)


def main(folder: Path) -> int:
    """Measure layout after layout; return the exit code."""
    best = 0.0
    for buckets in LAYOUTS:
        report = sqlstress.measure(
            concurrency=4, buckets=buckets, repeat=5, duration="500ms", directory=folder, progress=show
        )
        if not report.ok:
            print(*report.problems, sep="\n", file=sys.stderr)
            return report.exit_code
        (figure,) = report.figures
        tps = figure.tps or 0.0
        print(f"{figure.label}: {tps:,.0f} {figure.counts} per second, verified: {figure.verified}")
        if tps < GAIN * best:
            print(f"{buckets} buckets bring less than {GAIN - 1:.0%} more: that is where to stop.")
            break
        best = tps
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
