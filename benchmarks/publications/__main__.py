"""Writes every published report: python -m benchmarks.publications."""

from __future__ import annotations

from pathlib import Path

from benchmarks.publications import classic, cycles, keys, methods
from sqlstress.report import Report, to_json, write_atomically

FOLDER = Path(__file__).parents[2] / "reports" / "published"
REPORTS: dict[str, Report] = {
    **classic.REPORTS,
    **cycles.REPORTS,
    **keys.REPORTS,
    **methods.REPORTS,
}
"""File name, without its suffix → what was published."""


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, report in REPORTS.items():
        write_atomically(FOLDER / f"{name}.json", to_json(report))
