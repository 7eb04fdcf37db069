"""A report of the experiment with primary keys, built by hand after the shape of a real one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlstress.experiments.classics.spec import ID_TYPES, Picks
from sqlstress.report import Check, Latency, Report, Run, Space, TreeSpace, Trial, Verdict
from sqlstress.report.case import Case, Settings
from tests.example_report import example_report

EXAMPLE = example_report()
ROWS = 100_060
PAGE = 4096
SETTINGS = Settings(synchronous="normal", pragmas=(("foreign_keys", "on"),))

SECONDS = {
    "id-rowid": (2.1, 8.4, 6.0, 4.9, 5.1),
    "no-key": (1.9, 3.1, 3.0, 2.9, 2.8),
    "pair-norowid": (2.2, 5.2, 5.1, 4.9, 4.8),
    "pair-rowid": (1.8, 3.6, 3.5, 3.4, 3.4),
}
"""Time of each type of id, in the order of ID_TYPES."""

PAGES = {
    "id-rowid": ((600, 290, 290), (1640, 674, 727, 674)),
    "no-key": ((659, 288, 289), (1355, 672, 729)),
    "pair-norowid": ((503, 267, 264), (1453, 1046, 1161)),
    "pair-rowid": ((659, 288, 288, 371), (1355, 667, 720, 1269)),
}
"""Pages of the table of picks and of its indices, with integers and with identifiers of 16 bytes."""


def keys_report(schemas: tuple[str, ...] = ("id-rowid", "no-key")) -> Report:
    """Return runs of all types of ids in some schemas, with four processes, all verified."""
    runs = tuple(run(schema, id_type) for schema in schemas for id_type in ID_TYPES)
    return replace(EXAMPLE, command=("sqlstress", "keys", "--seed", "7"), runs=runs, planned=len(runs))


def run(schema: str, id_type: str, seconds: float | None = None, **fields: Any) -> Run:
    """Return a run; `fields` are those of its Picks, of its trial, or `concurrency`."""
    trial_fields = {
        name: fields.pop(name) for name in ("space", "verdict", "busy", "error") if name in fields
    }
    processes = fields.pop("concurrency", 4)
    case = Case(
        workload="keys",
        concurrency=processes,
        duration_s=0.0,
        warmup_s=0.0,
        seed=7,
        settings=SETTINGS,
        spec=Picks(schema, id_type, **fields),
    )
    took = SECONDS[schema][ID_TYPES.index(id_type)] if seconds is None else seconds
    return Run(case, (replace(_trial(schema, id_type, took), **trial_fields),))


def _trial(schema: str, id_type: str, seconds: float) -> Trial:
    checks = ("quick_check", 1), ("picks", ROWS), ("foreign keys", ROWS)
    return replace(
        EXAMPLE.runs[0].trials[0],
        seconds=seconds,
        transactions=1000,
        rows=ROWS,
        tps=1000 / seconds,
        rows_per_s=ROWS / seconds,
        latency={"picks": Latency(1000, seconds * 5e5, 2e7, seconds * 2e7, None, 300_000_000)},
        workers=(),
        effective={"journal_mode": "wal", "synchronous": "normal", "foreign_keys": "1"},
        verdict=Verdict(tuple(Check(name, "ok", number) for name, number in checks), 0.4),
        half_ratio=None,
        space=_space(schema, id_type),
    )


def _space(schema: str, id_type: str) -> Space:
    pages = PAGES[schema][id_type != "int"]
    names = ("picks", "picks_by_item", "picks_by_user", "sqlite_autoindex_picks_1")
    trees = [_tree(name, "picks", count) for name, count in zip(names, pages, strict=False)]
    count = sum(pages) + 200
    return Space(count * PAGE, PAGE, count, 0, (*trees, _tree("users", "users", 30)))


def _tree(name: str, table: str, pages: int) -> TreeSpace:
    internal = max(1, pages // 100)
    return TreeSpace(name, table, name != table, ROWS, 0, pages * 3600, 0, pages - internal, internal, 0)
