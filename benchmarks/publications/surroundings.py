"""What is known of the machines on which somebody else measured, and of the data: little, and nothing."""

from __future__ import annotations

from sqlstress.report import Check, Environment, FileSystem, Host, Verdict, Warning

UNVERIFIED = Verdict((Check("data", "skipped", note="published, not verified"),))


def machine(system: str, cores: int | None, *warnings: Warning, release: str = "") -> Environment:
    """Return surroundings of which no more was published: no file system, no library, no cost of a sync."""
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
    return Environment(host, FileSystem("", "", ""), builds=(), sync=None, warnings=warnings)
