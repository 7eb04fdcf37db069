"""What `sqlstress doctor` says of the surroundings, in lines of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from textwrap import wrap

from sqlstress.analysis.durability import telling
from sqlstress.analysis.wording import listing
from sqlstress.report import Environment, FileSystem, SqliteBuild, SyncCost, Warning
from sqlstress.show.blocks import brief
from sqlstress.statistics.units import format_count, format_ms

WIDTH = 80
LABEL = 12
_GIB = 1 << 30
_LONGEST_OPTIONS = 120
_UNKNOWN = "unknown"


_LOOPS = {"native": "native: it runs in C, inside the driver's library", "python": "python"}


_UNFIT = {
    "sync-does-nothing": "a sync does nothing in this folder",
    "shared-file-system": "the folder is on a shared file system",
}
"""Code of a warning → why nothing that is measured here says what a local disk would do."""
_IN_SHORT = {
    "sqlite-wal-reset-bug": "SQLite has the WAL-reset bug",
    "fullfsync-without-effect": "fullfsync has no effect here",
    "macos-fsync-not-durable": "an fsync does not reach the drive",
    "durability": "commits can be lost in a power failure",
    "no-journal-on-disk": "there is no journal on disk",
}
"""Code of a serious warning → what it says, in a clause."""


def doctor_text(
    environment: Environment, loop: str, others: Sequence[str] = (), free_bytes: int | None = None
) -> str:
    """Return the fingerprint and its warnings as text, the serious ones first; `loop` drives a load here.

    `others` say which other stores could be measured, or what they lack; `free_bytes` is what the folder's
    file system has left. The first line is the verdict.
    """
    lines = [*_wrapped(_verdict(environment.warnings)), "", *_host(environment)]
    lines += _folder(environment.file_system)
    if free_bytes is not None:
        lines += _entry("Free space", f"{free_bytes / _GIB:,.1f} GiB")
    lines += _sync(environment.sync)
    lines += _entry("Loop", _LOOPS[loop])
    for build in environment.builds:
        lines += ["", *_build(build)]
    if others:
        lines.append("")
        for label, text in zip(chain(("Other stores",), repeat("")), others, strict=False):
            lines += _entry(label, text)
    return "\n".join([*lines, "", *_warnings(environment.warnings)]) + "\n"


def _verdict(warnings: Iterable[Warning]) -> str:
    """Return whether figures that are measured here can be used."""
    serious = [one.code for one in warnings if one.serious]
    unfit = [_UNFIT[code] for code in serious if code in _UNFIT]
    if unfit:
        return f"Not fit for measuring: {listing(unfit)}."
    if not serious:
        return "Fit for measuring."
    known = [_IN_SHORT[code] for code in serious if code in _IN_SHORT]
    return f"Fit for measuring, with a warning: {listing(known) or 'see below'}."


def _host(environment: Environment) -> Iterator[str]:
    host = environment.host
    processor = f"{host.processor or 'unknown model'}, {_cores(host.cores)} to use"
    yield from _entry("Host", f"{host.system} {host.release}, {host.machine}")
    yield from _entry("Processor", processor)
    yield from _entry(
        "Memory", _UNKNOWN if host.memory_bytes is None else f"{host.memory_bytes / _GIB:.1f} GiB"
    )
    yield from _entry("Python", host.python or _UNKNOWN)
    slept = (
        _UNKNOWN if host.sleep_1ms_ns is None else f"a sleep of 1 ms takes {format_ms(host.sleep_1ms_ns)} ms"
    )
    yield from _entry("Sleep", slept)


def _cores(count: int | None) -> str:
    return "cores unknown" if count is None else f"{count} core{'s' * (count != 1)}"


def _folder(mounted: FileSystem) -> Iterator[str]:
    kind = mounted.kind or _UNKNOWN
    device = f" on {mounted.device}" if mounted.device else ""
    yield from _entry("File system", f"{kind}{device}")
    if mounted.options:
        options = brief(mounted.options)
        cut = options if len(options) <= _LONGEST_OPTIONS else f"{options[:_LONGEST_OPTIONS]} [...]"
        yield from _entry("", cut.replace(",", ", "))


def _sync(cost: SyncCost | None) -> Iterator[str]:
    if cost is None:
        yield from _entry("Sync", _UNKNOWN)
        return
    yield from _entry("Sync", f"{cost.primitive} after writing 4 KiB, {cost.samples} times of each kind:")
    kinds = (
        ("append", cost.append_p50_ns, cost.append_p99_ns),
        ("overwrite", cost.overwrite_p50_ns, cost.overwrite_p99_ns),
    )
    for kind, p50, p99 in kinds:
        yield f"{'':{LABEL}} {kind:<9}  p50 {_ms(p50):>7} ms   p99 {_ms(p99):>7} ms"


def _ms(ns: int) -> str:
    return format_ms(ns) if ns >= 1000 else "< 0.001"


def _build(build: SqliteBuild) -> Iterator[str]:
    binding = f" ({build.driver_version})" if build.driver_version else ""
    yield from _entry(build.library, f"{build.version}, driver {build.driver}{binding}")
    yield from _entry("", build.source_id)
    if build.memory_gets_per_s is not None:
        yield from _entry(
            "", f"{format_count(build.memory_gets_per_s)} gets a second from memory, one process"
        )
    yield from _entry("", telling(build.compile_options))


def _entry(label: str, text: str) -> list[str]:
    """Return a labelled text, wrapped under itself; nothing for an empty one."""
    first = f"{label:<{LABEL}} "
    return wrap(
        brief(text), WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False
    )


def _warnings(warnings: Iterable[Warning]) -> Iterator[str]:
    ordered = sorted(warnings, key=lambda warning: not warning.serious)
    if not ordered:
        yield "No warnings apply here."
    for warning in ordered:
        mark = "WARNING: " if warning.serious else "Note: "
        yield from _wrapped(mark + brief(warning.text))


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
