"""Untrusted saved reports: shown in every format without active content, or refused in a line."""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from sqlstress.show.formats import COMPARISON_FORMATS, FORMATS
from tests.hostile import formats
from tests.hostile.conftest import Judge, amounts
from tests.hostile.documents import all_saved, documents
from tests.rows import fault
from tests.show.test_github import COMMAND

WAYS = (
    ["report", "a.json"],
    ["report", "b.json", "a.json"],
    ["compare", "a.json", "b.json"],
    ["compare", "b.json", "a.json", "--anyway"],
    ["check", "a.json", "b.json"],
    ["check", "b.json", "a.json", "--metric", "p99"],
    *(["report", "a.json", "-o", f"{form}:out"] for form in FORMATS),
    *(
        ["report", "a.json", "b.json", "-o", f"{form}:out"]
        for form in FORMATS
        if form not in ("json", "html")
    ),
    ["report", "b.json", "a.json", "--github"],
    *(["compare", "a.json", "b.json", "--anyway", "-o", f"{form}:out"] for form in COMPARISON_FORMATS),
)
"""Every command that reads reports, with every format that it writes."""
TOKENS = (
    "NaN", "-Infinity", "1e400", "-1e-400", "9" * 5000, "1" * 19, "[" * 5000, '{"a":' * 5000, "[[[]]]",
    '"\\ud800"', '"\\u0000"',
    '"\\x"', "null", "true", '"', "\\", "}", "]", ",", ":", "\ufeff", "//", "'", "\x00", '{"": {}}',
    '"format_version": "1.1",',
)  # fmt: skip
"""Text that is not JSON, or unusual JSON."""


@cache
def saved_texts() -> list[bytes]:
    return [json.dumps(document).encode() for document in all_saved()]


def save(name: str, document: Any) -> None:
    Path(name).write_text(json.dumps(document), encoding="utf-8")


@fault(
    "input",
    "reports harmed at any place or cut off, with hostile names",
    "shown with every text escaped, or refused",
)
@amounts(3, 9000)
def test_any_report_is_shown_in_any_format_or_refused_in_a_line(
    judge: Judge, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "out")
    shown: Counter[str] = Counter()
    saved = all_saved()

    def check(case: tuple[Any, int | None, list[str]]) -> None:
        document, other, way = case
        save("a.json", document)
        save("b.json", document if other is None else saved[other])
        Path("out").unlink(missing_ok=True)
        output = judge(*way)
        form = "md" if "--github" in way else way[-1].partition(":")[0]
        if Path("out").exists():
            formats.CHECKS[form](Path("out").read_text(encoding="utf-8"))
        if "--github" in way:
            assert all(map(COMMAND.fullmatch, output.out.splitlines()))
        if output.code != 2:
            shown[form if "-o" in way else way[0]] += 1

    judge.cases(
        st.tuples(documents(), st.none() | st.integers(0, len(saved) - 1), st.sampled_from(WAYS)),
        check,
        number,
    )
    judge.record("shown", dict(shown))
    assert sum(shown.values()) > number / 4


@st.composite
def torn(draw: st.DrawFn) -> bytes:
    """Return the bytes of a report, cut off anywhere or with a piece replaced."""
    texts = saved_texts()
    text = texts[draw(st.integers(0, len(texts) - 1))]
    place = draw(st.integers(0, len(text)))
    piece = draw(st.sampled_from([token.encode() for token in TOKENS]) | st.binary(max_size=8))
    rest = draw(st.sampled_from([b"", text[place:], text[place + len(piece) :], text[place + 1 :]]))
    return text[:place] + piece + rest


@fault(
    "input",
    "reports harmed at any place or cut off, with hostile names",
    "shown with every text escaped, or refused",
)
@amounts(2, 5000)
def test_any_bytes_are_a_report_or_refused_in_a_line(judge: Judge, number: int) -> None:
    def check(data: bytes) -> None:
        Path("a.json").write_bytes(data)
        output = judge("report", "a.json")
        assert output.code == 0 or (output.code == 2 and len(output.lines) == 1 and "'a.json'" in output.err)

    judge.cases(torn(), check, number)
    assert judge.codes[2] > number / 2
