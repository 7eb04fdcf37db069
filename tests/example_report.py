"""A small complete report, built by hand, for the golden files of every format.

Its figures are made up after the shape of real ones: one database serialises its writers and starves
some of them, twenty buckets spread the load. Whatever can be derived is derived, so it is consistent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

from sqlstress.report import (
    Check,
    Environment,
    FileSystem,
    Host,
    Latency,
    Report,
    Run,
    SqliteBuild,
    SyncCost,
    Trial,
    Verdict,
    Warning,
    WorkerResult,
)
from sqlstress.report.case import Case
from sqlstress.statistics.histogram import Recorder, merge
from sqlstress.statistics.series import half_ratio, jain, min_max_share

GOLDEN = Path(__file__).with_name("golden")
WINDOW_S = 2.0
BINS = 20

SHARES: dict[int, tuple[tuple[int, ...], ...]] = {
    1: (
        (23_400,),
        (13_150, 12_690),
        (12_480, 8_120, 4_350, 1_230),
        (21_600, 1_910, 640, 310, 250, 140, 60, 20),
    ),
    20: (
        (22_900,),
        (15_200, 15_040),
        (9_310, 9_250, 9_170, 9_120),
        (4_890, 4_870, 4_820, 4_800, 4_790, 4_770, 4_730, 4_690),
    ),
}
"""Transactions of each worker in the window, by buckets and then by concurrency: 1, 2, 4, 8."""

WAITS_MS = {1: (4.1, 118.0, 640.0, 1_970.0), 20: (4.4, 6.9, 17.5, 46.0)}
"""The slowest operation of each of these cases."""


def example_report() -> Report:
    """Return eight runs, of one and of twenty buckets, by 1, 2, 4 and 8 processes, all verified."""
    runs = tuple(_run(buckets, place) for buckets in SHARES for place in range(4))
    return Report(
        created="2026-01-15T09:30:00+00:00",
        command=("sqlstress", "--concurrency", "1,2,4,8", "--buckets", "1,20", "--seed", "7"),
        environment=_environment(),
        runs=runs,
        planned=len(runs),
        tool_version="0.1.0",
    )


def failed_report() -> Report:
    """Return the example with two acknowledged writes lost by four processes on one database."""
    report = example_report()
    place = 2
    run = report.runs[place]
    lost = Check(
        "last write",
        "failed",
        checked=100_000,
        problems=2,
        counterexamples=(
            "key 4711: worker 2's write number 318 was acknowledged and is gone; "
            "the database has worker 1's number 207, which ended before it began",
            "key 52: worker 3's write number 9 was acknowledged; the database has no such key",
        ),
    )
    trial = replace(run.trials[0], verdict=Verdict((lost, *_verdict(1).checks[1:]), seconds=0.42))
    runs = (*report.runs[:place], replace(run, trials=(trial,)), *report.runs[place + 1 :])
    return replace(report, runs=runs)


def assert_golden(name: str, text: str) -> None:
    """Compare a text with tests/golden/NAME; a mismatch writes NAME.got beside it."""
    expected = GOLDEN / name
    got = GOLDEN / f"{name}.got"
    if expected.exists() and expected.read_text(encoding="utf-8") == text:
        got.unlink(missing_ok=True)
        return
    got.write_text(text, encoding="utf-8", newline="\n")
    raise AssertionError(
        f"{name} differs: compare it with {got.name} beside it, and rename that if it is right"
    )


def assert_golden_texts(name: str, texts: Mapping[str, str | Iterable[str]]) -> None:
    """Compare texts, each below what it is said of, with tests/golden/said/NAME."""
    lines: list[str] = []
    for subject, text in texts.items():
        lines += [subject, *(f"    {each}" for each in ([text] if isinstance(text, str) else text))]
    assert_golden(f"said/{name}", "\n".join(lines) + "\n")


def _run(buckets: int, place: int) -> Run:
    counts = SHARES[buckets][place]
    case = Case(concurrency=len(counts), buckets=buckets, duration_s=WINDOW_S, seed=7)
    starving = Warning(
        "starvation",
        "One process took most of the store while others waited: try more buckets.",
        serious=True,
    )
    fairness = jain(counts)
    warnings = (starving,) if fairness is not None and fairness < 0.9 else ()
    return Run(case, (_trial(buckets, counts, round(WAITS_MS[buckets][place] * 1e6)),), warnings, 812.0)


def _trial(buckets: int, counts: tuple[int, ...], longest_ns: int) -> Trial:
    workers = tuple(
        _worker(number, count, longest_ns * number // len(counts)) for number, count in enumerate(counts, 1)
    )
    total = sum(counts)
    bins = [sum(worker.bins[place] for worker in workers) for place in range(BINS)]
    return Trial(
        index=0,
        seconds=WINDOW_S,
        transactions=total,
        rows=total,
        tps=total / WINDOW_S,
        rows_per_s=total / WINDOW_S,
        fairness=jain(counts),
        min_max_share=min_max_share(counts),
        longest_wait_ns=max(worker.longest_wait_ns for worker in workers),
        busy=0,
        busy_snapshot=0,
        failed=0,
        latency=_latencies(workers, longest_ns),
        workers=workers,
        effective={"journal_mode": "wal", "synchronous": "full", "page_size": "4096", "fullfsync": "0"},
        verdict=_verdict(buckets),
        half_ratio=half_ratio(bins),
        start_s=0.18 + 0.05 * len(counts),
    )


def _worker(number: int, count: int, longest_ns: int) -> WorkerResult:
    gets = count // 2
    return WorkerResult(
        worker=number,
        transactions=count,
        rows=count,
        seconds=WINDOW_S,
        operations={"get": gets, "replace": count - gets},
        longest_wait_ns=longest_ns,
        bins=tuple(count * (place + 1) // BINS - count * place // BINS for place in range(BINS)),
        harness_share=0.021,
        proof_share=0.009,
        peak_memory_bytes=31_457_280,
    )


def _latencies(workers: tuple[WorkerResult, ...], longest_ns: int) -> dict[str, Latency]:
    operations = [worker.operations for worker in workers]
    gets, replaces = (sum(of[kind] for of in operations) for kind in ("get", "replace"))
    waits = histogram_around(longest_ns // 6, 0.8, replaces // 200)
    usual = histogram_around(140_000, 0.35, replaces - sum(waits.values()))
    return {
        "get": Latency.from_buckets(histogram_around(7_000, 0.3, gets), 900_000),
        "replace": Latency.from_buckets(merge([usual, waits]), longest_ns),
    }


def histogram_around(median_ns: int, sigma: float, count: int) -> dict[int, int]:
    """Return a histogram of `count` operations, log-normal, cut to nine points so that files stay small."""
    points = 9
    recorder = Recorder()
    for place in range(points):
        deviation = NormalDist().inv_cdf((place + 0.5) / points)
        share = count * (place + 1) // points - count * place // points
        recorder.record([round(median_ns * 2.718281828 ** (sigma * deviation))] * share)
    return recorder.buckets()


def _verdict(buckets: int) -> Verdict:
    checks = (
        Check("last write", "ok", checked=100_000),
        Check("reads", "ok", checked=11_000),
        Check("quick_check", "ok", checked=buckets),
    )
    return Verdict(checks, seconds=0.35)


def _environment() -> Environment:
    return Environment(
        host=Host(
            system="Linux",
            release="6.8.0",
            machine="x86_64",
            processor="Example CPU at 3.0 GHz",
            cores=4,
            memory_bytes=17_179_869_184,
            python="CPython 3.12.7",
            sleep_1ms_ns=1_060_000,
        ),
        file_system=FileSystem(kind="ext4", device="/dev/sda1", options="rw,relatime"),
        builds=(
            SqliteBuild(
                driver="sqlite3",
                driver_version="3.12.7",
                version="3.51.3",
                source_id="2026-01-02 03:04:05 0123456789abcdef",
                compile_options=("DEFAULT_SYNCHRONOUS=2", "THREADSAFE=1"),
                memory_gets_per_s=412_000.0,
            ),
        ),
        sync=SyncCost(
            primitive="fdatasync",
            append_p50_ns=96_000,
            append_p99_ns=410_000,
            overwrite_p50_ns=81_000,
            overwrite_p99_ns=350_000,
            samples=200,
        ),
        warnings=(
            Warning("few-cores", "4 cores: more processes than that take turns, whatever the store does."),
        ),
    )
