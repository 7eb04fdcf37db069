"""Text on the environment that `sqlstress doctor` prints, in lines of 80 characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from textwrap import wrap

from sqlstress.analysis.durability import durability_options
from sqlstress.analysis.wording import listing, quota
from sqlstress.report import Environment, Warning
from sqlstress.show.blocks import brief
from sqlstress.statistics.units import format_count, format_ms

WIDTH = 80
LABEL = 12
_GIB = 1 << 30
_LONGEST_OPTIONS = 120
_UNKNOWN = "unknown"


_LOOPS = {"native": "native: C code inside the driver's library", "python": "python"}


_UNFIT = {
    "sync-does-nothing": "a sync does nothing in this folder",
    "no-shared-memory": "processes cannot share memory",
    "shared-file-system": "the folder is on a shared file system",
}
"""Clauses on why this system or folder is unfit for measurements, by code of the warning."""
_IN_SHORT = {
    "sqlite-wal-reset-bug": "SQLite has the WAL-reset bug",
    "fullfsync-without-effect": "fullfsync has no effect here",
    "macos-fsync-not-durable": "an fsync does not reach the drive",
    "durability": "commits can be lost in a power failure",
    "no-journal-on-disk": "no journal is on disk",
    "cpu-quota": "a CPU quota stops processes",
}
"""Clauses on problems that do not prevent measurements, by code of the warning."""


def doctor_text(
    environment: Environment,
    loop: str,
    others: Sequence[str] = (),
    free_bytes: int | None = None,
    shared_memory_folder: str = "",
) -> str:
    """Return a text on the environment: a verdict, the properties, and the warnings (serious ones first).

    `loop` is the kind of loop that drives a load: "native" or "python". `others` has a line for each driver
    other than the driver in use. `free_bytes` is None, and `shared_memory_folder` "", if unknown.
    """
    lines = [*_wrapped(_verdict(environment.warnings)), ""]
    for label, text in _surroundings(environment, loop, free_bytes, shared_memory_folder):
        lines += _entry(label, text)
    if others:
        lines.append("")
        for label, text in zip(chain(("Other stores",), repeat("")), others, strict=False):
            lines += _entry(label, text)
    lines.append("")
    for warning in sorted(environment.warnings, key=lambda warning: not warning.serious):
        lines += _wrapped(("WARNING: " if warning.serious else "Note: ") + brief(warning.text))
    return "\n".join(lines if environment.warnings else [*lines, "No warnings apply here."]) + "\n"


def hunt_text(conclusion: str) -> str:
    """Return the last lines of `sqlstress doctor`: the conclusion of a search for system faults."""
    return "\n".join(["", *_entry("Hunt", conclusion)]) + "\n"


def _verdict(warnings: Iterable[Warning]) -> str:
    serious = [warning.code for warning in warnings if warning.serious]
    if unfit := [_UNFIT[code] for code in serious if code in _UNFIT]:
        return f"Not fit for measuring: {listing(unfit)}."
    if not serious:
        return "Fit for measuring."
    clauses = [_IN_SHORT[code] for code in serious if code in _IN_SHORT]
    return f"Fit for measuring, with a warning: {listing(clauses) or 'see below'}."


Entry = tuple[str | None, str]
"""Pair (label, text). The label "" continues the entry above; None means that the text is a whole line."""


def _surroundings(
    environment: Environment, loop: str, free_bytes: int | None, shared_memory_folder: str
) -> Iterator[Entry]:
    host, file_system = environment.host, environment.file_system
    cores = "cores unknown" if host.cores is None else f"{host.cores} core{'s' * (host.cores != 1)}"
    limit = f", {quota(host)}" if host.is_limited else ""
    yield "Host", f"{host.system} {host.release}, {host.machine}"
    yield "Processor", f"{host.processor or 'unknown model'}, {cores} available{limit}"
    yield "Memory", _UNKNOWN if host.memory_bytes is None else f"{host.memory_bytes / _GIB:.1f} GiB"
    yield "Python", host.python or _UNKNOWN
    if shared_memory_folder:
        yield "Sharing", f"shared memory is in {shared_memory_folder}"
    sleep_ns = host.sleep_1ms_ns
    yield "Sleep", _UNKNOWN if sleep_ns is None else f"a sleep of 1 ms takes {format_ms(sleep_ns)} ms"
    device = f" on {file_system.device}" if file_system.device else ""
    yield "File system", f"{file_system.kind or _UNKNOWN}{device}"
    options = brief(file_system.options)
    if len(options) > _LONGEST_OPTIONS:
        options = f"{options[:_LONGEST_OPTIONS]} [...]"
    yield "", options.replace(",", ", ")
    if free_bytes is not None:
        yield "Free space", f"{free_bytes / _GIB:,.1f} GiB"
    if cost := environment.sync:
        yield "Sync", f"{cost.primitive} after writing 4 KiB, {cost.samples} samples of each kind:"
        yield None, _sync_line("append", cost.append_p50_ns, cost.append_p99_ns)
        yield None, _sync_line("overwrite", cost.overwrite_p50_ns, cost.overwrite_p99_ns)
    else:
        yield "Sync", _UNKNOWN
    yield "Loop", _LOOPS[loop]
    for build in environment.builds:
        binding = f" ({build.driver_version})" if build.driver_version else ""
        yield None, ""
        yield build.library, f"{build.version}, driver {build.driver}{binding}"
        yield "", build.source_id
        if build.memory_gets_per_s is not None:
            yield "", f"{format_count(build.memory_gets_per_s)} gets per second from memory, one process"
        yield "", durability_options(build.compile_options)


def _sync_line(kind: str, *percentiles_ns: int) -> str:
    p50, p99 = (format_ms(ns) if ns >= 1000 else "< 0.001" for ns in percentiles_ns)
    return f"{'':{LABEL}} {kind:<9}  p50 {p50:>7} ms   p99 {p99:>7} ms"


def _entry(label: str | None, text: str) -> list[str]:
    """Return the lines of an entry; [] for an empty text. All lines but the first are indented."""
    return [text] if label is None else _wrapped(brief(text), f"{label:<{LABEL}} ")


def _wrapped(text: str, label: str = "") -> list[str]:
    indent = " " * (len(label) or 2)
    return wrap(text, WIDTH, initial_indent=label, subsequent_indent=indent, break_on_hyphens=False)
