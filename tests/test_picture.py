"""The README's picture is up to date: its command draws it again from a saved report."""

import xml.etree.ElementTree as ET

import pytest

import sqlstress
from benchmarks.picture import PICTURE, REPORT, picture
from tests.pages import ROOT

LARGEST_BYTES = 100_000
SVG = "{http://www.w3.org/2000/svg}"


def test_picture_matches_the_output_of_its_command() -> None:
    drawn = picture(sqlstress.read(REPORT))
    assert PICTURE.read_text(encoding="utf-8") == drawn, "it is stale: run python -m benchmarks.picture"
    assert len(drawn.encode()) < LARGEST_BYTES


def test_readme_shows_the_picture() -> None:
    shown = f"]({PICTURE.relative_to(ROOT).as_posix()})"
    assert shown in (ROOT / "README.md").read_text(encoding="utf-8")


def test_picture_has_a_higher_point_for_more_tps() -> None:
    report = sqlstress.read(REPORT)
    root = ET.fromstring(picture(report))
    points = [point for line in root.iter(f"{SVG}polyline") for point in line.attrib["points"].split()]
    assert len(points) == 2 * len(report.figures)
    heights = [-float(point.split(",")[1]) for point in points[: len(report.figures)]]
    totals = [figure.tps or 0.0 for figure in report.figures]
    assert sorted(range(len(totals)), key=totals.__getitem__) == sorted(
        range(len(heights)), key=heights.__getitem__
    )


def test_report_with_a_single_number_of_processes_is_refused() -> None:
    with pytest.raises(ValueError, match="several numbers of processes"):
        picture(sqlstress.read(ROOT / "reports" / "linux-checkpoints.json"))
