"""The sentences of what is found of writers that were killed, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import sampled

PHRASES = sampled(
    {
        "kills-wrong": "FAILED: after {kills:plural kill}, {wrong}.[ journal_mode={keeps_nothing} keeps "
        "nothing on disk to roll back with: use WAL or DELETE.]",
        "kills-not-acknowledged": "{count:plural transaction} did not match what was acknowledged",
        "kills-not-whole": "{count:plural record} did not match the log",
        "kills-not-sound": "integrity_check reported errors {once?once|}[{times} times]",
        "kills-not-gone-on": "{once?once|}[{times} times] the other writers did not continue after a kill",
        "kills-check-failed": "{name} failed",
        "kills-unproved": "Nothing is proved: no transaction was acknowledged before its writer died.",
        "kills-proved": "Nothing was lost: all {acknowledged} acknowledged transactions survived "
        "{kills:plural kill}, none was torn, and integrity_check found nothing. This says nothing about "
        "power loss: the system still writes what a dead process has written, even with synchronous=OFF. "
        "Use --power to test power cuts.",
    },
    kills=50,
    acknowledged=12_000,
    wrong=(Finding("kills-not-acknowledged", count=2),),
    keeps_nothing="OFF",
    once=False,
    times=2,
)
