"""Tests of a fleet as it is shown: golden files, and what holds for every fleet."""

from __future__ import annotations

import json
import re

import pytest

from sqlstress.analysis.fleet import Fleet, LeftOut, gathered
from sqlstress.analysis.fleet_hosts import host_of
from sqlstress.show.json_file import fleet_json
from sqlstress.show.page.html_file import fleet_html
from sqlstress.show.text import WIDTH, fleet_text
from tests.fleet_reports import fleet_of, four_hosts, host_report


def troubled() -> Fleet:
    """Return a fleet with everything that there is to be said."""
    own = four_hosts()
    named = [
        *own.items(),
        ("again", own["anna"]),
        ("<b>a-name-that-is-far-too-long-for-a-column</b>", host_report()),
    ]
    left_out = (LeftOut("fritz", "it disappeared while it was measuring"),)
    return gathered(
        [host_of(*each) for each in named], left_out, ("emil runs sqlstress 0.0.9, here it is 0.1.0.",)
    )


@pytest.mark.parametrize("hosts", [1, 2, 3, 60])
def test_any_number_of_hosts_fits_80_columns(hosts: int) -> None:
    fleet = fleet_of({f"host-{n}": host_report(1 + n / 100, trials=3, minute=n % 60) for n in range(hosts)})
    assert max(map(len, fleet_text(fleet).splitlines())) <= WIDTH


def test_json_has_every_host_s_own_figure_and_no_other() -> None:
    fleet = troubled()
    plain = json.loads(fleet_json(fleet))
    for row, case in zip(fleet.rows(), plain["cases"], strict=True):
        assert {one["host"]: one["rate"] for one in case["comparable"]} == {
            one.host.name: one.rate for one in row.comparable
        }
        assert (case["best"], case["worst"]) == (row.best.host.name, row.worst.host.name)


def test_the_map_has_a_mark_for_every_host_of_a_case() -> None:
    fleet = troubled()
    page = fleet_html(fleet)
    (data,) = re.findall(r'<script type="application/json" id="plots">(.*?)</script>', page)
    first = json.loads(data)[0][0]
    row = fleet.main_rows()[0]
    assert [len(trace["x"]) for trace in first["data"]] == [len(row.comparable), len(row.apart)]
    assert "<b>a-name" not in page and "&lt;b&gt;a-name" in page
