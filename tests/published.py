"""Reports of published figures, in reports/published."""

from pathlib import Path

from sqlstress.report import read, to_json, write_atomically
from tests.corpus.net import compact

FOLDER = Path(__file__).parents[1] / "reports" / "published"
REPORTS = {path.stem: read(path) for path in sorted(FOLDER.glob("*.json"))}
"""Report by the name of its file without the suffix."""

if __name__ == "__main__":
    for name, report in REPORTS.items():
        write_atomically(FOLDER / f"{name}.json", to_json(report))
        compact(FOLDER / f"{name}.json")
