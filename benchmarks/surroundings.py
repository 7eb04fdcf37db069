"""Where a benchmark was measured, in lines."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from benchmarks.loops import CHECKOUT
from sqlstress.report import Environment


def revision() -> str:
    """Return what `git describe --always --dirty` says of the checkout; empty outside of one."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def host_lines(environment: Environment) -> Iterator[str]:
    """Yield the host, the file system and the cost of a sync."""
    host, files, sync = environment.host, environment.file_system, environment.sync
    assert sync and host.memory_bytes and host.sleep_1ms_ns, "a fingerprint of this machine has them"
    processor = host.processor or "processor unknown"
    yield (
        f"{host.system} {host.release}, {host.machine}, {processor}, {host.cores} cores, "
        f"{host.memory_bytes / 2**30:.1f} GiB, {host.python}"
    )
    yield f"a sleep of 1 ms takes {host.sleep_1ms_ns / 1e6:.2f} ms"
    yield f"{files.kind or 'file system unknown'} on {files.device} ({files.options})"
    yield (
        f"a sync ({sync.primitive}) costs p50 {sync.append_p50_ns / 1e3:.0f} µs, "
        f"p99 {sync.append_p99_ns / 1e3:.0f} µs"
    )


def build_lines(environment: Environment) -> Iterator[str]:
    """Yield the SQLite libraries."""
    for build in environment.builds:
        yield f"{build.driver}: {build.driver_version}, SQLite {build.version} ({build.source_id})"
