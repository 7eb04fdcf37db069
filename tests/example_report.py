"""Reports of tests/corpus, and golden files.

The example has one database, which serializes its writers and starves some, and twenty buckets, which
spread the load.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from sqlstress.report import Report, read
from sqlstress.report.document import FORMAT_VERSION

CORPUS = Path(__file__).with_name("corpus")
GOLDEN = Path(__file__).with_name("golden")


@cache
def corpus_report(name: str) -> Report:
    """Return a report of the corpus, in today's format."""
    return replace(read(CORPUS / f"golden-{name}.json"), format_version=FORMAT_VERSION)


example_report = partial(corpus_report, "kv")
"""Eight verified runs: 1 and 20 buckets, each with 1, 2, 4 and 8 processes."""
failed_report = partial(corpus_report, "failed")
"""The example, in which 4 processes on one database lost two acknowledged writes."""


def assert_golden(name: str, text: str) -> None:
    """Compare a text with tests/golden/NAME; a mismatch writes NAME.got next to it."""
    expected = GOLDEN / name
    got = GOLDEN / f"{name}.got"
    if expected.exists() and expected.read_text(encoding="utf-8") == text:
        got.unlink(missing_ok=True)
        return
    got.write_text(text, encoding="utf-8", newline="\n")
    raise AssertionError(
        f"{name} differs: compare it with {got.name} beside it, and rename that if it is right"
    )


def assert_golden_texts(name: str, texts: Mapping[str, str | Iterable[str]]) -> None:
    """Compare texts, each below what it is said of, with tests/golden/said/NAME."""
    lines: list[str] = []
    for subject, text in texts.items():
        lines += [subject, *(f"    {each}" for each in ([text] if isinstance(text, str) else text))]
    assert_golden(f"said/{name}", "\n".join(lines) + "\n")
