"""Digests of every saved report in every format: refactoring must not change an output.

    python -m tests.corpus.net        write digests.json again, after an intended change, and compact reports/

The reports are those of reports/, and those in this folder: golden files, and the user's own work (app, sql,
exec). Other tests read them too (`corpus_report`). No text is kept: if a digest differs, the new text is
written to a `.got` file.
"""

import json
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from sqlstress.errors import UsageError

HERE = Path(__file__).parent
DIGESTS = HERE / "digests.json"
KEPT = HERE.parents[1] / "reports"


def reports() -> list[Path]:
    """Return the saved reports, by name."""
    return sorted((*KEPT.rglob("*.json"), *(path for path in HERE.glob("*.json") if path != DIGESTS)))


def formats() -> dict[str, Callable[..., str]]:
    """Return every function that shows a report, by name."""
    from sqlstress.analysis.comparison import compare
    from sqlstress.show.formats import FORMATS, SECOND_FILES
    from sqlstress.show.github import summary, workflow_commands
    from sqlstress.show.page.html_file import script
    from sqlstress.show.text import comparison_text, report_text

    renderers: dict[str, Callable[..., str]] = {
        **FORMATS,
        **{f"{name}{suffix}": render for name, (suffix, render) in SECOND_FILES.items()},
        "txt": report_text,
        "html": lambda report: _without_assets(FORMATS["html"](report).replace(script(), "")),
        "github": lambda report: "\n".join((*workflow_commands(report), summary(report))),
        "compare": lambda report: comparison_text(compare([("one", report), ("same", report)], False)),
        "compare-anyway": lambda report: comparison_text(compare([("one", report), ("same", report)], True)),
    }
    return renderers


def _without_assets(page: str) -> str:
    """Return a page without its style and the hash of its script, which do not depend on the report."""
    page = re.sub("<style>.*?</style>", "", page, flags=re.DOTALL)
    before, _, rest = page.partition("<meta http-equiv")
    return before + rest.partition(">")[2]


def outputs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each format's name, and the report in that format, or the reason why it is refused."""
    from sqlstress.report import read

    report = read(path)
    for name, render in formats().items():
        if name.startswith("compare") and not report.runs:
            continue
        try:
            yield name, render(report)
        except UsageError as error:
            yield name, f"refused: {error}"


def pairs() -> Iterator[tuple[str, str]]:
    """Yield the comparisons of neighbouring reports of the same kind, each with its name."""
    from sqlstress.analysis.comparison import compare
    from sqlstress.report import read
    from sqlstress.show.markdown import comparison_markdown

    read_reports = [(path.stem, read(path)) for path in reports()]
    for first, second in pairwise((name, report) for name, report in read_reports if report.runs):
        comparison = compare([first, second], True)
        if comparison.tables:
            yield f"{first[0]} beside {second[0]}", comparison_markdown(comparison)


def digest(text: str) -> str:
    """Return the digest of a text."""
    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:20]


def digests() -> dict[str, dict[str, str]]:
    """Return the digests of the current outputs."""
    digests_by_report = {
        path.stem: {name: digest(text) for name, text in outputs(path)} for path in reports()
    }
    return {**digests_by_report, "side by side": {name: digest(text) for name, text in pairs()}}


def compact(path: Path) -> None:
    """Rewrite a JSON file without whitespace, which is a quarter of an indented report."""
    data = json.loads(path.read_text(encoding="utf-8"))
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    for report in KEPT.rglob("*.json"):
        compact(report)
    DIGESTS.write_text(json.dumps(digests(), indent=1) + "\n", encoding="utf-8")
