"""Whether the ledger holds what the workers were told; who died may have committed one more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlstress.report import Check
from sqlstress.report.results import Tally


def check_ledger(
    found: Mapping[int, tuple[int, int, int]], acknowledged: Sequence[int], dead: Sequence[bool]
) -> Check:
    """Hold the ledger against what each worker was told: numbers from 1 on, none left out, none too many.

    `found` is (how many rows, least number, largest) by worker; the others are by worker, from the first.
    """
    tally = Tally("ledger")
    for worker, (told, died) in enumerate(zip(acknowledged, dead, strict=True), 1):
        tally.checked += told
        count, least, most = found.get(worker, (0, 1, 0))
        if count < told:
            tally.problem(f"worker {worker} was told of {told:,} commits, and {count:,} of them are there")
        elif count > told + died:
            tally.problem(f"worker {worker} was told of {told:,} commits, and {count:,} are there")
        elif (least, most) != (1, count) and count:
            tally.problem(f"the commits of worker {worker} are {least:,} to {most:,}, and only {count:,}")
    for worker in found.keys() - set(range(1, len(acknowledged) + 1)):
        tally.problem(f"there are commits of worker {worker}, whom nobody started")
    return tally.check()
