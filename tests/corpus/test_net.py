"""Every saved report has the same text in every format; intended changes need a new digest."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.corpus import net
from tests.rows import thorough

KNOWN = json.loads(net.DIGESTS.read_text(encoding="utf-8"))


def changed(expected: dict[str, str], texts: Iterable[tuple[str, str]], name: str) -> list[str]:
    """Return the formats whose digest differs, and save their current text next to the digests."""
    current = dict(texts)
    different = sorted(
        form
        for form in expected.keys() | current.keys()
        if expected.get(form) != net.digest(current.get(form, ""))
    )
    for form in different:
        (net.HERE / f"{name}.{form}.got").write_text(current.get(form, ""), encoding="utf-8")
    return different


@pytest.mark.parametrize(
    "path",
    [path if path.parent == net.HERE else thorough(path) for path in net.reports()],
    ids=lambda path: path.stem,
)
def test_saved_report_is_unchanged_in_every_format(path: Path) -> None:
    assert changed(KNOWN[path.stem], net.outputs(path), path.stem) == []


def test_comparisons_of_saved_reports_are_unchanged() -> None:
    assert changed(KNOWN["side by side"], net.pairs(), "side-by-side") == []
