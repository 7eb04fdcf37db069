"""The sentences of what is found of writers that were killed, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase

PHRASES = {
    "kills-wrong": Phrase(
        "FAILED: after {kills:plural kill}, {wrong}.[ journal_mode={keeps_nothing} keeps nothing on disk "
        "to roll back with: use WAL or DELETE.]",
        kills=50,
        wrong=(Finding("kills-not-acknowledged", count=2, once=False, times=2),),
        keeps_nothing="OFF",
    ),
    "kills-not-acknowledged": Phrase(
        "{count:plural transaction} did not match what was acknowledged", count=2
    ),
    "kills-not-whole": Phrase("{count:plural record} did not match the log", count=2),
    "kills-not-sound": Phrase(
        "integrity_check reported errors {once?once|}[{times} times]", once=False, times=2
    ),
    "kills-not-gone-on": Phrase(
        "{once?once|}[{times} times] the other writers did not continue after a kill", once=False, times=2
    ),
    "kills-check-failed": Phrase("{name} failed", name="rows"),
    "kills-unproved": Phrase("Nothing is proved: no transaction was acknowledged before its writer died."),
    "kills-proved": Phrase(
        "Nothing was lost: all {acknowledged} acknowledged transactions survived {kills:plural kill}, "
        "none was torn, and integrity_check found nothing. This says nothing about power loss: the system "
        "still writes what a dead process has written, even with synchronous=OFF. Use --power to test "
        "power cuts.",
        kills=50,
        acknowledged=12_000,
    ),
}
