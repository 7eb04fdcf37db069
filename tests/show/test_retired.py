"""Reports of drivers that are gone are read and shown as before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.report import from_json, to_json
from sqlstress.report.case import Settings
from sqlstress.show.formats import FORMATS
from sqlstress.show.text import report_text
from sqlstress.target import DRIVERS
from tests.example_report import example_report
from tests.show.variants import with_case


@pytest.mark.parametrize(("driver", "library"), [("libsql", "libSQL"), ("turso", "Turso"), ("lmdb", "LMDB")])
def test_a_report_of_a_driver_that_is_gone_is_shown_in_every_format(driver: str, library: str) -> None:
    report = example_report()
    (build,) = report.environment.builds
    report = replace(
        report,
        environment=replace(report.environment, builds=(replace(build, driver=driver, library=library),)),
    )
    report = with_case(report, driver=driver, settings=Settings())
    assert driver not in DRIVERS
    assert from_json(to_json(report)) == report
    assert all(show(report) for show in FORMATS.values())
    assert f"driver {driver}, {library} " in " ".join(report_text(report).split())
