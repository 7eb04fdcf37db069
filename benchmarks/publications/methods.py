"""The text that `sqlstress methods` repeats: rows a second of insertions, allocations and queries.

Source: "Peewee & SQLite Performance Optimization", its section "RPS Results". Each figure is one run,
through Peewee, by one process. Of the machine, the versions, the durability and the size of the table
that is queried it does not tell.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.publications.surroundings import UNVERIFIED, machine
from sqlstress.experiments.methods.experiment import tricks_of
from sqlstress.plan import cases_of
from sqlstress.report import Report, Run, Trial, Warning
from sqlstress.report.case import Case

Printed = tuple[float, float]
"""Rows a second, and the seconds, as they were printed. A column that ends early ended in TIMEOUT."""

INSERTED: dict[str, tuple[Printed, ...]] = {
    "1b1": ((153.9, 0.6),),
    "1b1 + TSC": ((6328.8, 0.0), (12589.3, 0.1), (13875.0, 0.7)),
    "1b1 + WAL": ((498.8, 0.2), (497.4, 2.0)),
    "1b1 + WAL + TSC": ((9793.2, 0.0), (13482.8, 0.1), (13960.7, 0.7)),
    "BLK": ((12189.2, 0.0), (54946.3, 0.0), (91620.1, 0.1), (86441.1, 1.2)),
    "JSON": ((40469.4, 0.0), (227241.7, 0.0), (365874.2, 0.0), (332334.6, 0.3)),
}
ALLOCATED: dict[str, tuple[Printed, ...]] = {
    "1b1": ((138.7, 0.3),),
    "1b1 + WAL": ((479.7, 0.1), (494.7, 0.9), (494.8, 2.5)),
    "1b1 + TSC": ((3845.6, 0.0), (8805.7, 0.0), (9919.7, 0.1), (9890.0, 0.2), (10282.4, 0.4)),
    "BLK": (
        *((53335.5, 0.1), (52545.4, 0.2), (54101.3, 0.4), (52797.5, 0.6)),
        *((51066.5, 0.9), (48488.1, 1.3), (50185.3, 1.6)),
    ),
    "1b1 + WAL + TSC": ((10288.6, 0.5), (10347.7, 1.1), (10334.3, 1.9)),
    "JSON": (
        *((224493.9, 0.0), (265938.5, 0.0), (280637.4, 0.1), (289494.5, 0.1), (283312.1, 0.2)),
        *((274972.9, 0.2), (266527.4, 0.3), (281844.1, 0.4), (278266.0, 0.4), (273094.7, 0.6)),
        *((274961.6, 0.7), (278077.0, 0.8), (270197.4, 0.9), (271831.2, 1.0), (272458.6, 1.2)),
        *((197347.6, 1.8), (165734.0, 2.4)),
    ),
    "SPC": (
        *((354747.2, 0.0), (556475.2, 0.0), (555178.7, 0.1), (600041.5, 0.1), (612193.6, 0.2)),
        *((597780.5, 0.3), (610217.8, 0.4), (598742.0, 0.5), (261878.8, 1.5), (199371.1, 2.5)),
        *((169896.9, 3.6), (154525.9, 4.7), (141343.6, 6.0)),
    ),
    "SPC + WAL": (
        *((408807.1, 0.0), (571218.6, 0.0), (601393.5, 0.1), (540840.9, 0.1), (439438.8, 0.3)),
        *((456027.0, 0.4), (451484.7, 0.5), (432308.7, 0.7), (248389.2, 1.6), (186666.5, 2.7)),
        *((159021.0, 3.8), (141470.0, 5.1), (126209.7, 6.7)),
    ),
}
QUERIED: dict[str, tuple[Printed, ...]] = {
    "1b1": (
        *((3936.8, 0.0), (4077.2, 0.2), (4116.4, 0.5), (3973.5, 1.0), (4029.9, 2.0)),
        *((4084.7, 2.4), (4078.2, 2.7), (4141.0, 2.9), (4157.3, 3.1), (4217.2, 3.3)),
    ),
    "JSON": (
        *((49980.0, 0.0), (87725.5, 0.0), (92591.7, 0.0), (94552.8, 0.0), (96619.1, 0.1)),
        *((98878.3, 0.1), (99220.8, 0.1), (98586.4, 0.1), (98206.0, 0.1), (98754.8, 0.1)),
    ),
    "SPC": (
        *((99147.3, 0.0), (166666.7, 0.0), (188686.4, 0.0), (215070.0, 0.0), (208464.7, 0.0)),
        *((221999.2, 0.0), (220002.6, 0.0), (205541.4, 0.1), (210088.8, 0.1), (211585.2, 0.1)),
    ),
    "1b1 + WAL": (
        *((4746.2, 0.0), (5065.9, 0.2), (5009.2, 0.4), (4946.8, 0.8), (4996.4, 1.6)),
        *((5017.7, 2.0), (5020.6, 2.2), (5039.6, 2.4), (5050.9, 2.6), (4890.7, 2.9)),
    ),
    "JSON + WAL": (
        *((55549.4, 0.0), (82861.0, 0.0), (94344.1, 0.0), (95553.0, 0.0), (97730.0, 0.1)),
        *((96509.4, 0.1), (97943.9, 0.1), (97616.7, 0.1), (98848.6, 0.1), (97996.7, 0.1)),
    ),
    "SPC + WAL": (
        *((71428.6, 0.0), (166800.1, 0.0), (201373.4, 0.0), (223314.0, 0.0), (216231.4, 0.0)),
        *((208531.4, 0.0), (210575.5, 0.1), (207652.7, 0.1), (208302.6, 0.1), (217852.7, 0.1)),
    ),
}
PRINTED = {"insert": INSERTED, "allocate": ALLOCATED, "query": QUERIED}
"""Phase → method → its figures, at the scales that --full has, in their order."""

_UNKNOWN = Warning(
    "durability-unknown",
    "What its commits waited for is not known: the text leaves synchronous to the library, whose default is "
    "FULL as published and NORMAL in WAL mode with Apple's build.",
    serious=True,
)


def _report() -> Report:
    asked = {
        "full": "on",
        "driver": "peewee",
        "as-published": "on",
        "repeat": "1",
        "verify": "none",
        "seed": "0",
    }
    counts: dict[tuple[str, str], int] = {}
    runs = []
    for case in cases_of(asked, "methods"):
        printed = PRINTED[case.spec.phase].get(tricks_of(case))
        if printed is not None:
            place = counts[case.spec.phase, tricks_of(case)] = (
                counts.get((case.spec.phase, tricks_of(case)), -1) + 1
            )
            runs.append(_run(case, printed[place] if place < len(printed) else None))
    return Report(
        created="",
        command=(),
        environment=machine("", None, _UNKNOWN),
        runs=tuple(runs),
        planned=len(runs),
        tool_version="",
        published="by the author of the text that sqlstress methods repeats",
    )


def _run(case: Case, printed: Printed | None) -> Run:
    rate = printed[0] if printed else 0.0
    seconds = case.spec.rows / rate if rate else case.spec.timeout_s
    trial = Trial(
        index=0,
        seconds=seconds,
        transactions=int(rate > 0),
        rows=case.spec.rows if rate else 0,
        tps=1 / seconds if rate else 0.0,
        rows_per_s=rate,
        fairness=None,
        min_max_share=None,
        longest_wait_ns=None,
        busy=None,
        busy_snapshot=None,
        failed=None,
        verdict=UNVERIFIED,
        outcome="done" if rate else "timeout",
    )
    settings = replace(case.settings, synchronous=None)
    return Run(replace(case, settings=settings, spec=replace(case.spec, samples=0)), (trial,))


REPORTS = {"000-methods": _report()}
