"""Every saved report is shown in every format as it was: what is meant to change is changed by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.corpus import net
from tests.rows import thorough

KNOWN = json.loads(net.DIGESTS.read_text(encoding="utf-8"))


def changed(known: dict[str, str], texts: Iterable[tuple[str, str]], name: str) -> list[str]:
    """Return which formats differ from what is known, and keep what they are now beside it."""
    found = dict(texts)
    different = sorted(
        form for form in known.keys() | found.keys() if known.get(form) != net.digest(found.get(form, ""))
    )
    for form in different:
        (net.HERE / f"{name}.{form}.got").write_text(found.get(form, ""), encoding="utf-8")
    return different


@pytest.mark.parametrize(
    "path",
    [path if path.parent == net.HERE else thorough(path) for path in net.reports()],
    ids=lambda path: path.stem,
)
def test_a_saved_report_is_shown_as_before_in_every_format(path: Path) -> None:
    assert changed(KNOWN[path.stem], net.written(path), path.stem) == []


def test_saved_reports_are_compared_as_before() -> None:
    assert changed(KNOWN["side by side"], net.pairs(), "side-by-side") == []
