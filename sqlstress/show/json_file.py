"""A report as JSON, with its findings as data, so that programs need not parse sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from sqlstress.analysis.advice import advise
from sqlstress.report import Report, to_json


def report_json(report: Report) -> str:
    """Return a report as JSON text, with its findings."""
    findings = [
        {"code": finding.code, "facts": _plain(finding.facts), "text": finding.text}
        for finding in advise(report)
    ]
    return to_json(report, findings=findings)


def _plain(fact: Any) -> Any:
    """Return a fact of a finding in JSON's types: None for NaN and infinity, text for unknown types."""
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
