"""A report of an experiment that nobody here knows, as a later version may save it."""

from __future__ import annotations

import json
from typing import Any

from sqlstress.report import Report, from_json, to_json
from tests.example_report import example_report

SCRIPT = {"statements": ["SELECT 1", "UPDATE t SET a = a + 1"], "times": [3, 0.5], "to": None}


def unknown_plain(workload: str = "graph", runs: int = 8, **own: Any) -> Any:
    """Return it as plain data; `own` are keys of its cases."""
    plain = json.loads(to_json(example_report()))
    del plain["runs"][runs:]
    for run in plain["runs"]:
        case = run["case"]
        del case["load"], case["checkpointing"]
        case |= {"workload": workload, **own}
    return plain


def unknown_report(**given: Any) -> Report:
    """Return it as it is read."""
    return from_json(json.dumps(unknown_plain(**given)))
