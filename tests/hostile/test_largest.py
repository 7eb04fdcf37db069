"""Reports of the largest permitted size: shown in every format within five seconds."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlstress.report.document import MAX_BYTES, MAX_RUNS, MAX_TEXTS
from sqlstress.show.formats import FORMATS
from tests.hostile.conftest import Judge
from tests.rows import fault

FOLDER = Path(__file__).parents[2] / "reports"


def saved(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def runs_of(name: str, change: str) -> Iterator[Any]:
    """Yield the runs of a saved report repeatedly, each with another value at `change` in its case."""
    runs = saved(name)["runs"]
    *path, last = change.split(".")
    for number in range(MAX_RUNS):
        run = copy.deepcopy(runs[number % len(runs)])
        place = run["case"]
        for step in path:
            place = place[step]
        place[last] = f"d{number}" if isinstance(place[last], str) else number + 1
        yield run


def largest(name: str, change: str) -> str:
    """Return a report with the maximum number of runs that can be read."""
    document = saved(name) | {"runs": []}
    size = texts = 0
    for run in runs_of(name, change):
        written = json.dumps(run)
        size, texts = size + len(written) + 2, texts + written.count('"') // 2
        if size > 0.98 * MAX_BYTES or texts > 0.98 * MAX_TEXTS:
            break
        document["runs"].append(run)
    return json.dumps(document)


def show(judge: Judge, options: list[str]) -> None:
    output = judge("report", "a.json", *options)
    assert output.code == 0


LARGE = [
    ("linux-1-and-20-files", "concurrency"),
    ("linux-1-and-20-files", "buckets"),
    ("linux-1-and-20-files", "load.value_size"),
    ("linux-methods", "method.scale"),
    ("linux-methods", "driver"),
    ("linux-keys", "concurrency"),
    ("linux-cycles", "concurrency"),
]


@fault("input", "the largest sweeps that are read", "shown in every format within five seconds")
@pytest.mark.long
@pytest.mark.parametrize(("name", "change"), LARGE)
def test_largest_sweep_is_shown_in_every_format_in_time(judge: Judge, name: str, change: str) -> None:
    Path("a.json").write_text(largest(name, change), encoding="utf-8")
    for options in ([], *(["-o", f"{form}:out"] for form in FORMATS)):
        show(judge, options)


@pytest.mark.thorough
def test_thousand_layouts_are_shown_in_time(judge: Judge) -> None:
    document = saved("linux-1-and-20-files")
    (first, *_) = document["runs"]
    for latency in first["trials"][0]["latency"].values():
        latency["buckets"] = latency["buckets"][:20]
    document["runs"] = [first | {"case": first["case"] | {"buckets": place + 1}} for place in range(MAX_RUNS)]
    Path("a.json").write_text(json.dumps(document), encoding="utf-8")
    show(judge, [])
    show(judge, ["-o", "html:out"])
