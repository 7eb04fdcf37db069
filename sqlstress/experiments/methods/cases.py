"""What the options of the experiment with methods mean: the cells of the published tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.experiments.methods.options import MOST_SAMPLES
from sqlstress.plan.settings import check_locking, settings_of
from sqlstress.report.case import Case
from sqlstress.report.parts import Method

LOOP_S = 2.6
"""Time-out of insertions and allocations, as the published tables have it."""
PATIENT_S = 10.0
"""Time-out of queries, and of what is done inside SQLite."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Methods that are measured at the same scales."""

    phase: str
    tricks: tuple[str, ...]
    """Each a method's name, and WAL and TSC where it has them: those of the published tables, and ours."""
    published: Sequence[int]
    """Their scales in the published tables."""
    chosen: Sequence[int]
    """Those that are measured unless all are asked for."""


Cell = tuple[str, str, int]
"""Phase, tricks and scale."""
_INSERTED = (100, 1000, 10_000, 100_000)
_QUERIED = (100, 1000, 2000, 4000, 8000, *range(10_000, 14_001, 1000))
CELLS = (
    Cells("insert", ("1b1", "1b1 + WAL"), _INSERTED, (100,)),
    Cells("insert", ("1b1 + TSC", "1b1 + WAL + TSC", "BLK", "BLK/n + TSC", "JSON"), _INSERTED, (100, 10_000)),
    Cells("allocate", ("1b1", "1b1 + WAL", "1b1 + TSC"), (10, 30, 50, 70, 90), (10, 30)),
    Cells("allocate", ("BLK", "BLK/n + TSC", "1b1 + WAL + TSC", "JSON"), range(100, 1001, 50), (100, 450)),
    Cells("allocate", ("SPC", "SPC + WAL"), range(100, 1301, 100), (500,)),
    Cells("query", ("1b1", "BLK", "ROW", "VALUES", "JSON", "SPC"), _QUERIED, (100, 4000)),
    Cells("query", ("1b1 + WAL", "JSON + WAL", "SPC + WAL"), _QUERIED, (4000,)),
)


def cases(values: dict[str, Any], asked: Mapping[str, Any]) -> Iterator[Case]:
    """Yield the cases: phases outside, then processes, drivers and methods, scales inside.

    Raises UsageError when options contradict each other.
    """
    _check_together(values)
    check_locking(values)
    planned = [
        (cells.phase, tricks, scale)
        for phase in values["phase"]
        for cells in CELLS
        for tricks in cells.tricks
        for scale in _scales(cells, values)
        if cells.phase == phase and (values["method"] is None or _name(tricks).lower() in values["method"])
    ]
    _check_use(planned, values, asked)
    for concurrency in values["concurrency"]:
        for driver in values["driver"]:
            for phase, tricks, scale in planned:
                yield _case(values, phase, tricks, driver, concurrency, scale)


def _name(tricks: str) -> str:
    return tricks.partition(" ")[0]


def _scales(cells: Cells, values: Mapping[str, Any]) -> Sequence[int]:
    if values["scale"] is not None:
        return sorted(values["scale"])
    return cells.published if values["full"] else cells.chosen


def _check_use(planned: Sequence[Cell], values: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse what no cell would use."""
    if not planned:
        raise UsageError(f"--method {','.join(values['method'])} has no part in this --phase.")
    phases = {phase for phase, _, _ in planned}
    used = {
        "samples": ("query" in phases, "queries only: it needs --phase query"),
        "chunk": (
            any(_name(tricks) == "BLK/n" for _, tricks, _ in planned),
            "BLK/n only, which is not asked for",
        ),
        "as-published": (
            {"insert", "allocate"} <= phases,
            "insertions and allocations: it needs both phases",
        ),
    }
    for name, (is_used, what) in used.items():
        if name in asked and not is_used:
            raise UsageError(f"--{name} is of {what}.")


def _check_together(values: Mapping[str, Any]) -> None:
    if values["scale"] is None:
        return
    if values["full"]:
        raise UsageError("--scale and --full both choose the scales: leave one of them out.")
    if len(values["phase"]) > 1:
        raise UsageError("--scale counts samples or pairs: name one --phase with it.")


def _case(
    values: Mapping[str, Any], phase: str, tricks: str, driver: str, concurrency: int, scale: int
) -> Case:
    name, *others = tricks.split(" + ")
    default_s = PATIENT_S if phase == "query" or name == "SPC" else LOOP_S
    method = Method(
        phase=phase,
        name=name,
        transaction="TSC" in others,
        scale=scale,
        timeout_s=default_s if values["timeout"] is None else values["timeout"],
        samples=values["samples"],
        chunk=values["chunk"],
        as_published=values["as-published"],
    )
    _check_scale(method)
    return Case(
        workload="methods",
        driver=driver,
        concurrency=concurrency,
        repeat=values["repeat"],
        seed=values["seed"],
        verify=values["verify"],
        settings=settings_of({**values, "journal-mode": "wal" if "WAL" in others else "delete"}),
        method=method,
    )


def _check_scale(method: Method) -> None:
    """Refuse a scale that has no meaning in its phase."""
    if method.phase == "allocate" and not 2 <= method.scale <= MOST_SAMPLES:
        raise UsageError(f"--scale {method.scale}: results are allocated for 2 to {MOST_SAMPLES:,} samples.")
    if method.phase == "query" and sum(method.sets) > method.samples:
        first, second = method.sets
        raise UsageError(
            f"{method.scale:,} pairs lie between {first:,} and {second:,} samples, and the table that is "
            f"queried has {method.samples:,}: give more --samples, or another --scale."
        )
