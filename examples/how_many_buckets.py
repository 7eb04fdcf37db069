"""How many buckets does this disk reward? Measure some layouts in turns, and print what the passes can tell.

    python examples/how_many_buckets.py [FOLDER]

The databases go into a new folder below FOLDER (or here), and are removed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import sqlstress

LAYOUTS = "1,2,4,8,16"
ANSWERS = ("best", "layouts", "layout-waits")
"""Findings on the number of buckets. Each is tested against the noise of the passes."""


def show(progress: sqlstress.Progress) -> None:
    """Print the progress on one line of a terminal."""
    if sys.stderr.isatty():
        print(f"\r{progress.label:<30} {progress.left_s:>5.0f} s left", end="", file=sys.stderr)


def main(folder: Path) -> int:
    """Measure all layouts; return the exit code."""
    report = sqlstress.measure(
        concurrency=4, buckets=LAYOUTS, repeat=10, duration="300ms", directory=folder, progress=show
    )
    if not report.ok:
        print(*report.problems, sep="\n", file=sys.stderr)
        return report.exit_code
    for figure in report.figures:
        rate = f"{figure.tps or 0.0:,.0f} {figure.counts} per second"
        print(f"{figure.label}: {rate}, verified: {figure.verified}")
    for finding in report.findings:
        if finding.code in ANSWERS:
            print(finding.text)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
