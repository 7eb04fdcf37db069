"""File descriptors: every process holds some for its data, and the parent some for each worker."""

from __future__ import annotations

import sys

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiment import face_of
from sqlstress.report.case import Case
from sqlstress.targets import target_of

PER_WORKER = 3
"""Our pipe, and the two that multiprocessing keeps: its sentinel, and what it sent the job through.

A process beside the workers needs as many.
"""
SPARE = 64


def needed(case: Case) -> int:
    """Return how many descriptors the parent or a worker of this case needs, at most."""
    data = target_of(case.driver).DESCRIPTORS * case.buckets
    return data + PER_WORKER * (case.concurrency + len(face_of(case).companions)) + SPARE


def provide(count: int) -> None:
    """Raise this process's soft limit, which its children inherit. Raises EnvironmentFailure if not."""
    if sys.platform == "win32":
        return  # handles are not limited there
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise EnvironmentFailure(
            f"{count} open files are needed for each process and {hard} are allowed here: "
            f"use fewer --buckets or processes, or raise the limit (ulimit -Hn {count})."
        )
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    except (OSError, ValueError) as error:
        raise EnvironmentFailure(
            f"{count} open files are needed for each process; the limit of {soft} can't be raised: {error}."
        ) from error
