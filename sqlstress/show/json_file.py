"""Reports and fleets as JSON, with what they say, so that nobody's program has to read sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from sqlstress.analysis.advice import advise
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.fleet import Fleet, Row, conclude
from sqlstress.analysis.fleet_hosts import Host, Joint, Total
from sqlstress.analysis.wording import place
from sqlstress.experiment import rate_units_of
from sqlstress.report import Report, to_json
from sqlstress.report.document import json_text
from sqlstress.show.phrases import phrase
from sqlstress.version import __version__

FLEET_VERSION = "1.1"


def report_json(report: Report) -> str:
    """Write a report as JSON text, with its findings: they are made anew whenever it is written."""
    return to_json(report, findings=[_finding(finding) for finding in advise(report)])


def _finding(finding: Finding) -> dict[str, Any]:
    return {"code": finding.code, "facts": _plain(finding.facts), "text": phrase(finding)}


def _plain(fact: Any) -> Any:
    """Return a fact in JSON's types; what is no number is null."""
    if isinstance(fact, Finding):
        return _finding(fact)
    if isinstance(fact, Mapping):
        return {str(name): _plain(value) for name, value in fact.items()}
    if is_dataclass(fact) and not isinstance(fact, type):
        return _plain(asdict(fact))
    if hasattr(fact, "_asdict"):
        return _plain(fact._asdict())
    if isinstance(fact, (list, tuple)):
        return list(map(_plain, fact))
    if isinstance(fact, float) and not math.isfinite(fact):
        return None
    return fact if isinstance(fact, (str, int, float, bool, type(None))) else str(fact)


def fleet_json(fleet: Fleet) -> str:
    """Return a fleet as JSON: hosts, the figures of each case by host, and the sentences.

    Rates are a second, times in nanoseconds. The reports themselves hold everything else.
    """
    plain = {
        "fleet_version": FLEET_VERSION,
        "tool_version": __version__,
        "hosts": list(map(_host, fleet.hosts)),
        "cases": [*map(_row, fleet.rows())],
        "totals": list(map(_joint, fleet.joint())),
        "counted_once": [{"name": name, "same_as": other} for name, other in fleet.twice],
        "left_out": [{"name": missing.name, "why": missing.why} for missing in fleet.left_out],
        "remarks": list(fleet.remarks),
        "findings": [{"code": finding.code, "text": phrase(finding)} for finding in conclude(fleet)],
    }
    return json_text(plain) + "\n"


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
    """Return a total over hosts, of each trial."""
    return {
        "workload": joint.case.workload,
        "case": place(joint.case),
        "files": joint.case.buckets,
        "processes_each": joint.case.concurrency,
        "server": joint.server,
        "meeting": joint.meeting,
        "unit": rate_units_of(joint.case),
        "asked": list(joint.asked),
        "hosts": joint.hosts,
        "total": joint.typical.rate if joint.typical else None,
        "without": [{"host": name, "why": why} for name, why in joint.without.items()],
        "trials": list(map(_total, joint.totals)),
    }


def _total(total: Total) -> dict[str, Any]:
    """Return the total of a trial: `off_share` is what it may be off by, as a share of it."""
    times = ("opens_ns", "closes_ns", "error_ns", "clock_ns", "clock_error_ns")
    return {
        "total": total.rate,
        **{name: getattr(total, name) for name in ("off_share", "seconds", "common_s", "error_ns")},
        "hosts": [
            {
                "host": share.together.host,
                "rate": share.rate,
                **{name: getattr(share.together, name) for name in times},
            }
            for share in total.shares
        ],
    }


def _row(row: Row) -> dict[str, Any]:
    ends = ("best", "median", "worst") if row.comparable else ()
    return {
        "workload": row.case.workload,
        "case": row.place,
        "files": row.case.buckets,
        "processes": row.case.concurrency,
        "unit": rate_units_of(row.case),
        **{name: getattr(row, name).host.name for name in ends},
        "comparable": [{"host": figure.host.name, "rate": figure.rate} for figure in row.comparable],
        "not_comparable": [
            {
                "host": figure.host.name,
                "rate": figure.rate,
                "differs_in": list(map(phrase, row.why_apart(figure))),
            }
            for figure in row.apart
        ],
        "without": [{"host": figure.host.name, "verdict": figure.measured.status} for figure in row.without],
    }
