"""Write the files that follow from the code: `python -m tests.renew`, after an intended change.

These are the schema, the reference of options, the table of causes, golden files and digests, the Markdown
of reports, the format of published figures, and the outputs of saved reports in the documents. Read the diff
afterwards. Outputs of measurements in the documents are pasted by hand.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
MODULES = ("sqlstress.report.json_schema", "tests.test_docs", "tests.causes_page", "tests.published")
"""Modules that write files when they are run."""


def main() -> None:
    """Write all files."""
    for module in MODULES:
        _run("-m", module)
    for path in sorted((ROOT / "reports").glob("*.json")):
        _run("-m", "sqlstress", "report", str(path), "-o", str(path.with_suffix(".md")))
    goldens()
    _run("-m", "tests.corpus.net")


def goldens() -> None:
    """Replace each golden file that differs from the output of its test."""
    tests = [path for path in HERE.rglob("test_*.py") if "assert_golden" in path.read_text(encoding="utf-8")]
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *map(str, sorted(tests))],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    for written in (*(HERE / "golden").rglob("*.got"), *(HERE / "corpus").glob("golden-kv.json.got")):
        written.replace(written.with_suffix(""))


def _run(*words: str) -> None:
    subprocess.run([sys.executable, *words], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
