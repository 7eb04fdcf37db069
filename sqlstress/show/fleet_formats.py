"""A fleet in each format: text, Markdown, a page, and JSON for programs."""

from __future__ import annotations

from typing import Any

from sqlstress import __version__
from sqlstress.analysis.fleet import Fleet, Host, Joint, Row, Total, conclude
from sqlstress.analysis.wording import place
from sqlstress.experiment import face_of
from sqlstress.report.document import json_text
from sqlstress.show import markdown, text
from sqlstress.show.fleet_view import fleet_blocks
from sqlstress.show.phrases import phrase

FLEET_VERSION = "1.1"


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
        "totals": [_joint(one) for one in fleet.joint()],
        "counted_once": [{"name": name, "same_as": other} for name, other in fleet.twice],
        "left_out": [{"name": one.name, "why": one.why} for one in fleet.left_out],
        "remarks": list(fleet.remarks),
        "findings": [{"code": one.code, "text": phrase(one)} for one in conclude(fleet)],
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


def _joint(joint: Joint) -> dict[str, Any]:
    """Return a total over hosts, of each trial: `off_share` is what it may be off by, as a share of it."""
    return {
        "workload": joint.case.workload,
        "case": place(joint.case),
        "files": joint.case.buckets,
        "processes_each": joint.case.concurrency,
        "server": joint.server,
        "meeting": joint.meeting,
        "unit": face_of(joint.case).rate_counts,
        "asked": list(joint.asked),
        "hosts": joint.hosts,
        "total": joint.typical.rate if joint.typical else None,
        "without": [{"host": name, "why": why} for name, why in joint.without.items()],
        "trials": [_total(one) for one in joint.totals],
    }


def _total(total: Total) -> dict[str, Any]:
    return {
        "total": total.rate,
        "off_share": total.off_share,
        "seconds": total.seconds,
        "common_s": total.common_s,
        "error_ns": total.error_ns,
        "hosts": [
            {
                "host": one.together.host,
                "rate": one.rate,
                "opens_ns": one.together.opens_ns,
                "closes_ns": one.together.closes_ns,
                "error_ns": one.together.error_ns,
                "clock_ns": one.together.clock_ns,
                "clock_error_ns": one.together.clock_error_ns,
            }
            for one in total.shares
        ],
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
            {"host": one.host.name, "rate": one.rate, "differs_in": list(map(phrase, row.why_apart(one)))}
            for one in row.apart
        ],
        "without": [{"host": one.host.name, "verdict": one.measured.status} for one in row.without],
    }
