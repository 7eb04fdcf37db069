"""Damaged reports: real saved ones with hostile values, keys and lists."""

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from sqlstress.report import Report, to_json
from tests.ab_report import ab_report, around
from tests.crash_report import crash_report, lost_report
from tests.example_report import example_report
from tests.hostile.texts import TEXTS

FEW = 4
"""Number of items kept of each list of a real report: a small report is as hostile, and faster."""
_WORDS = (
    "kv", "classic", "methods", "keys", "cycles", "crash", "sql", "none", "A", "B", "tps",
    "p99", "wal", "delete", "dry", "done",
    "timeout", "limit", "ok", "failed", "unknown", "skipped", "pass", "fail", "query", "allocate", "SPC",
    "1.1", "2.0",
    "9999.9999", "get", "replace", "WAL frames", "WAL size", "checkpoints", "2026-11-21T18:00:00+00:00",
    "-1", "1e5",
)  # fmt: skip
"""Texts of a report that decide its presentation."""
_BY_KIND: dict[type, tuple[Any, ...]] = {
    bool: (True, False),
    int: (0, -1, 1, 2, 3, 7, 10**6, 2**31, 2**53, 2**63, 2**64 - 1, 1 - 2**64, 2**64, 10**400),
    float: (0, -0.0, -1, 1, 0.5, 1e308, 1.7e308, -1e308, 5e-324, 1e-300, 2**64 - 1, 0.1 + 0.2),
    str: (*TEXTS, *_WORDS, "\ud800"),
    type(None): (None, 0, 1, 1.5, -1, "x", 2**63),
}
"""Replacements of a value, mostly of its own type, so that the reader does not refuse them at once."""
_DECIDING = ("format_version", "workload", "phase", "status", "outcome", "verdict", "metric", "arm", "driver")
"""Names of the texts that decide the presentation of a report; other texts are only printed."""
_ANYTHING: tuple[Any, ...] = (None, True, 0, 1e308, "", [], {}, [[[]]], {"": None})

Place = tuple[dict[str, Any], str] | tuple[list[Any], int]


def several_trials() -> Report:
    """Return the example with as many trials per case as `check` needs, with slightly different TPS."""
    report = example_report()
    runs = [
        replace(
            run,
            trials=tuple(
                replace(run.trials[0], index=index, tps=run.trials[0].tps * (1 + index / 100))
                for index in range(7)
            ),
        )
        for run in report.runs[:2]
    ]
    return replace(report, runs=tuple(runs))


def _trimmed(plain: Any, few: int = FEW) -> Any:
    if isinstance(plain, list):
        return [_trimmed(item, few) for item in plain[:few]]
    if isinstance(plain, dict):
        return {key: _trimmed(item, few) for key, item in plain.items()}
    return plain


def _saved() -> Iterator[Any]:
    folder = Path(__file__).parents[2] / "reports"
    for path in sorted(folder.rglob("*.json")):
        yield _trimmed(json.loads(path.read_text(encoding="utf-8")))
    made = (ab_report([around(0.95, 10)]), several_trials(), crash_report(), lost_report())
    yield from (_trimmed(json.loads(to_json(report)), 10) for report in made)


@cache
def all_saved() -> list[Any]:
    """Return our saved reports, and made-up A/B and crash tests, as plain data."""
    return list(_saved())


def _places(plain: Any) -> Iterator[Place]:
    """Yield every place (container and key) of a value in a document."""
    items = plain.items() if isinstance(plain, dict) else enumerate(plain)
    for key, value in items:
        yield plain, key
        if isinstance(value, dict | list):
            yield from _places(value)


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """Return a saved report with damage at up to three places."""
    saved = all_saved()
    document = copy.deepcopy(saved[draw(st.integers(0, len(saved) - 1))])
    if draw(st.booleans()):
        document = _with_text(draw(st.sampled_from(TEXTS)), document)
    for _ in range(draw(st.integers(0, 3))):
        places: list[Any] = list(_places(document))
        if places:
            holder, key = places[draw(st.integers(0, len(places) - 1))]
            _harm(draw, holder, key, places)
    return document


def _with_text(text: str, plain: Any) -> Any:
    """Return a document whose printed texts are all replaced by this text."""
    if isinstance(plain, list):
        return [_with_text(text, item) for item in plain]
    if isinstance(plain, dict):
        return {key: item if key in _DECIDING else _with_text(text, item) for key, item in plain.items()}
    return text if isinstance(plain, str) else plain


def _harm(draw: st.DrawFn, holder: Any, key: Any, places: list[Any]) -> None:
    choice = draw(st.integers(0, 9))
    value = holder[key]
    if choice < 6:
        holder[key] = _instead(draw, value)
    elif choice == 6:
        del holder[key]
    elif choice == 7:
        holder[key] = copy.deepcopy(draw(st.sampled_from(_ANYTHING)))
    elif choice == 8 and isinstance(holder, dict):
        holder[draw(st.sampled_from(TEXTS))] = value
    else:
        other_holder, other_key = places[draw(st.integers(0, len(places) - 1))]
        holder[key] = copy.deepcopy(other_holder[other_key])


def _instead(draw: st.DrawFn, value: Any) -> Any:
    """Return a replacement of a value: lists are emptied, reversed or extended; keys of objects change."""
    if isinstance(value, list):
        return (value * draw(st.sampled_from((0, 1, 2, 10))))[:: draw(st.sampled_from((1, -1)))]
    if isinstance(value, dict):
        text = draw(st.sampled_from(TEXTS))
        return {f"{key}{text}": item for key, item in value.items()}
    return draw(st.sampled_from(_BY_KIND[type(value)]))
