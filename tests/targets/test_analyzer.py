"""Our figures equal those of the sqlite3_analyzer program, to the last digit that it prints."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlstress.experiments.classics.spec import SCHEMAS
from sqlstress.report import Space
from sqlstress.report.case import Case
from sqlstress.report.file_space import Portion
from sqlstress.targets.sqlite.space import measure_space
from tests.rows import mostly_thorough
from tests.targets.databases import ID_TYPES, create_picks

PROGRAM = shutil.which("sqlite3_analyzer")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="sqlite3_analyzer is not installed")

Section = dict[str, str]
_TITLE = re.compile(r"\*\*\* (.*?) \*+")
_LINE = re.compile(r"([A-Z][^.]*[^. ])\.{2,} +(.*?) *")


def printed(path: Path) -> dict[str, Section]:
    """Return the output of sqlite3_analyzer: {title: {line: value}}; the first section has no title."""
    assert PROGRAM is not None
    text = subprocess.run([PROGRAM, path], capture_output=True, text=True, check=True).stdout
    sections: dict[str, Section] = {"": {}}
    for line in text.splitlines():
        if title := _TITLE.fullmatch(line):
            sections[title[1]] = section = {}
        elif match := _LINE.fullmatch(line):
            section = list(sections.values())[-1]
            section[match[1]] = " ".join(match[2].split())
    return sections


def percent(part: float, whole: float) -> str:
    """Format a percentage like sqlite3_analyzer."""
    if not whole:
        return ""
    value = part * 100.0 / whole
    if value == 100.0 or value < 0.001 or 1.0 < value < 99.0:
        return f"{value:.1f}%"
    return f"{value:.3f}%" if value < 0.1 or value > 99.9 else f"{value:.2f}%"


def ours(portion: Portion) -> Section:
    """Return the lines of a section from our figures."""
    lines = {
        "Percentage of total database": percent(portion.share, 1),
        "Number of entries": f"{portion.total('entries')}",
        "Bytes of storage consumed": f"{portion.storage_bytes}",
        "Primary pages used": f"{portion.total('leaf_pages')}",
        "Overflow pages used": "0",
        "Total pages used": f"{portion.total('pages')}",
    }
    if portion.fan_out is not None:
        lines["Average fanout"] = f"{portion.fan_out:.2f}"
        lines["Index pages used"] = f"{portion.total('internal_pages')}"
    return lines


def portions(space: Space) -> Iterator[tuple[str, Portion]]:
    """Yield the title of each section of sqlite3_analyzer that we have too, and our portion."""
    for table in {tree.table for tree in space.trees}:
        indices = space.indices_of(table)
        if indices.trees:
            yield f"Table {table.upper()} and all its indices", space.table_with_indices(table)
            yield f"Table {table.upper()} w/o any indices", space.table_alone(table)
        else:
            yield f"Table {table.upper()}", space.table_alone(table)
        if len(indices.trees) > 1:
            yield f"Indices of table {table.upper()}", indices


def assert_same(space: Space, path: Path) -> None:
    """Compare every figure that both programs have."""
    theirs = printed(path)
    whole = theirs[""]
    assert whole["Page size in bytes"] == str(space.page_size)
    assert whole["Pages in the whole file (measured)"] == str(space.page_count)
    assert whole["Pages on the freelist (per header)"].split()[0] == str(space.free_pages)
    assert whole["Size of the file in bytes"] == str(space.file_bytes)
    for title, portion in portions(space):
        expected = ours(portion)
        assert {name: theirs[title][name] for name in expected} == expected
        assert ("Average fanout" in theirs[title]) == ("Average fanout" in expected)


PLAIN, LAYOUTS = "page_size=4096", ("page_size=512", "page_size=65536", "auto_vacuum=full")


@pytest.mark.parametrize("id_type", mostly_thorough(ID_TYPES, ["uuid4"]))
@pytest.mark.parametrize("schema", SCHEMAS)
def test_space_of_every_schema_of_picks_equals_the_analyzers(path: Path, schema: str, id_type: str) -> None:
    create_picks(path, schema, id_type)
    space = measure_space(Case(), path, lambda: None)
    assert_same(space, path)
    assert space.indices_of("picks").fan_out


@pytest.mark.parametrize("pragma", mostly_thorough([PLAIN, *LAYOUTS], [PLAIN]))
def test_space_with_any_layout_of_pages_equals_the_analyzers(path: Path, pragma: str) -> None:
    create_picks(path, "pair-norowid", "uuid4", [pragma])
    assert_same(measure_space(Case(), path, lambda: None), path)
