"""Writes every published report: python -m benchmarks.publications."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlstress.experiments.cycles.experiment import setting_of
from sqlstress.experiments.keys.key_findings import FOUR_TIMES, ONCE, PUBLISHED, ROWS, SOURCE
from sqlstress.experiments.methods.experiment import tricks_of
from sqlstress.plan import cases_of
from sqlstress.report import (
    Check,
    Environment,
    FileSystem,
    Host,
    Report,
    Run,
    Space,
    Trial,
    Verdict,
    Warning,
    to_json,
    write_atomically,
)
from sqlstress.report.case import UNKNOWN_DRIVER, Case

FOLDER = Path(__file__).parents[2] / "reports" / "published"
UNVERIFIED = Verdict((Check("data", "skipped", note="published, not verified"),))
ONE_RUN = {"repeat": "1", "verify": "none", "seed": "0"}


def _report(
    by: str,
    runs: tuple[Run, ...],
    *unknown: str,
    system: str = "",
    release: str = "",
    cores: int | None = None,
) -> Report:
    """Return a report of surroundings of which no more was published: no library, no cost of a sync.

    `unknown` says of commits, and of processes, what is not known.
    """
    host = Host(
        system=system,
        release=release,
        machine="",
        processor="",
        cores=cores,
        memory_bytes=None,
        python="",
        sleep_1ms_ns=None,
    )
    codes = ("durability-unknown", "processes-unknown")
    warnings = tuple(Warning(code, text, serious=True) for code, text in zip(codes, unknown, strict=False))
    return Report(
        created="",
        command=(),
        environment=Environment(host, FileSystem("", "", ""), builds=(), sync=None, warnings=warnings),
        runs=runs,
        planned=len(runs),
        tool_version="",
        published=by,
    )


def _run(case: Case, seconds: float, transactions: int, rows: int, **more: Any) -> Run:
    """Return a case of one trial, of which its time and what it did are all that was published."""
    rates = {"tps": transactions / seconds, "rows_per_s": rows / seconds}
    trial = Trial(
        index=0,
        seconds=seconds,
        transactions=transactions,
        rows=rows,
        fairness=None,
        min_max_share=None,
        longest_wait_ns=None,
        busy=None,
        busy_snapshot=None,
        failed=None,
        verdict=UNVERIFIED,
        **{**rates, **more},
    )
    return Run(case, (trial,))


# The published script that `--preset classic` repeats: pairs a second, on one file and on 20 files.
#
# Source: three tables that its author printed with the script, one for each machine and layout. Each row is
# one run, timed from the first process's start to the last one's end. The script as printed sets and gets
# 5,000 keys a process. The table of 20 files does not say so, but its seconds and totals fit 10,000 only.

Table = tuple[tuple[float, float], ...]
"""Seconds and total TPS, as they were printed, at 1, 2, 3 … processes."""

MACOS_1_FILE: Table = (
    *((0.65, 7638.43), (1.30, 7709.38), (1.83, 8187.97), (2.43, 8221.01)),
    *((3.07, 8146.74), (3.87, 7743.78), (4.80, 7292.13), (5.37, 7450.15)),
)
MACOS_20_FILES: Table = (
    *((2.07, 4837.17), (2.51, 7961.17), (3.28, 9143.03), (4.02, 9947.04)),
    *((4.44, 11249.71), (4.76, 12607.58), (5.25, 13325.82), (5.71, 14019.70)),
)
WINDOWS_1_FILE: Table = (
    *((4.12, 1212.14), (7.87, 1269.87), (14.06, 1066.69), (15.84, 1262.35)),
    *((20.19, 1238.41), (24.52, 1223.73), (29.94, 1169.12), (34.98, 1143.39)),
)

_ON_MACOS = (
    "What a commit waited for is not known. The script leaves synchronous to the library. With Apple's "
    "SQLite, a commit in WAL mode then waits for no sync. With SQLite as published it waits for an fsync, "
    "which on macOS leaves the data in the drive's cache."
)
_ON_WINDOWS = (
    "What a commit waited for is not known. The script leaves synchronous to the library. With the "
    "SQLite of Python's own build for Windows that is FULL: each commit waits until FlushFileBuffers has "
    "flushed the drive's cache."
)


def _classic(where: str, buckets: int, pairs: int, table: Table, unknown: str, **machine: Any) -> Report:
    asked = {"preset": "classic", "concurrency": f"1-{len(table)}", "buckets": str(buckets)}
    cases = cases_of({**asked, "verify": "none", "seed": "0"})
    runs = []
    for case, (seconds, tps) in zip(cases, table, strict=True):
        done = pairs * case.concurrency
        case = replace(case, ops=pairs)
        runs.append(_run(case, seconds, done, 2 * done, tps=tps, rows_per_s=2 * tps))
    by = f"by the author of the script that --preset classic repeats, on a {where}"
    return _report(by, tuple(runs), unknown, **machine)


# The text that `sqlstress cycles` repeats: the total time of a hundred cycles under five settings.
#
# Its transactions held the whole run: see docs/cycles.md.
# The sums of the cycles, the first cycle and the spikes, which it tells too, fit no report: that has the time
# of every cycle, and those stand in charts only. docs/cycles.md has them.

TOTALS = {"delete-tx": 3.53, "wal": 7.19, "wal-tx": 2.29, "wal-tx-off": 2.286}
"""Setting → seconds, as they were printed; of the last one that it took 0.004 s less."""


def _cycles() -> Report:
    runs = []
    for case in cases_of(ONE_RUN, "cycles"):
        settings, cycling = replace(case.settings, synchronous=None), replace(case.spec, timeout_s=None)
        case = replace(case, driver=UNKNOWN_DRIVER, settings=settings, spec=cycling)
        seconds = TOTALS.get(setting_of(case))
        if seconds is None:
            runs.append(Run(case, error="stopped by its author: each cycle took about 30 s"))
            continue
        inserted = 2 * cycling.rows * cycling.cycles
        statements, deleted = inserted + cycling.cycles, inserted - cycling.rows
        runs.append(_run(case, seconds, statements, inserted + deleted))
    return _report(
        'by the author of "Optimizing SQLite on Raspberry Pi" (2013), on one of 700 MHz with an SD card',
        tuple(runs),
        "What its commits waited for is not known: the text leaves synchronous to the library, whose default "
        "is FULL as published.",
    )


# The text that `sqlstress keys` repeats: time and size of tables whose rows ULIDs or UUIDs identify.
#
# The figures are those of `sqlstress.experiments.keys.key_findings`. Here stand the cases of which a time
# was printed, or told to be the same as one that was. What the text tells as a rough share of another figure
# ("nearly 20% longer"), and shares and fan-outs of indices whose pages were not printed, fit no report.

Load = tuple[int, int]
"""Users, and picks of each."""
Place = tuple[str, str]
"""Schema and type of the ids."""


def _keys() -> Report:
    return _report(
        f'by the author of "{SOURCE}", by a program in Rust',
        tuple(run for load in (ONCE, FOUR_TIMES) for run in _runs_of_keys(load)),
        "What its commits waited for is not known. The text tells of WAL and of the setting that is "
        "recommended for it, which is NORMAL: then no commit waits for a sync.",
        "How many processes or threads wrote is not known.",
    )


def _runs_of_keys(load: Load) -> Iterator[Run]:
    """Yield the cases of a load of which the time is known, each as its author measured it."""
    users, picks = map(str, load)
    asked = {"full": "on", "id-type": "uuid4,ulid", "users": users, "picks": picks, "concurrency": "1"}
    for case in cases_of({**asked, **ONE_RUN}, "keys"):
        place = (case.spec.schema, case.spec.id_type)
        seconds, size = (_figure(name, place, load) for name in ("time", "file"))
        if seconds:
            space = Space(round(size), None, None, None, ()) if size else None
            case = replace(case, concurrency=0, driver=UNKNOWN_DRIVER)
            yield _run(case, seconds, load[0], ROWS[load], space=space)


def _figure(name: str, place: Place, load: Load) -> float | None:
    """Return what was printed of a case, in seconds or bytes, or of the one that it was told to equal."""
    known = [one for one in PUBLISHED if (one.figure, one.load) == (name, load)]
    printed = {(one.schema, one.id_type): one.value for one in known if one.beside is None}
    for one in known:
        if one.beside and one.value == 1.0:  # the same
            its = (one.schema, one.id_type)
            for this, other in ((its, one.beside), (one.beside, its)):
                if other in printed:
                    printed.setdefault(this, printed[other])
    return printed.get(place)


# The text that `sqlstress methods` repeats: rows a second of insertions, allocations and queries.
#
# Source: "Peewee & SQLite Performance Optimization", its section "RPS Results". Each figure is one run,
# through Peewee, by one process. Of the machine, the versions, the durability and the size of the table
# that is queried it does not tell.

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


def _methods() -> Report:
    asked = {"full": "on", "driver": "peewee", "as-published": "on", **ONE_RUN}
    left = {
        (phase, tricks): list(figures)
        for phase, methods in PRINTED.items()
        for tricks, figures in methods.items()
    }
    runs = []
    for case in cases_of(asked, "methods"):
        figures = left.get((case.spec.phase, tricks_of(case)))
        if figures is None:
            continue
        rows = case.spec.rows
        settings, spec = replace(case.settings, synchronous=None), replace(case.spec, samples=0)
        case = replace(case, settings=settings, spec=spec)
        if figures:
            rate, _ = figures.pop(0)
            runs.append(_run(case, rows / rate, 1, rows, rows_per_s=rate, outcome="done"))
        else:
            runs.append(_run(case, spec.timeout_s, 0, 0, outcome="timeout"))
    return _report(
        "by the author of the text that sqlstress methods repeats",
        tuple(runs),
        "What its commits waited for is not known: the text leaves synchronous to the library, whose default "
        "is FULL as published and NORMAL in WAL mode with Apple's build.",
    )


_MAC, _SERVER = {"system": "Darwin", "cores": 4}, {"system": "Windows", "release": "Server 2012", "cores": 8}
REPORTS: dict[str, Report] = {
    "003-macos-1-file": _classic(
        "Mac of 4 cores with an SSD, one file", 1, 5_000, MACOS_1_FILE, _ON_MACOS, **_MAC
    ),
    "003-macos-20-files": _classic(
        "Mac of 4 cores with an SSD, 20 files", 20, 10_000, MACOS_20_FILES, _ON_MACOS, **_MAC
    ),
    "003-windows-1-file": _classic(
        "cloud server of 8 cores with an SSD, one file", 1, 5_000, WINDOWS_1_FILE, _ON_WINDOWS, **_SERVER
    ),
    "004-cycles": _cycles(),
    "002-keys": _keys(),
    "000-methods": _methods(),
}
"""File name, without its suffix → what was published."""


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, report in REPORTS.items():
        write_atomically(FOLDER / f"{name}.json", to_json(report))
