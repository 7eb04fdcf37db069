"""A fleet in each format: text, Markdown, a page, and JSON for programs."""

from __future__ import annotations

from typing import Any

from sqlstress import __version__
from sqlstress.analysis.fleet import Fleet, Host, Row, conclude
from sqlstress.experiment import face_of
from sqlstress.render import markdown, text
from sqlstress.render.views.fleet import fleet_blocks
from sqlstress.report.json_text import json_text

FLEET_VERSION = "1.0"


def fleet_text(fleet: Fleet) -> str:
    """Return a fleet as text of 80 columns."""
    return text.PAGES.page(fleet_blocks(fleet))


def fleet_markdown(fleet: Fleet) -> str:
    """Return a fleet as GitHub Markdown."""
    return markdown.PAGES.page(fleet_blocks(fleet))


def fleet_json(fleet: Fleet) -> str:
    """Return a fleet as JSON: hosts, the figures of each case by host, and the sentences.

    Rates are a second, times in nanoseconds. The reports themselves hold everything else.
    """
    return json_text(_plain(fleet)) + "\n"


def _plain(fleet: Fleet) -> dict[str, Any]:
    return {
        "fleet_version": FLEET_VERSION,
        "tool_version": __version__,
        "hosts": [_host(host) for host in fleet.hosts],
        "cases": [_row(row) for table in fleet.tables for row in table.rows],
        "counted_once": [{"name": name, "same_as": other} for name, other in fleet.twice],
        "left_out": [{"name": one.name, "why": one.why} for one in fleet.left_out],
        "remarks": list(fleet.remarks),
        "findings": [{"code": one.code, "text": one.text} for one in conclude(fleet)],
    }


def _host(host: Host) -> dict[str, Any]:
    return {
        "name": host.name,
        "created": host.created,
        "cores": host.cores,
        "sync_call": host.sync_call,
        "sync_p50_ns": list(host.sync_ns),
        "facts": dict(host.facts),
        "warnings": list(host.warnings),
    }


def _row(row: Row) -> dict[str, Any]:
    comparable = [{"host": one.host.name, "rate": one.rate} for one in row.comparable]
    ends = ("best", "median", "worst") if row.comparable else ()
    return {
        "workload": row.case.workload,
        "case": row.place,
        "files": row.case.buckets,
        "processes": row.case.concurrency,
        "unit": face_of(row.case).rate_counts,
        **{name: getattr(row, name).host.name for name in ends},
        "comparable": comparable,
        "not_comparable": [
            {"host": one.host.name, "rate": one.rate, "differs_in": list(row.why_apart(one))}
            for one in row.apart
        ],
        "without": [{"host": one.host.name, "verdict": one.measured.status} for one in row.without],
    }
