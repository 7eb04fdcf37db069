"""A report of the experiment with methods, built by hand after the shape of a real one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlstress.experiments.classics.methods import Method
from sqlstress.report import Check, Report, Run, SqliteBuild, Trial, Verdict
from sqlstress.report.case import Case, Settings
from tests.example_report import example_report

EXAMPLE = example_report()
OK = Verdict((Check("quick_check", "ok", 1), Check("samples", "ok", 100)), 0.01)
PARAMETERS = "303,075 parameters in one statement; this SQLite takes 250,000"
STACK = "parser stack overflow; 86 pairs at most"
LIMITS = {"allocate": PARAMETERS, "query": STACK}

Rates = dict[str, tuple[float | str | None, ...]]
"""Method → rows per second at each scale; or how it failed there; None: not tried there."""
SCALES = {"insert": (100, 10_000), "allocate": (10, 100, 450), "query": (100, 4000)}
PEEWEE: dict[str, Rates] = {
    "insert": {
        "1b1": (181.8, None),
        "1b1 + TSC": (9515.0, 10_120.0),
        "1b1 + WAL": (329.3, None),
        "1b1 + WAL + TSC": (6377.0, 15_528.0),
        "BLK": (8491.0, 68_326.0),
        "JSON": (6215.0, 375_267.0),
        "BLK/n + TSC": (11_090.0, 40_985.0),
    },
    "allocate": {
        "1b1": (138.7, "timeout", None),
        "1b1 + WAL": (479.7, None, None),
        "1b1 + TSC": (3845.6, None, None),
        "BLK": (None, 35_540.0, "limit"),
        "1b1 + WAL + TSC": (None, 9867.0, "timeout"),
        "JSON": (None, 168_878.0, 315_546.0),
        "BLK/n + TSC": (None, 37_961.0, 63_628.0),
        "SPC": (None, 260_350.0, 878_289.0),
    },
    "query": {
        "1b1": (3264.0, 4835.0),
        "JSON": (88_445.0, 54_980.0),
        "SPC": (99_870.0, 226_092.0),
        "BLK": ("limit", "skipped"),
        "ROW": (2057.0, 17_047.0),
        "VALUES": (43_486.0, 38_353.0),
        "1b1 + WAL": (None, 5003.0),
    },
}
SQLITE3: dict[str, Rates] = {
    "insert": {"1b1": (153.2, None), "1b1 + TSC": (51_170.0, 156_491.0), "JSON": (17_241.0, 371_492.0)},
    "query": {"1b1": (77_275.0, 39_193.0), "ROW": (8361.0, 77_370.0), "VALUES": (126_789.0, 376_263.0)},
}


def methods_report() -> Report:
    """Return runs of all phases through Peewee, and of some methods below it, by one process."""
    runs = [*_runs("peewee", PEEWEE), *_runs("sqlite3", SQLITE3)]
    builds = tuple(
        SqliteBuild(name, name, "3.40.1", "2022-12-28", (), None) for name in ("peewee", "sqlite3")
    )
    return replace(
        EXAMPLE,
        command=("sqlstress", "methods", "--seed", "7"),
        environment=replace(EXAMPLE.environment, builds=builds, warnings=()),
        runs=tuple(runs),
        planned=len(runs),
    )


def _runs(driver: str, phases: dict[str, Rates]) -> list[Run]:
    return [
        run(phase, tricks, scale, figure, driver=driver)
        for phase, methods in phases.items()
        for tricks, figures in methods.items()
        for scale, figure in zip(SCALES[phase], figures, strict=True)
        if figure is not None
    ]


def run(phase: str, tricks: str, scale: int, figure: float | str = 1000.0, **fields: Any) -> Run:
    """Return a run with so many rows per second, or one that failed in this way; `fields` are its case's."""
    case = case_of(phase, tricks, scale, **fields)
    if figure == "skipped":
        return Run(case, skipped=f"{tricks} met a limit at 100 already")
    return Run(case, (_trial(case, figure),))


def case_of(phase: str, tricks: str, scale: int, **fields: Any) -> Case:
    """Return the case of a method, named as its column is."""
    name, *others = tricks.split(" + ")
    method = Method(phase, name, "TSC" in others, scale, 2.6, 500)
    settings = Settings(journal_mode="wal" if "WAL" in others else "delete")
    return Case(
        workload="methods", duration_s=0.0, warmup_s=0.0, seed=7, settings=settings, spec=method, **fields
    )


def _trial(case: Case, figure: float | str) -> Trial:
    done = not isinstance(figure, str)
    rows_per_s = float(figure) if done else 0.0
    seconds = case.spec.rows / rows_per_s if rows_per_s else case.spec.timeout_s
    return replace(
        EXAMPLE.runs[0].trials[0],
        seconds=seconds,
        transactions=int(done),
        rows=case.spec.rows if done else 0,
        tps=1 / seconds if done else 0.0,
        rows_per_s=rows_per_s,
        latency={},
        workers=(),
        effective={"journal_mode": case.settings.journal_mode, "synchronous": "full"},
        verdict=OK,
        half_ratio=None,
        outcome="done" if done else str(figure),
        note=LIMITS.get(case.spec.phase, "") if figure == "limit" else "",
    )
